package kv

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/files"
)

const (
	// version is that of the files.
	version = 1
	// maxFile bounds what is read of a file, in bytes: the largest content there can
	// be, in base64 and with escaped keys, has less.
	maxFile = 16 * maxBytes
)

// A space is the content of one namespace.
type space struct {
	ns   options.ModuleNamespace
	path string // "" has no file

	mu      sync.Mutex
	entries map[string]entry // nil: not loaded
	bytes   int              // of all keys and values
}

type entry struct {
	Value   []byte    `json:"value"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

func (e entry) expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// content is what a file holds: a line with the hex SHA-256 of what follows, and
// this in JSON.
type content struct {
	Version int              `json:"version"`
	Tenant  string           `json:"tenant"`
	Tool    string           `json:"tool"`
	Entries map[string]entry `json:"entries"`
}

func (sp *space) get(key string, now time.Time) (entry, bool) {
	e, ok := sp.entries[key]
	if !ok || e.expired(now) {
		return entry{}, false
	}
	return e, true
}

func (sp *space) set(key string, e entry, now time.Time, o Options) error {
	sp.purge(now)
	old, had := sp.entries[key]
	count, size := len(sp.entries)+1, sp.bytes+len(key)+len(e.Value)
	if had {
		count, size = count-1, size-len(key)-len(old.Value)
	}
	if err := o.fit(count, size); err != nil {
		return err
	}
	sp.put(key, e)
	if err := sp.save(); err != nil {
		sp.drop(key)
		if had {
			sp.put(key, old)
		}
		return err
	}
	return nil
}

func (sp *space) remove(key string, now time.Time) (found bool, err error) {
	e, found := sp.get(key, now)
	if !found {
		return false, nil
	}
	sp.purge(now)
	sp.drop(key)
	if err := sp.save(); err != nil {
		sp.put(key, e)
		return false, err
	}
	return true, nil
}

func (sp *space) list(prefix string, now time.Time) []string {
	var keys []string
	for key, e := range sp.entries {
		if strings.HasPrefix(key, prefix) && !e.expired(now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// empty reports whether nothing is left. It takes the lock itself.
func (sp *space) empty(now time.Time) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.purge(now)
	return len(sp.entries) == 0
}

// purge drops what has expired.
func (sp *space) purge(now time.Time) {
	for key, e := range sp.entries {
		if e.expired(now) {
			sp.drop(key)
		}
	}
}

func (sp *space) put(key string, e entry) {
	sp.drop(key)
	sp.entries[key] = e
	sp.bytes += len(key) + len(e.Value)
}

func (sp *space) drop(key string) {
	if e, ok := sp.entries[key]; ok {
		sp.bytes -= len(key) + len(e.Value)
		delete(sp.entries, key)
	}
}

// load reads the file, once. Without one the space is empty.
func (sp *space) load() error {
	if sp.entries != nil {
		return nil
	}
	var c content
	if sp.path != "" {
		data, err := read(sp.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("kv: load namespace of tool %q: %w", sp.ns.Tool, err)
		default:
			if c, err = sp.decode(data); err != nil {
				return fmt.Errorf("kv: load namespace of tool %q: %s: %w: %w; restore the file, or remove it to start empty", sp.ns.Tool, sp.path, ErrCorrupt, err)
			}
		}
	}
	sp.entries = map[string]entry{}
	for key, e := range c.Entries {
		sp.put(key, e)
	}
	return nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile)) // a longer one loses its end, and its checksum
}

func (sp *space) decode(data []byte) (content, error) {
	sum, rest, _ := bytes.Cut(data, []byte("\n"))
	if string(sum) != checksum(rest) {
		return content{}, errors.New("the checksum does not match")
	}
	var c content
	if err := json.Unmarshal(rest, &c); err != nil {
		return content{}, err
	}
	if c.Version != version {
		return content{}, fmt.Errorf("version %d is not one that this program knows (%d)", c.Version, version)
	}
	if c.Tenant != sp.ns.Tenant || c.Tool != sp.ns.Tool {
		return content{}, fmt.Errorf("it belongs to tenant %q and tool %q", c.Tenant, c.Tool)
	}
	return c, nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// save writes the file under another name and renames it. An empty namespace has no file.
func (sp *space) save() error {
	if sp.path == "" {
		return nil
	}
	err := sp.replace()
	if err != nil {
		return fmt.Errorf("kv: save namespace of tool %q: %w", sp.ns.Tool, err)
	}
	return nil
}

func (sp *space) replace() error {
	if len(sp.entries) == 0 {
		if err := os.Remove(sp.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	body, err := json.Marshal(content{version, sp.ns.Tenant, sp.ns.Tool, sp.entries})
	if err != nil {
		return err
	}
	return files.Replace(sp.path, fmt.Appendf(nil, "%s\n%s", checksum(body), body), 0o600)
}
