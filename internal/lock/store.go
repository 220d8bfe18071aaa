package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/files"
)

// maxRecord bounds what is kept of one server and maxDefinition one definition, in
// bytes: a server lists at most 10,000 tools, and a listing has at most 64 MiB.
const (
	maxRecord     = 16 << 20
	maxDefinition = 64 << 20
)

// store keeps in a folder what servers declared when they were first seen, for its
// owner alone: a record for each server, and definitions by digest. Several
// processes may use it at once.
type store struct{ dir string }

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

func (s store) path(server string) string { return filepath.Join(s.dir, server+".json") }

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
	if err == nil && r != nil && !more {
		return r.keys(), false, nil
	}
	if err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, false, err
	}
	unlock, err := files.LockBeside(filepath.Join(s.dir, ".pins"))
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if r, err = s.read(server); err != nil { // another process may have been faster
		return nil, false, err
	}
	first = r == nil
	switch {
	case first:
		r = &record{Format: recordFormat, Server: server}
	case !more:
		return r.keys(), false, nil
	}
	if err := s.insert(r, items, now); err != nil {
		return nil, false, err
	}
	return r.keys(), first, nil
}

// insert adds the items that are not in r yet, and writes it. Definitions are
// written first: whatever a record has can be shown.
func (s store) insert(r *record, items []Item, now time.Time) error {
	known, before := r.keys(), len(r.Seen)
	for _, i := range items {
		p := i.pin(r.Server)
		if _, ok := known[p.Key]; ok || i.Own || i.Asks {
			continue
		}
		if err := s.keep(i.Doc); err != nil {
			return err
		}
		r.Seen = append(r.Seen, seen{i.Kind, i.Name, p.Digest, now.UTC().Truncate(time.Second)})
	}
	if len(r.Seen) == before && before > 0 {
		return nil
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if len(b) > maxRecord {
		return fmt.Errorf("the record would have more than %d bytes", maxRecord)
	}
	return files.ReplaceSynced(s.path(r.Server), append(b, '\n'), 0o600)
}

// read returns the record of a server, or nil if there is none.
func (s store) read(server string) (*record, error) {
	b, err := readWhole(s.path(server), maxRecord)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(server), err)
	}
	if r.Format != recordFormat || r.Server != server {
		return nil, fmt.Errorf("%s is not a record of server %s that this version can read: upgrade wasmgate, or restore the file from a backup", s.path(server), server)
	}
	return r, nil
}

func (r *record) keys() map[Key]seen {
	keys := make(map[Key]seen, len(r.Seen))
	for _, one := range slices.Backward(r.Seen) { // the first of a name stands
		keys[Key{r.Server, one.Kind, one.Name}] = one
	}
	return keys
}

func (s store) definition(digest string) string {
	return filepath.Join(s.dir, "definitions", digest+".json")
}

// keep keeps a definition, so that a later one can be compared with it.
func (s store) keep(d gate.Doc) error {
	path := s.definition(d.Digest())
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(path, d.Canonical(), 0o600)
}

// find returns a definition that was kept, or an absent document.
func (s store) find(digest string) gate.Doc {
	b, err := readWhole(s.definition(digest), maxDefinition)
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
