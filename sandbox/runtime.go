package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/internal/compiler"
	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
	"github.com/wasmgate/wasmgate/sandbox/internal/image"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
	"github.com/wasmgate/wasmgate/sandbox/internal/turns"
	"github.com/wasmgate/wasmgate/sandbox/internal/usage"
	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// Config configures a [Runtime]. The zero Config is usable.
type Config struct {
	// Limits are those of modules that state no own ones.
	Limits Limits
	// Concurrent is how many calls are under way at once, over all modules, those that
	// wait for their host included; each may hold Limits.Memory. Zero means 64. Of each
	// module Limits.Concurrent are, and one in any case. Further ones wait, modules and
	// their callers in turn, until their time is over. As many run as there were
	// processors when the program began, also in turn.
	Concurrent int
	// CacheDir keeps compiled code between processes. It is made if need be, and must be open to no
	// one else (0700): anyone that writes there can run code here. Entries that were not used for a
	// month are removed, and those beyond 2 GiB. Empty means one that ends with the runtime.
	CacheDir string
	// UsageFile keeps how many bytes modules have added to folders between processes.
	// Empty begins at nothing.
	UsageFile string
	// Log takes what guests write to stderr. Nil discards it.
	Log *slog.Logger
}

// A Runtime compiles and runs modules. Its methods may be used from several
// goroutines.
type Runtime struct {
	preparer
	engine  wazero.Runtime
	limits  Limits
	written *usage.Folders
	log     *slog.Logger
	places  *turns.Queue // of calls under way
	slots   *turns.Queue // of guests that run
	share   int          // places of a module that states none
	closed  atomic.Bool
	method  image.Method // by which memories are reset

	loading sync.Mutex

	sessions sessions
	tidying  chan struct{} // closed by the end
	ended    sync.Once

	mu      sync.Mutex
	working int                  // modules that serve or are compiled
	idle    chan struct{}        // closed once the runtime is closed and there are none
	modules map[*Module]struct{} // that are open
	code    int64                // bytes of their machine code
	maxCode int64
}

const (
	defaultConcurrent = 64
	shares            = 4 // a module has this part of the places
)

// New returns a Runtime. It must be closed.
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	limits, err := cfg.Limits.or(defaultLimits())
	if err != nil {
		return nil, err
	}
	if cfg.Concurrent < 0 {
		return nil, errors.New("sandbox: Concurrent is negative")
	}
	places := cmp.Or(cfg.Concurrent, defaultConcurrent)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	// Neither time nor memory is bounded here, for all modules alike, but by
	// each call's meter and allocator. WithCloseOnContextDone looks at the time
	// in loops only, and at many times the cost.
	r := &Runtime{
		limits: limits, log: cfg.Log, places: turns.NewQueue(places, true), slots: turns.NewQueue(turns.Processors, false), share: max(1, places/shares),
		preparer: preparer{host: functions{}}, modules: map[*Module]struct{}{}, maxCode: maxCode, method: image.Detect(),
		sessions: sessions{by: map[sessionKey]*session{}, most: maxSessionBytes}, tidying: make(chan struct{}), idle: make(chan struct{}),
	}
	if r.written, err = usage.Open(cfg.UsageFile, cfg.Log); err != nil {
		return nil, err
	}
	if r.cache, err = compiler.Open(cfg.CacheDir); err != nil {
		return nil, fmt.Errorf("sandbox: open the compile cache: %w", err)
	}
	r.engine = wazero.NewRuntimeWithConfig(ctx, compiler.Config().WithCompilationCache(r.cache.Engine()))
	if err := r.provide(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: set up the host's functions: %w", err), r.Close(ctx))
	}
	go r.tidy() // ends with Close
	return r, nil
}

// idleInstance is after what time an instance that no call uses gives its memory back.
const idleInstance = 2 * time.Minute

// tidy drops from time to time what was not used for long.
func (r *Runtime) tidy() {
	tick := time.NewTicker(idleInstance / 4)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.trim(now)
		case <-r.tidying:
			return
		}
	}
}

