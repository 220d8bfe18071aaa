package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestDrain(t *testing.T) {
	for text, want := range map[string]time.Duration{"version: 1\n": config.DefaultDrain, "version: 1\ndrain: 2m\n": 2 * time.Minute, "version: 1\ndrain: 0s\n": 0, "version: 1\ndrain: 2h\n": 0} {
		file := filepath.Join(t.TempDir(), "wasmgate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, config.Options{})
		if (err != nil) != (want == 0) || err == nil && cfg.Drain != want {
			t.Errorf("%q: %v %v, want %v", text, cfg, err, want)
		}
	}
}
