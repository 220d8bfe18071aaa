package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// maxRecord bounds what is kept of one server and maxDefinition one definition, in
// bytes: a server lists at most 10,000 tools, and a listing has at most 64 MiB.
const (
	maxRecord     = 16 << 20
	maxDefinition = 64 << 20
)

// store keeps what servers declared when they were first seen: a record for each server, and
// definitions by digest. It is a folder of one gateway, for its owner only, or shared by several.
// Several processes may use it at once.
type store struct {
	dir    string
	shared Shared // nil for one gateway only
}

// document returns the one that holds the record of a server.
func (s store) document(server string) state.Document {
	if s.shared != nil {
		return s.shared(seenPrefix + server)
	}
	return state.File(filepath.Join(s.dir, server+".json"))
}

// A seen is a digest that was there when its server was first seen.
type seen struct {
	Kind   Kind      `json:"kind"`
	Name   string    `json:"name,omitempty"`
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
}

// record is what is kept of a server.
type record struct {
	Format int    `json:"format"`
	Server string `json:"server"`
	Seen   []seen `json:"seen"`
}

const recordFormat = 1

// trust returns what a server is trusted for. If it was never seen, that is the
// given items, which are kept; and if more is true they are added to what was kept
// before, but only where there is nothing of their name. First says that the
// server was never seen. On an error nothing is kept.
func (s store) trust(server string, items []Item, more bool, now time.Time) (trusted map[Key]seen, first bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("first trust of server %s cannot be kept: %w", server, err)
		}
	}()
	r, err := s.read(server)
	if err != nil || r != nil && !more {
		return r.keys(), false, err
	}
	for _, i := range items { // before the record: whatever that has can be shown
		if _, known := r.keys()[i.key(server)]; known || i.Own || i.Asks {
			continue
		}
		if err := s.keep(i.Doc); err != nil {
			return nil, false, err
		}
	}
	doc := s.document(server)
	err = doc.Change(context.Background(), func(raw []byte) ([]byte, error) {
		if r, err = parseRecord(doc, server, raw); err != nil { // another process may have been faster
			return nil, err
		}
		if first = r == nil; first {
			r = &record{Format: recordFormat, Server: server}
		} else if !more {
			return raw, nil
		}
		if !r.add(items, now) && !first {
			return raw, nil
		}
		b, err := json.MarshalIndent(r, "", " ")
		if err == nil && len(b) > maxRecord {
			err = fmt.Errorf("the record would have more than %d bytes", maxRecord)
		}
		return append(b, '\n'), err
	})
	if err != nil {
		return nil, false, err
	}
	return r.keys(), first, nil
}

// add adds the items that are not in the record yet, and reports whether there were any.
func (r *record) add(items []Item, now time.Time) (added bool) {
	known := r.keys()
	for _, i := range items {
		p := i.pin(r.Server)
		if _, ok := known[p.Key]; ok || i.Own || i.Asks {
			continue
		}
		r.Seen, added = append(r.Seen, seen{i.Kind, i.Name, p.Digest, now.UTC().Truncate(time.Second)}), true
	}
	return added
}

// read returns the record of a server, or nil if there is none.
func (s store) read(server string) (*record, error) {
	doc := s.document(server)
	raw, _, err := doc.Load(context.Background(), 0)
	if err != nil {
		return nil, err
	}
	return parseRecord(doc, server, raw)
}

func parseRecord(doc state.Document, server string, raw []byte) (*record, error) {
	if raw == nil {
		return nil, nil
	}
	r := new(record)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("%s: %w", doc.Name(), err)
	}
	if r.Format != recordFormat || r.Server != server {
		return nil, fmt.Errorf("%s is not a record of server %s that this version can read: upgrade wasmgate, or restore it from a backup", doc.Name(), server)
	}
	return r, nil
}

// keys returns what is in a record by name; nothing is in nil.
func (r *record) keys() map[Key]seen {
	if r == nil {
		return nil
	}
	keys := make(map[Key]seen, len(r.Seen))
	for _, one := range slices.Backward(r.Seen) { // the first of a name stands
		keys[Key{r.Server, one.Kind, one.Name}] = one
	}
	return keys
}

func (s store) definition(digest string) string {
	return filepath.Join(s.dir, "definitions", digest+".json")
}

// keep keeps a definition, so that a later one can be compared with it. One that is in the folder
// is in what is shared, too.
func (s store) keep(d gate.Doc) error {
	path := s.definition(d.Digest())
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if s.shared != nil {
		err := s.shared(definitionPrefix+d.Digest()).Change(context.Background(), func([]byte) ([]byte, error) { return d.Canonical(), nil })
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(path, d.Canonical(), 0o600)
}

// find returns a definition that was kept, or an absent document.
func (s store) find(digest string) gate.Doc {
	b, err := readWhole(s.definition(digest), maxDefinition)
	if errors.Is(err, os.ErrNotExist) && s.shared != nil {
		b, _, err = s.shared(definitionPrefix+digest).Load(context.Background(), 0)
	}
	if err != nil {
		return gate.Doc{}
	}
	d, err := gate.ParseDoc(b)
	if err != nil || d.Digest() != digest { // somebody has changed it
		return gate.Doc{}
	}
	return d
}

// readWhole reads a file of at most max bytes.
func readWhole(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%s has more than %d bytes", path, max)
	}
	return b, err
}

// The documents that gateways share: what a person has approved, as a lockfile; the record of
// each server; and definitions by digest.
const (
	approvedName     = "pins"
	seenPrefix       = "seen/"
	definitionPrefix = "definition/"
)

// Shared returns a document of a name that several gateways share.
type Shared func(name string) options.Document
