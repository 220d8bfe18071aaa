package app

import (
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// records are the documents by which calls are refused.
type records struct {
	keys, revoked, paused state.Document
}

// recordsOf returns those of one gateway: files in its state folder.
func recordsOf(c *config.Config) records {
	file := func(name string) state.Document { return state.File(filepath.Join(c.State, name)) }
	return records{keys: file("keys.json"), revoked: file("revoked.json"), paused: file(paused.File)}
}
