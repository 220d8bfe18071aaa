package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// A Key says what a credential is for.
type Key struct {
	Kind      string `json:"kind"` // what sort of thing is kept
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"` // "": of no single principal
	Server    string `json:"server"`
}

// A Vault may be used from several goroutines, as long as each row has one writer at a time.
type Vault struct {
	rows   rows
	secret func() ([]byte, error)

	mu     sync.Mutex
	aead   cipher.AEAD // made when it is first needed: an unused vault needs no key
	failed error       // why there is none
	again  time.Time   // when the key is asked for again: a keyring may ask its user each time
}

// retry is for how long a key that could not be had is not asked for again.
const retry = 10 * time.Second

// ErrKey says that the key of the vault cannot be had now.
var ErrKey = errors.New("the key of the vault")

// ErrNone says that there is no such row.
var ErrNone = errors.New("the vault has no such credential")

// ErrUnreadable says that a row does not open: the key is another one than it was sealed
// with, or the row was changed.
var ErrUnreadable = errors.New("a credential in the vault cannot be opened: its key is another, or it was changed; log in again")

// minKey is how many bytes a key has to have.
const minKey = 32

// New returns the vault in a folder. When something is kept or read, the folder is made, and the vault
// asks for the secret: at least 32 bytes that cannot be guessed.
func New(dir string, secret func() ([]byte, error)) *Vault {
	return &Vault{rows: folder(dir), secret: secret}
}

// Shared returns the vault of several gateways, which have the same secret. Names returns the names of the
// documents that are there and begin with a prefix.
func Shared(document func(name string) state.Document, names func(ctx context.Context, prefix string) ([]string, error), secret []byte) *Vault {
	return &Vault{rows: documents{document, names}, secret: func() ([]byte, error) { return secret, nil }}
}

// Ready asks for the key now, and is [ErrKey] with the reason if nothing can be kept or read.
func (v *Vault) Ready() error {
	v.mu.Lock()
	v.again = time.Time{}
	v.mu.Unlock()
	_, err := v.seal()
	return err
}

func (v *Vault) seal() (cipher.AEAD, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.aead == nil && !time.Now().Before(v.again) {
		v.aead, v.failed = v.open()
		v.again = time.Now().Add(retry)
	}
	if v.aead == nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, v.failed)
	}
	return v.aead, nil
}

func (v *Vault) open() (cipher.AEAD, error) {
	raw, err := v.secret()
	if err != nil {
		return nil, err
	}
	if len(raw) < minKey {
		return nil, fmt.Errorf("it has %d bytes, and takes %d at least", len(raw), minKey)
	}
	key, err := hkdf.Key(sha256.New, raw, nil, "wasmgate vault 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if dir, ok := v.rows.(folder); ok { // a folder that cannot be made is an error before anyone logs in
		if err := os.MkdirAll(string(dir), 0o700); err != nil {
			return nil, err
		}
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// KeyFile reads a key, and makes it if there is none. A file that others can read is an error.
func KeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		key := make([]byte, minKey)
		rand.Read(key) // never fails
		return key, files.ReplaceSynced(path, key, 0o600)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others: chmod 600 it, and log in again where it matters", path)
	}
	key := make([]byte, 1<<10)
	n, err := f.Read(key)
	return key[:n], err
}

// Put keeps a credential in the place of what was there. It outlives the process when Put returns.
func (v *Vault) Put(k Key, value []byte) error {
	aead, err := v.seal()
	if err != nil {
		return err
	}
	return v.rows.put(k, aead.Seal(nil, nil, value, k.bytes()))
}

// Get returns a credential. The error is [ErrNone], [ErrUnreadable] or [ErrAway], or that of a file.
func (v *Vault) Get(k Key) ([]byte, error) {
	sealed, err := v.rows.get(k)
	if err != nil {
		return nil, err
	}
	aead, err := v.seal()
	if err != nil {
		return nil, err
	}
	value, err := aead.Open(nil, nil, sealed, k.bytes())
	if err != nil {
		return nil, ErrUnreadable
	}
	return value, nil
}

// Delete removes a credential. One that is not there is no error.
func (v *Vault) Delete(k Key) error { return v.rows.put(k, nil) }

// List returns what there is of a kind, sorted by server, tenant and principal; also what
// does not open.
func (v *Vault) List(kind string) ([]Key, error) {
	all, err := v.rows.list(kind)
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.order(), b.order()) })
	return all, err
}

// bytes are the key as it is authenticated: no two keys have the same.
func (k Key) bytes() []byte {
	raw, _ := json.Marshal(k) // strings never fail
	return raw
}

func (k Key) order() string { return k.Server + "\x00" + k.Tenant + "\x00" + k.Principal }
