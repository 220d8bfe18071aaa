package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/files"
)

// secretSize is the size of the gateway's secret, in bytes.
const secretSize = 32

// sealingSecret returns the secret of this gateway, from which keys are derived
// for what clients hold. It is made once and kept in the state folder, for its
// owner alone. The caller holds the lock of the folder.
func sealingSecret(state string) ([]byte, error) {
	path := filepath.Join(state, "secret")
	b, err := os.ReadFile(path)
	switch {
	case err == nil && len(b) == secretSize:
		return b, nil
	case err == nil:
		return nil, fmt.Errorf("%s is damaged: it has %d bytes instead of %d; remove it, and clients that are being asked will be asked again", path, len(b), secretSize)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	b = make([]byte, secretSize)
	rand.Read(b) // never fails
	return b, files.ReplaceSynced(path, b, 0o600)
}
