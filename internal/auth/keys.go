package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/apikey"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// A Key is what the gateway keeps about an API key: not the key itself. Its principal is in the
// configuration; roles, groups and servers can only take rights away.
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

// Keys keeps API keys in a document that others may change, too: a command on a gateway that
// runs, or another gateway. It is read again by [Keys.Reread]. The methods may be called at the
// same time.
type Keys struct {
	doc state.Document
	now func() time.Time

	mu   sync.RWMutex
	all  map[string]*Key // a key that changes is another pointer
	read uint64          // the generation that was read
	// ended has the keys that were revoked while this process runs, and when. They stay revoked,
	// even if the document could not be written or an older one takes its place.
	ended map[string]time.Time
}

// OpenKeys reads a document of keys. One that is not there holds none.
func OpenKeys(ctx context.Context, doc state.Document) (*Keys, error) {
	k := &Keys{doc: doc, now: time.Now}
	_, err := k.Reread(ctx)
	return k, err
}

// Reread reads the document again if it has changed, and reports whether it had. If the document does
// not load, the keys stay as they were.
func (k *Keys) Reread(ctx context.Context) (changed bool, err error) {
	k.mu.RLock()
	seen := k.read
	k.mu.RUnlock()
	raw, generation, err := k.doc.Load(ctx, seen)
	if err != nil || generation == seen {
		return false, err
	}
	all, err := decodeKeys(raw)
	if err != nil {
		return false, fmt.Errorf("%s: %w", k.doc.Name(), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read != seen { // another call was faster, and may have read more
		return true, nil
	}
	for id, key := range all {
		if at, ok := k.ended[id]; ok && key.Revoked.IsZero() {
			key.Revoked = at
		}
		if was := k.all[id]; was != nil && reflect.DeepEqual(was, key) {
			all[id] = was
		}
		if !key.Revoked.IsZero() {
			k.end(id, key.Revoked)
		}
	}
	k.all, k.read = all, generation
	return true, nil
}

func decodeKeys(raw []byte) (map[string]*Key, error) {
	all := map[string]*Key{}
	if raw == nil {
		return all, nil
	}
	var content struct {
		Keys []*Key `json:"keys"`
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	for _, key := range content.Keys {
		if n, err := hex.Decode(key.sum[:], []byte(key.Hash)); err != nil || n != sha256.Size {
			return nil, fmt.Errorf("key %s: sha256 is not a digest", key.ID)
		}
		all[key.ID] = key
	}
	return all, nil
}

// Create makes a key, and returns it. It is not shown again.
func (k *Keys) Create(ctx context.Context, key Key) (secret string, made Key, err error) {
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
	return secret, key, k.change(ctx, func(all map[string]*Key) error {
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

// Revoke ends a key for good. It stays in the list. If that cannot be written, the error says
// so, and the key is refused until this process ends.
func (k *Keys) Revoke(ctx context.Context, id string) error {
	k.mu.Lock()
	if key := k.all[id]; key != nil && key.Revoked.IsZero() {
		ended := *key
		ended.Revoked = k.now().UTC().Truncate(time.Second)
		k.all[id] = &ended
		k.end(id, ended.Revoked)
	}
	k.mu.Unlock()
	err := k.change(ctx, func(all map[string]*Key) error {
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
		return fmt.Errorf("the revocation is not saved, so the key works again after a restart: %w; fix this and revoke the key again", err)
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

// change writes the document anew, and no other change comes in between.
func (k *Keys) change(ctx context.Context, f func(map[string]*Key) error) error {
	err := k.doc.Change(ctx, func(raw []byte) ([]byte, error) {
		all, err := decodeKeys(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.doc.Name(), err)
		}
		if err := f(all); err != nil {
			return nil, err
		}
		raw, err = json.MarshalIndent(map[string]any{"keys": (&Keys{all: all}).List()}, "", "  ")
		return append(raw, '\n'), err
	})
	if err != nil {
		return err
	}
	_, err = k.Reread(ctx)
	return err
}

// find returns the key that a text is, if it is one that holds.
func (k *Keys) find(text string) (*Key, *Refusal) {
	id, ok := apikey.ID(text)
	if !ok {
		return nil, invalid("it does not have the form of an API key")
	}
	k.mu.RLock()
	key, known := k.all[id]
	k.mu.RUnlock()
	sum, want := sha256.Sum256(bytesOf(text)), [sha256.Size]byte{}
	if known {
		want = key.sum
	}
	// Compared even if the key is not known: the time must not reveal which ids exist.
	if same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1; !known || !same {
		return nil, invalid("this gateway did not make this API key, or it was deleted")
	}
	switch {
	case !key.Revoked.IsZero():
		return nil, invalid("API key %s is revoked", id)
	case !key.Expires.IsZero() && k.now().After(key.Expires):
		return nil, expired("API key %s ended at %s", id, key.Expires.UTC().Format(time.RFC3339))
	}
	return key, nil
}
