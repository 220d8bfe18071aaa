package keyring

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// service is what keyrings call the program.
const service = "wasmgate"

// Key returns the key that the keyring has under a name, and makes it where there is none.
func Key(name string) ([]byte, error) {
	key, err := keyring.Get(service, name)
	if errors.Is(err, keyring.ErrNotFound) {
		key = rand.Text() + rand.Text() // of 256 bits at least, in letters: keyrings keep texts
		err = keyring.Set(service, name, key)
	}
	if err != nil {
		return nil, fmt.Errorf("the keyring of the system: %w: unlock it, run the gateway in the session of a user who has one, or name a file or a variable as vault.key", err)
	}
	return []byte(key), nil
}

// Secret returns what the keyring has of an account at a service.
func Secret(service, account string) (string, error) {
	secret, err := keyring.Get(service, account)
	if err != nil {
		return "", fmt.Errorf("the keyring of the system has no secret of %s at %s that can be read: %w", account, service, err)
	}
	return secret, nil
}
