package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/files"
)

// A Key is what the gateway keeps of an API key: not the key. Its principal is somebody of
// the configuration; roles, groups and servers can only take rights away.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"` // a person's words for it
	Hash      string    `json:"sha256"`
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal"`
	Roles     []string  `json:"roles,omitempty"`   // nil: those of the principal
	Groups    []string  `json:"groups,omitempty"`  // nil: those of the principal
	Servers   []string  `json:"servers,omitempty"` // nil: all
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	Revoked   time.Time `json:"revoked,omitzero"`

	sum [sha256.Size]byte // what Hash says
}

// Keys keeps API keys in a file that only its user reads. It is read again when it has
// changed, so that a command takes effect on a gateway that runs. The methods may be
// called at the same time.
type Keys struct {
	file string
	now  func() time.Time

	mu   sync.RWMutex
	all  map[string]*Key // a key that changes is another pointer
	read os.FileInfo     // of the file that was read; nil: there was none
	// ended has the keys that were revoked while this process runs, and when. They stay revoked,
	// even if the file could not be written or an older file takes its place.
	ended map[string]time.Time
}

// OpenKeys reads a file of keys. One that is not there holds none.
func OpenKeys(file string) (*Keys, error) {
	k := &Keys{file: file, now: time.Now}
	return k, k.Reload()
}

// Reload reads the file again if it has changed. What does not load leaves the keys as
// they were.
func (k *Keys) Reload() error {
	_, err := k.Reread()
	return err
}

// Reread is Reload, and reports whether the file had changed.
func (k *Keys) Reread() (changed bool, err error) {
	info, err := os.Stat(k.file)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		changed = k.read != nil
		k.all, k.read = nil, nil
		return changed, nil
	case err != nil:
		return false, err
	case k.read != nil && os.SameFile(info, k.read) && info.ModTime().Equal(k.read.ModTime()) && info.Size() == k.read.Size():
		return false, nil
	case info.Mode().Perm()&0o077 != 0:
		return false, fmt.Errorf("%s: other users may read it (mode %o); run chmod 600 on it", k.file, info.Mode().Perm())
	}
	raw, err := os.ReadFile(k.file)
	if err != nil {
		return false, err
	}
	var file struct {
		Keys []Key `json:"keys"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return false, fmt.Errorf("%s: %w", k.file, err)
	}
	all := map[string]*Key{}
	for _, key := range file.Keys {
		if n, err := hex.Decode(key.sum[:], []byte(key.Hash)); err != nil || n != sha256.Size {
			return false, fmt.Errorf("%s: key %s: sha256 is no digest", k.file, key.ID)
		}
		if at, ok := k.ended[key.ID]; ok && key.Revoked.IsZero() {
			key.Revoked = at
		}
		if was := k.all[key.ID]; was != nil && reflect.DeepEqual(*was, key) {
			all[key.ID] = was
			continue
		}
		all[key.ID] = &key
	}
	k.all, k.read = all, info
	for id, key := range all {
		if !key.Revoked.IsZero() {
			k.end(id, key.Revoked)
		}
	}
	return true, nil
}

// Create makes a key, and returns it: the only time that anybody sees it.
func (k *Keys) Create(key Key) (secret string, made Key, err error) {
	if key.Principal == "" {
		return "", Key{}, errors.New("a key needs a principal")
	}
	random := make([]byte, 32+9)
	for again := true; again; again = strings.ContainsAny(key.ID, "-_") { // _ parts the key, and commands take - for a flag
		rand.Read(random) // never fails
		key.ID = base64.RawURLEncoding.EncodeToString(random[32:])
	}
	secret = apikey.Compose(key.ID, base64.RawURLEncoding.EncodeToString(random[:32]))
	key.sum = sha256.Sum256([]byte(secret))
	key.Hash, key.Created = hex.EncodeToString(key.sum[:]), k.now().UTC().Truncate(time.Second)
	return secret, key, k.change(func(all map[string]*Key) error {
		all[key.ID] = &key
		return nil
	})
}

// ErrNoKey is the error for a key that is not there.
var ErrNoKey = errors.New("there is no such key")

// end remembers that a key is revoked. Callers hold mu.
func (k *Keys) end(id string, at time.Time) {
	if k.ended == nil {
		k.ended = map[string]time.Time{}
	}
	k.ended[id] = at
}

// Revoke ends a key for good. It stays in the list. If the file cannot be written, the error says
// so, and the key is refused until this process ends.
func (k *Keys) Revoke(id string) error {
	k.mu.Lock()
	if key := k.all[id]; key != nil && key.Revoked.IsZero() {
		ended := *key
		ended.Revoked = k.now().UTC().Truncate(time.Second)
		k.all[id] = &ended
		k.end(id, ended.Revoked)
	}
	k.mu.Unlock()
	err := k.change(func(all map[string]*Key) error {
		was, ok := all[id]
		if !ok {
			return ErrNoKey
		}
		if key := *was; key.Revoked.IsZero() {
			key.Revoked = k.now().UTC().Truncate(time.Second)
			all[id] = &key
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrNoKey) {
		return fmt.Errorf("the key is refused until the gateway ends, and no longer: %w", err)
	}
	return err
}

// List returns all keys, the oldest first.
func (k *Keys) List() []Key {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := make([]Key, 0, len(k.all))
	for _, key := range k.all {
		list = append(list, *key)
	}
	slices.SortFunc(list, func(a, b Key) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// change writes the file anew, whole or not at all, and beside no other process that does.
func (k *Keys) change(f func(map[string]*Key) error) error {
	if err := os.MkdirAll(filepath.Dir(k.file), 0o700); err != nil {
		return err
	}
	unlock, err := files.LockBeside(k.file)
	if err != nil {
		return err
	}
	defer unlock()
	if err := k.Reload(); err != nil {
		return err
	}
	k.mu.RLock()
	all := maps.Clone(k.all)
	k.mu.RUnlock()
	if all == nil {
		all = map[string]*Key{}
	}
	if err := f(all); err != nil {
		return err
	}
	list := (&Keys{all: all}).List()
	raw, err := json.MarshalIndent(map[string]any{"keys": list}, "", "  ")
	if err != nil {
		return err
	}
	if err := files.ReplaceSynced(k.file, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return k.Reload()
}

// find returns the key that a text is, if it is one that holds.
func (k *Keys) find(text string) (*Key, *Refusal) {
	id, ok := apikey.ID(text)
	if !ok {
		return nil, invalid("no API key: its form is wrong")
	}
	k.mu.RLock()
	key, known := k.all[id]
	k.mu.RUnlock()
	sum, want := sha256.Sum256(bytesOf(text)), [sha256.Size]byte{}
	if known {
		want = key.sum
	}
	// Compared also when the key is not known: nobody learns by time which ids there are.
	if same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1; !known || !same {
		return nil, invalid("no API key of this gateway")
	}
	switch {
	case !key.Revoked.IsZero():
		return nil, invalid("API key %s is revoked", id)
	case !key.Expires.IsZero() && k.now().After(key.Expires):
		return nil, expired("API key %s ended at %s", id, key.Expires.UTC().Format(time.RFC3339))
	}
	return key, nil
}
