package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files"
)

// secretSize is the size of the gateway's secret, in bytes.
const secretSize = 32

// Secret returns the secret of this gateway, from which keys are derived
// for what clients hold. It is made once and kept in the state folder, for its
// owner alone.
func Secret(folder string) ([]byte, error) {
	path := filepath.Join(folder, "secret")
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

// Node returns the name of this gateway in the audit log: that which the configuration says, or
// one that is made once and kept in the state folder.
func Node(folder, said string) (string, error) {
	if said != "" {
		return said, nil
	}
	path := filepath.Join(folder, "node")
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	name := strings.ToLower(rand.Text()[:8])
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}
