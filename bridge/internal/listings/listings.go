// Package listings keeps what each server listed last in files, so that the next run of the
// gateway can offer it while the server starts.
package listings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/files"
)

// A Listing is what a server listed at one time, as it wrote it.
type Listing struct {
	Format int `json:"format"`
	// Config identifies how the server was configured. A listing does not count for another
	// configuration.
	Config string `json:"config"`
	// TLSKey and Instructions are those of the server; empty if there are none.
	TLSKey       string   `json:"tls_key,omitempty"`
	Instructions gate.Doc `json:"instructions,omitzero"`
	// Capabilities are those that the server declared.
	Capabilities gate.Doc `json:"capabilities,omitzero"`

	Tools     []gate.Doc `json:"tools,omitempty"`
	Prompts   []gate.Doc `json:"prompts,omitempty"`
	Resources []gate.Doc `json:"resources,omitempty"`
	Templates []gate.Doc `json:"templates,omitempty"`
}

// format is that of the files which this version writes. Others are not read.
const format = 1

// A Store is a folder with a file for each server. Several processes may use one: what is
// saved last counts.
type Store struct{ Dir string }

// maxListing bounds the listing of one server, in bytes. A larger one is not kept.
const maxListing = 16 << 20

func (s Store) path(server string) string { return filepath.Join(s.Dir, server+".json") }

// Load returns what a server listed last with that configuration. It is false if that is not
// known; an error says that there is a file that cannot be used.
func (s Store) Load(server, config string) (l Listing, known bool, err error) {
	b, err := s.read(server)
	if errors.Is(err, os.ErrNotExist) {
		return Listing{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return Listing{}, false, fmt.Errorf("%s: %w", s.path(server), err)
	}
	return l, l.Format == format && l.Config == config, nil
}

// Save keeps what a server listed, in place of what it listed before.
func (s Store) Save(server string, l Listing) error {
	l.Format = format
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(b) > maxListing {
		return fmt.Errorf("the listing has %d bytes; at most %d are kept", len(b), maxListing)
	}
	if old, err := s.read(server); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return files.Replace(s.path(server), b, 0o600)
}

// read returns the file of a server.
func (s Store) read(server string) ([]byte, error) {
	f, err := os.Open(s.path(server))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxListing+1))
	if err == nil && len(b) > maxListing {
		err = fmt.Errorf("more than %d bytes", maxListing)
	}
	return b, err
}
