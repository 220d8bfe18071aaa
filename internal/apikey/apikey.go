package apikey

import (
	"encoding/hex"
	"hash/crc32"
	"strings"
)

// Prefix begins every key, so that scanners for secrets can find one.
const Prefix = "wgk_"

// Sizes of the parts of a key, in characters: its id, its secret of 32 bytes, its checksum.
const (
	idSize     = 12
	secretSize = 43
	sumSize    = 8
)

// Size is the length of a key.
const Size = len(Prefix) + idSize + 1 + secretSize + 1 + sumSize

// Compose returns the key with an id and a secret, both in base64 for URLs.
func Compose(id, secret string) string {
	body := Prefix + id + "_" + secret
	return body + "_" + checksum(body)
}

// ID returns the id of a text that has the form of a key, or reports that it has not: a
// mistyped key costs no look-up.
func ID(text string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(text) != Size || rest[idSize] != '_' || rest[idSize+1+secretSize] != '_' {
		return "", false
	}
	sum := len(text) - sumSize
	return rest[:idSize], checksum(text[:sum-1]) == text[sum:]
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return hex.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}
