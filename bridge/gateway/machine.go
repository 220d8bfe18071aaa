package gateway

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/internal/guest"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/sandbox"
)

// machine is what runs sandboxed tools and servers.
type machine struct {
	cfg     *Config
	life    context.Context  // of what it runs
	serving *sync.WaitGroup  // until the servers have ended
	runtime *sandbox.Runtime // nil if there is nothing to run
	dial    *dial.Client
	kv      *kv.Store
}

func (m *machine) open(ctx context.Context) (err error) {
	c := m.cfg
	m.dial = dial.New(c.Dial)
	if m.kv, err = kv.Open(c.KVDir, kv.Options{Shared: c.KV}); err != nil {
		return err
	}
	m.runtime, err = sandbox.New(ctx, sandbox.Config{CacheDir: c.CacheDir, UsageFile: usageFile(c.KVDir), Log: c.Log})
	return err
}

// reach is what modules can reach.
func (m *machine) reach() *guest.Reach { return &guest.Reach{Dial: m.dial, KV: m.kv, Log: m.cfg.Log} }

// later reports whether a module is better compiled in the background: compiling it takes time, and
// the caller need not know now whether it can be used.
func (m *machine) later(wasm []byte) bool { return m.cfg.LeaveOut && !m.runtime.Compiled(wasm) }

// embedded returns the tools that wasmgate brings along. Their code takes 40 MB,
// and seconds to compile when it is not in the cache: both wait until one of
// them is called, and end with the gateway.
func (m *machine) embedded() ([]options.LocalTool, error) {
	manifest, err := sandbox.EmbeddedToolsManifest()
	if err != nil {
		return nil, err
	}
	compiled := sync.OnceValues(func() (*sandbox.Module, error) { return sandbox.LoadEmbedded(m.life, m.runtime) })
	return m.reach().Tools(manifest.Tools, new(guest.Granted), func() (*sandbox.Module, func(), error) {
		code, err := compiled()
		return code, func() {}, err
	})
}

// endSession drops what modules have of a session whose client is gone.
func (m *machine) endSession(k gate.SessionKey) {
	if m.runtime != nil {
		m.runtime.EndSession(m.life, guest.SessionName(k))
	}
}

// usageFile is next to the folder of values.
func usageFile(kvDir string) string {
	if kvDir == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(kvDir), "written.json")
}

func (m *machine) close(ctx context.Context) error {
	var errs []error
	if m.runtime != nil {
		errs = append(errs, m.runtime.Close(ctx))
	}
	if m.kv != nil {
		errs = append(errs, m.kv.Close())
	}
	return errors.Join(errs...)
}

// A ModuleError says that a module cannot be used as it is configured: it is not a module, is a
// different one, or imports what it is not granted.
type ModuleError struct {
	Module string // its name in the configuration
	Err    error
}

func (e *ModuleError) Error() string { return "module " + e.Module + ": " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *ModuleError) Unwrap() error { return e.Err }
