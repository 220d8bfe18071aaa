package gateway

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/sandbox"
)

// machine is what runs sandboxed tools and servers.
type machine struct {
	runtime *sandbox.Runtime // nil if there is nothing to run
	dial    *dial.Client
	kv      *kv.Store
}

func (m *machine) open(ctx context.Context, c *Config) (err error) {
	m.dial = dial.New(c.Dial)
	if m.kv, err = kv.Open(c.KVDir, kv.Options{Shared: c.KV}); err != nil {
		return err
	}
	m.runtime, err = sandbox.New(ctx, sandbox.Config{CacheDir: c.CacheDir, UsageFile: usageFile(c.KVDir), Log: c.Log})
	return err
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