func (r *Runtime) trim(now time.Time) {
	ctx := context.Background() // of no call
	r.mu.Lock()
	for m := range r.modules {
		before := now.Add(-idleInstance)
		_ = drop(ctx, m.instances.trim(before), m.memories.trim(before)) // only unmaps
		if m.standbys != nil {
			m.standbys.trim(before)
		}
	}
	r.mu.Unlock()
	r.sessions.endAll(ctx, func(one *session) bool { return one.users == 0 && now.Sub(one.used) > idleSession })
}

// provide makes what guests may import.
func (r *Runtime) provide(ctx context.Context) error {
	if err := wasi.Instantiate(ctx, r.engine, func(ctx context.Context) (context.Context, *wasi.Process) {
		c := ctx.Value(callKey{}).(*call)
		if c.standby != nil {
			c.standby.engine = ctx
		}
		return c, c.process
	}); err != nil {
		return err
	}
	if err := errors.Join(provideHost(ctx, r.engine), provideMeter(ctx, r.engine), extism.Instantiate(ctx, r.engine, pluginOf)); err != nil {
		return err
	}
	for _, module := range []string{wasiModule, unstableModule, hostModule, extism.EnvModule, extism.UserModule} {
		r.host[module] = map[string]api.FunctionDefinition{}
		for _, f := range r.engine.Module(module).ExportedFunctionDefinitions() {
			r.host[module][f.ExportNames()[0]] = f
		}
	}
	return nil
}

// begin counts a module that serves or is compiled, until end.
func (r *Runtime) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return turns.ErrClosed
	}
	r.working++
	return nil
}

func (r *Runtime) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.working--; r.closed.Load() && r.working == 0 {
		close(r.idle)
	}
}

// Close refuses further calls, waits for the running ones until ctx ends, and
// frees what the runtime holds. Modules that serve or are
// compiled end by their own contexts. It may be called again, also after an error.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed.Swap(true) && r.working == 0 {
		close(r.idle)
	}
	r.mu.Unlock()
	if err := await(ctx, r.idle); err != nil {
		return fmt.Errorf("sandbox: wait for modules that serve or are compiled: %w", err)
	}
	r.places.Close()
	if err := await(ctx, r.places.Empty()); err != nil {
		return fmt.Errorf("sandbox: wait for running calls: %w", err)
	}
	r.mu.Lock()
	open := slices.Collect(maps.Keys(r.modules))
	r.mu.Unlock()
	r.ended.Do(func() { close(r.tidying) })
	var err error
	for _, m := range open {
		err = errors.Join(err, m.Close(ctx))
	}
	return errors.Join(err, r.written.Save(), r.engine.Close(ctx), r.cache.Close(ctx))
}

// ChildMain compiles a module if this process was started for that, and does not return
// then. A program calls it first thing in main, so that a module which takes too much to
// compile costs a child of it, and not the program. Without that modules are compiled in this
// process, under a quarter of the bounds. Unless the environment sets GOMAXPROCS,
// it is one more from then on: guests have all processors, and Go cannot interrupt them,
// but the system's scheduler can.
func ChildMain() {
	compiler.Main()
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(turns.Processors + 1)
	}
}

// maxCode is how many bytes of machine code all modules of a runtime may have, those
// being replaced included.
const maxCode = 1 << 30

// keep notes a module with its machine code, so that it ends with the runtime.
func (r *Runtime) keep(m *Module) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return turns.ErrClosed
	}
	if r.code+m.code > r.maxCode {
		return &rewrite.CostError{Reason: fmt.Sprintf("it has %d bytes of machine code, the modules that are loaded have %d, and all together may have %d", m.code, r.code, r.maxCode)}
	}
	r.code += m.code
	r.modules[m] = struct{}{}
	return nil
}

func (r *Runtime) forget(m *Module) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.modules[m]; ok {
		r.code -= m.code
		delete(r.modules, m)
	}
}

// await waits for done, until ctx ends. If done is closed already, ctx does not matter.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// provideMeter makes the function that metered modules import.
func provideMeter(ctx context.Context, engine wazero.Runtime) error {
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := engine.NewHostModuleBuilder(rewrite.MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), i64, i64).Export(rewrite.MeterFunction).Instantiate(ctx)
	return err
}
