package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sync/semaphore"
)

// Limits bound one call. Zero fields mean the defaults named here; negative
// ones are an error.
type Limits struct {
	// Timeout is the wall time from instantiation to result. Zero means 5 s.
	Timeout time.Duration
	// Fuel is how many instructions the guest may execute; package rewrite says
	// how they are counted. Zero means 10^14, which takes any guest a quarter
	// of an hour or more: unless Fuel is set, Timeout ends a call.
	Fuel uint64
	// Memory is the size in bytes to which the guest's linear memory may grow,
	// rounded down to whole WASM pages of 64 KiB. Zero means 64 MiB; 4 GiB is
	// the most there can be.
	Memory int64
	// Output is the size in bytes of what the tool returns. Zero means 1 MiB.
	Output int64
	// Log is how many bytes of the guest's stderr are kept; the rest of it is
	// dropped. Zero means 16 KiB.
	Log int64
}

const (
	pageSize  = 64 << 10
	maxMemory = 65536 * pageSize // what 32-bit addresses reach
)

// or returns l with its zero fields taken from fallback.
func (l Limits) or(fallback Limits) (Limits, error) {
	if l.Timeout < 0 || l.Memory < 0 || l.Output < 0 || l.Log < 0 {
		return l, errors.New("sandbox: a limit is negative")
	}
	if l.Timeout == 0 {
		l.Timeout = fallback.Timeout
	}
	if l.Fuel == 0 {
		l.Fuel = fallback.Fuel
	}
	if l.Memory == 0 {
		l.Memory = fallback.Memory
	}
	if l.Output == 0 {
		l.Output = fallback.Output
	}
	if l.Log == 0 {
		l.Log = fallback.Log
	}
	l.Fuel = min(l.Fuel, math.MaxInt64)
	l.Memory = min(l.Memory, maxMemory) / pageSize * pageSize
	return l, nil
}

// Config configures a [Runtime]. The zero Config is usable.
type Config struct {
	// Limits are those of modules that state no own ones.
	Limits Limits
	// Concurrent is how many calls and compilations run at once, over all
	// modules; further ones wait until their context ends. Each may hold Limits.Memory. Zero means
	// twice GOMAXPROCS.
	Concurrent int
	// CacheDir keeps compiled code between processes. It is made if need be, and
	// must be open to nobody else (0700): who writes there runs code here.
	// Empty keeps nothing.
	CacheDir string
	// Log takes what guests write to stderr. Nil discards it.
	Log *slog.Logger
}

// A Runtime compiles and runs modules. Its methods may be used from several
// goroutines.
type Runtime struct {
	engine wazero.Runtime
	cache  wazero.CompilationCache // nil without a CacheDir
	wasi   map[string]api.FunctionDefinition
	limits Limits
	log    *slog.Logger
	slots  *semaphore.Weighted
	size   int64 // how many slots there are
	closed atomic.Bool
}

var errClosed = errors.New("sandbox: the runtime is closed")

// New returns a Runtime. It must be closed.
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	limits, err := cfg.Limits.or(Limits{Timeout: 5 * time.Second, Fuel: 1e14, Memory: 64 << 20, Output: 1 << 20, Log: 16 << 10})
	if err != nil {
		return nil, err
	}
	if cfg.Concurrent < 0 {
		return nil, errors.New("sandbox: Concurrent is negative")
	}
	size := int64(cfg.Concurrent)
	if size == 0 {
		size = 2 * int64(runtime.GOMAXPROCS(0))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	// Neither time nor memory is bounded here, for all modules alike, but by
	// each call's meter and allocator. WithCloseOnContextDone looks at the time
	// in loops only, and at many times the cost.
	engineConfig := wazero.NewRuntimeConfig().WithDebugInfoEnabled(false)
	r := &Runtime{limits: limits, log: cfg.Log, slots: semaphore.NewWeighted(size), size: size, wasi: map[string]api.FunctionDefinition{}}
	if cfg.CacheDir != "" {
		if r.cache, err = openCache(cfg.CacheDir); err != nil {
			return nil, err
		}
		engineConfig = engineConfig.WithCompilationCache(r.cache)
	}
	r.engine = wazero.NewRuntimeWithConfig(ctx, engineConfig)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r.engine); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: set up WASI: %w", err), r.Close(ctx))
	}
	if err := provideMeter(ctx, r.engine); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: set up the meter: %w", err), r.Close(ctx))
	}
	for _, f := range r.engine.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions() {
		r.wasi[f.ExportNames()[0]] = f
	}
	return r, nil
}

func openCache(dir string) (wazero.CompilationCache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: make the compile cache: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("sandbox: look at the compile cache: %w", err)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 && runtime.GOOS != "windows" { // Windows has no such bits
		return nil, fmt.Errorf("sandbox: the compile cache %s is open to others (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("sandbox: open the compile cache: %w", err)
	}
	return cache, nil
}

// enter waits for a slot. Whoever gets one must release it.
func (r *Runtime) enter(ctx context.Context) error {
	if r.closed.Load() {
		return errClosed
	}
	if err := r.slots.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("sandbox: wait for one of %d slots: %w", r.size, err)
	}
	if r.closed.Load() {
		r.slots.Release(1)
		return errClosed
	}
	return nil
}

func (r *Runtime) leave() { r.slots.Release(1) }

// Close refuses further calls, waits for the running ones until ctx ends, and
// frees what the runtime holds. It may be called again, also after an error.
func (r *Runtime) Close(ctx context.Context) error {
	r.closed.Store(true)
	if err := r.slots.Acquire(ctx, r.size); err != nil {
		return fmt.Errorf("sandbox: wait for running calls: %w", err)
	}
	defer r.slots.Release(r.size)
	err := r.engine.Close(ctx)
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(ctx))
	}
	return err
}
