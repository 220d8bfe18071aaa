package vault

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// rows keep what is sealed.
type rows interface {
	// get returns a row, or [ErrNone].
	get(k Key) ([]byte, error)
	// put keeps a row in the place of what was there; nil removes it.
	put(k Key, sealed []byte) error
	// list returns what there is of a kind, also what does not open.
	list(kind string) ([]Key, error)
}

// folder has a file for each row, for its owner only.
type folder string

// A file is a row. All of Key is authenticated with what is sealed, so that what is kept for
// one principal or server opens nowhere else.
type file struct {
	Key
	Sealed []byte `json:"sealed"`
}

const suffix = ".json"

func (d folder) path(k Key) string {
	sum := sha256.Sum256(k.bytes())
	return filepath.Join(string(d), hex.EncodeToString(sum[:16])+suffix)
}

func (d folder) get(k Key) ([]byte, error) {
	raw, err := os.ReadFile(d.path(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	var r file
	if json.Unmarshal(raw, &r) != nil {
		return nil, ErrUnreadable
	}
	return r.Sealed, nil
}

func (d folder) put(k Key, sealed []byte) error {
	if sealed == nil {
		if err := os.Remove(d.path(k)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.Marshal(file{k, sealed})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(d.path(k), raw, 0o600)
}

func (d folder) list(kind string) (all []Key, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var r file
		raw, err := os.ReadFile(filepath.Join(string(d), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(raw, &r) == nil && r.Kind == kind && d.path(r.Key) == filepath.Join(string(d), e.Name()) {
			all = append(all, r.Key)
		}
	}
	return all, nil
}

// ErrAway says that what several gateways share cannot be read or written now.
var ErrAway = errors.New("the credentials that gateways share cannot be read or written")

// documents has a document for each row.
type documents struct {
	document func(name string) state.Document
	names    func(ctx context.Context, prefix string) ([]string, error)
}

const prefix = "vault/"

// Name returns the name of the document that has the row of a key.
func (k Key) Name() string {
	return prefix + strings.Join([]string{url.PathEscape(k.Kind), url.PathEscape(k.Server), url.PathEscape(k.Tenant), url.PathEscape(k.Principal)}, "/")
}

// KeyOf returns the key whose row a document of a name has.
func KeyOf(name string) (k Key, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return Key{}, false
	}
	for i, to := range []*string{&k.Kind, &k.Server, &k.Tenant, &k.Principal} {
		var err error
		if *to, err = url.PathUnescape(parts[i]); err != nil {
			return Key{}, false
		}
	}
	return k, true
}

func (d documents) get(k Key) (sealed []byte, err error) {
	raw, _, err := d.document(k.Name()).Load(context.Background(), 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	case raw == nil:
		return nil, ErrNone
	case json.Unmarshal(raw, &sealed) != nil:
		return nil, ErrUnreadable
	}
	return sealed, nil
}

func (d documents) put(k Key, sealed []byte) error {
	err := d.document(k.Name()).Change(context.Background(), func([]byte) ([]byte, error) {
		if sealed == nil {
			return nil, nil
		}
		return json.Marshal(sealed)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}

func (d documents) list(kind string) (all []Key, err error) {
	names, err := d.names(context.Background(), prefix+url.PathEscape(kind)+"/")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	for _, name := range names {
		if k, ok := KeyOf(name); ok {
			all = append(all, k)
		}
	}
	return slices.Clip(all), nil
}
