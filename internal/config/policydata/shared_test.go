package policydata_test

import (
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestGrantsFile(t *testing.T) {
	storetest.Grants(t, func(t *testing.T) []state.Document {
		f := policydata.GrantsFile(filepath.Join(t.TempDir(), "grants.yaml"))
		return []state.Document{f, f, f}
	})
}
