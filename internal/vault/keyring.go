package vault

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// keyringService is what keyrings call the program.
const keyringService = "wasmgate"

// Keyring returns the key that the keyring of the system's user has under a name, and makes it
// where there is none: Secret Service on Linux, Keychain on macOS, Credential Manager on Windows.
func Keyring(name string) ([]byte, error) {
	key, err := keyring.Get(keyringService, name)
	if errors.Is(err, keyring.ErrNotFound) {
		key = rand.Text() + rand.Text() // of 256 bits at least, in letters: keyrings keep texts
		err = keyring.Set(keyringService, name, key)
	}
	if err != nil {
		return nil, fmt.Errorf("the keyring of the system: %w", err)
	}
	return []byte(key), nil
}
