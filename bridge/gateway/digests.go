package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// sum returns the hex SHA-256 of a module.
func sum(wasm []byte) string {
	digest := sha256.Sum256(wasm)
	return hex.EncodeToString(digest[:])
}

// configOf identifies the rights of a server or a module and how it is run: a digest, from which
// nothing can be read.
func configOf(said ...any) string {
	b, err := json.Marshal(said)
	if err != nil {
		return rand.Text() // equal to nothing, so that no approval holds
	}
	return sum(b)
}
