package app_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
)

// TestSecret: a gateway makes its secret once, for its owner alone, and does not
// start with half of one.
func TestSecret(t *testing.T) {
	cfg := load(t, "version: 1\n")
	path := filepath.Join(cfg.State, "secret")
	start := func() error {
		a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
		if err != nil {
			return err
		}
		return a.Close(t.Context())
	}
	var secrets [][]byte
	for range 2 {
		if err := start(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, b)
	}
	if len(secrets[0]) != 32 || !bytes.Equal(secrets[0], secrets[1]) || bytes.Equal(secrets[0], make([]byte, 32)) {
		t.Errorf("%d bytes, then others: %v", len(secrets[0]), !bytes.Equal(secrets[0], secrets[1]))
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, secrets[0][:31], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), path+" is damaged: it has 31 bytes instead of 32; remove it") {
		t.Errorf("with half a secret: %v", err)
	}
}
