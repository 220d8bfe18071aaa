package app_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/logs"
)

// written takes writes of several goroutines.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestLogIsRead anew with the configuration, level and form, also by loggers made before; a
// level of the command line stays.
func TestLogIsRead(t *testing.T) {
	for fixed, want := range map[string][]string{
		"":      {`level=INFO msg=one a=1`, `"level":"DEBUG","msg":"two","g":{"a":1,"b":2}`},
		"error": {`"level":"ERROR","msg":"three","g":{"a":1}`},
	} {
		cfg := load(t, "version: 1\n")
		var w written
		var level *slog.Level
		if fixed != "" {
			level = new(slog.Level)
			if err := level.UnmarshalText([]byte(fixed)); err != nil {
				t.Fatal(err)
			}
		}
		log := logs.New(&w, cfg.Log, level)
		a, err := app.New(t.Context(), cfg, log, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(t.Context()) })
		plain, grouped := log.With("a", 1), log.WithGroup("g").With("a", 1)
		plain.Info("one")
		plain.Debug("nothing")
		write(t, filepath.Join(filepath.Dir(cfg.File), filepath.Base(cfg.File)), "version: 1\nlog: {level: debug, format: json}\n")
		if err := a.Reread(t.Context()); err != nil {
			t.Fatal(err)
		}
		grouped.Debug("two", "b", 2)
		grouped.Error("three")
		for _, line := range want {
			if !strings.Contains(w.String(), line) {
				t.Errorf("level %q: no %s in\n%s", fixed, line, w.String())
			}
		}
		if strings.Contains(w.String(), "nothing") || fixed != "" && strings.Contains(w.String(), "two") {
			t.Errorf("level %q: more than was asked for:\n%s", fixed, w.String())
		}
	}
}
