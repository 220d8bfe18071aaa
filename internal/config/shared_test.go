package config_test

import (
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestGrantsFile(t *testing.T) {
	storetest.Grants(t, func(t *testing.T) []state.Document {
		f := config.GrantsFile(filepath.Join(t.TempDir(), "grants.yaml"))
		return []state.Document{f, f, f}
	})
}
