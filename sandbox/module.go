package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/internal/compiler"
	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
	"github.com/wasmgate/wasmgate/sandbox/internal/image"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
	"github.com/wasmgate/wasmgate/sandbox/internal/turns"
	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// ModuleConfig configures a [Module]. The zero ModuleConfig suits a module
// that carries its manifest and needs no grants.
type ModuleConfig struct {
	// Name is used in errors and logs, for example the path of the module.
	Name string
	// Manifest is that of a module which does not carry one. If it does, both have to say
	// the same: which of them holds would be a guess.
	Manifest *Manifest
	// Limits take precedence over those of the runtime, field by field, and over
	// those of the manifest, which without them can only be stricter.
	Limits Limits
	Grants Grants
	// Isolation takes precedence over that of the manifest, which cannot choose
	// [IsolationSession].
	Isolation Isolation
	// Args take precedence over those of the manifest, if they are not nil.
	Args []string
	// Server says that the module is an MCP server, a WASI command that speaks on
	// its standard streams: it is run by [Module.Serve], and has no manifest.
	Server bool
}

// A Module is compiled code with its tools. It may be used from several
// goroutines, and belongs to the [Runtime] that compiled it.
type Module struct {
	runtime    *Runtime
	compiled   wazero.CompiledModule
	code       int64 // bytes of its machine code
	name       string
	kind       kind
	version    extism.Version // of a plug-in; zero if it is plain
	plain      bool           // a plug-in whose functions are its tools
	tools      []Tool
	limits     Limits
	grants     Grants
	wasi       bool // whether it imports from WASI
	env        []string
	dirs       []wasi.Dir
	isolation  Isolation
	note       string // for the operator
	manifest   Manifest
	point      Snapshot
	warm       *Sample
	invocation invocation
	standbys   *standbys // of a command that waits for its input; nil if it does not
	places     *turns.Lane
	slots      *turns.Lane

	server      bool
	nonblocking bool // its stdin does not block: its language waits in another way

	sealed    *rewrite.Sealed // without its code; nil if the module cannot be sealed
	unfit     string          // why it cannot
	minMemory int64

	snapshot  atomic.Pointer[snapshot]
	preparing chan struct{} // holds a token while the snapshot is taken
	instances pool[*instance]
	memories  pool[*image.Memory] // of instances that are gone, as the snapshot says
}

// Compile checks and compiles a module. No code of the module runs, but that of
// an Extism plug-in without a manifest, which is asked for its tools.
//
// It refuses what is no core module (with an error of its own for a component), what is too large
// or too costly to compile, what imports more than functions of WASI preview 1 and those that are
// granted, what follows no ABI of the package, and what starts with more memory than its limits
// allow; the error says so. Unless the cache holds its code, compiling a large module takes
// seconds, one module at a time. It is a child process that compiles, which ends with ctx, if the
// program has called [ChildMain].
func (r *Runtime) Compile(ctx context.Context, wasm []byte, cfg ModuleConfig) (*Module, error) {
	return r.compile(ctx, bytesOf(wasm), cfg)
}

// Compiled reports whether the cache holds the machine code of a module, so that
// [Runtime.Compile] takes no more than milliseconds, or refuses it at once.
func (r *Runtime) Compiled(wasm []byte) bool {
	from := bytesOf(wasm)
	if r.cache.Has(from.key) {
		return true
	}
	p, err := r.look(from)
	return err != nil || r.rewrite(p) != nil || r.cache.HasCode(p.wasm) // another program may have left it
}

// compile is [Runtime.Compile] for a module that may be in the cache. If another process has just
// removed files there, they are made again.
func (r *Runtime) compile(ctx context.Context, from origin, cfg ModuleConfig) (m *Module, err error) {
	for range 2 {
		if m, err = r.module(ctx, from, cfg); !errors.Is(err, compiler.ErrGone) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: compile module %q: %w", cfg.Name, err)
	}
	return m, nil
}

func (r *Runtime) module(ctx context.Context, from origin, cfg ModuleConfig) (_ *Module, err error) {
	defer func() {
		if p := recover(); p != nil { // a defect of the engine that a module can reach is that module's end only
			err = fmt.Errorf("panic in the engine: %v", p)
		}
	}()
	p, err := r.look(from)
	if err != nil {
		return nil, err
	}
	manifest, noManifest := choose(cfg.Manifest, p.Manifest)
	if err := r.host.refused(p.Imports, cfg.Grants, cfg.Server, manifest); err != nil {
		return nil, err
	}
	if err := r.rewrite(p); err != nil {
		return nil, err
	}
	m := &Module{runtime: r, name: cfg.Name, minMemory: p.MinMemory, sealed: p.Sealed, unfit: p.Unfit, server: cfg.Server, nonblocking: p.Go}
	m.wasi = imports(p.Imports, func(module string) bool { return module == wasiModule || module == unstableModule })
	if noManifest != nil && !(errors.Is(noManifest, errNoManifest) && (cfg.Server || imports(p.Imports, extism.IsPlugin))) {
		return nil, noManifest
	}
	if err := m.configure(cfg, manifest); err != nil {
		return nil, err
	}
	if err := m.load(ctx, from, p); err != nil {
		return nil, errors.Join(err, m.closeDirs())
	}
	if err := m.settle(ctx, manifest); err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return m, nil
}

// load has the cache hold the module's machine code, and the engine load it.
func (m *Module) load(ctx context.Context, from origin, p *prepared) (err error) {
	r := m.runtime
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	if err := r.fill(ctx, from, p); err != nil {
		return err
	}
	m.code = p.code.Size
	if err := r.keep(m); err != nil {
		return err
	}
	r.loading.Lock() // an engine shares what it has in memory, also what is not to be used
	defer r.loading.Unlock()
	m.compiled, err = r.engine.CompileModule(ctx, p.code.Outline)
	if err = r.cache.Loaded(p.code, err); err != nil {
		r.forget(m)
		if m.compiled != nil {
			err = errors.Join(err, m.compiled.Close(ctx))
		}
	}
	return err
}

// configure applies the settings of the operator and of the manifest to the module.
func (m *Module) configure(cfg ModuleConfig, manifest Manifest) error {
	wanted, err := manifest.limits()
	if err != nil {
		return err
	}
	m.note = beyond(wanted, m.runtime.limits, cfg.Limits)
	if wanted, err = wanted.narrowed(m.runtime.limits); err != nil { // what asks does not get more for it
		return err
	}
	if m.limits, err = cfg.Limits.or(wanted); err != nil {
		return err
	}
	if m.minMemory > m.limits.Memory {
		return fmt.Errorf("it starts with %d bytes of memory, its limit is %d", m.minMemory, m.limits.Memory)
	}
	m.manifest, m.tools, m.warm, m.grants = manifest, manifest.Tools, manifest.Warm, cfg.Grants
	if manifest.Isolation == IsolationSession && cfg.Isolation == "" {
		manifest.Isolation, m.note = IsolationCall, strings.TrimPrefix(m.note+"; "+sessionNote, "; ")
	}
	m.invocation = invocation{args: manifest.Args, stdin: manifest.Stdin, text: manifest.Stdout == stdoutText}
	if cfg.Args != nil {
		m.invocation.args = cfg.Args
	}
	m.isolation = cmp.Or(cfg.Isolation, manifest.Isolation, IsolationCall)
	m.preparing = make(chan struct{}, 1)
	m.places = turns.NewLane(m.runtime.places, cmp.Or(m.limits.Concurrent, m.runtime.share))
	m.slots = turns.NewLane(m.runtime.slots, math.MaxInt)
	m.instances.most, m.memories.most = keptInstances(), keptInstances()
	for _, k := range slices.Sorted(maps.Keys(cfg.Grants.Config)) {
		m.env = append(m.env, k+"="+cfg.Grants.Config[k])
	}
	return m.open(cfg.Grants.Dirs)
}

// uninitialized is the note on a reactor that was built as a command.
const uninitialized = "it exports _start and no _initialize, so nothing initializes its runtime, and each call of a Go module traps: build it with -buildmode=c-shared"

// sessionNote tells that a wish of a manifest has no effect: what is kept between calls
// is memory of the host.
const sessionNote = "its manifest has isolation: session, which is the configuration's to choose (isolation: session); each call begins in the state of the snapshot"

// beyond tells which limits a manifest wants in vain: those that are more than it can get, and that
// the configuration has not set.
func beyond(wanted, most, set Limits) string {
	var vain []string
	if wanted.Timeout > most.Timeout && set.Timeout == 0 {
		vain = append(vain, "timeout: "+wanted.Timeout.String())
	}
	if wanted.Memory > most.Memory && set.Memory == 0 {
		vain = append(vain, fmt.Sprintf("memory: %dMiB", wanted.Memory>>20))
	}
	if wanted.Fuel > most.Fuel && set.Fuel == 0 {
		vain = append(vain, fmt.Sprintf("fuel: %d", wanted.Fuel))
	}
	if vain == nil {
		return ""
	}
	return fmt.Sprintf("its manifest has more than the default limits, which only the configuration can allow (limits: {%s})", strings.Join(vain, ", "))
}

// Note returns what the operator should know of the module, "" if there is nothing.
func (m *Module) Note() string { return m.note }

// open opens the directories that are granted.
func (m *Module) open(dirs []Dir) error {
	for _, d := range dirs {
		if !filepath.IsAbs(d.Path) {
			return errors.Join(fmt.Errorf("the granted directory %q is not an absolute path", d.Path), m.closeDirs())
		}
		as := cmp.Or(d.As, d.Path)
		if d.As != "" && d.As != "." && (d.As[0] != '/' || path.Clean(d.As) != d.As) || slices.ContainsFunc(m.dirs, func(o wasi.Dir) bool { return o.Path == as }) {
			return errors.Join(fmt.Errorf("the granted directory %q should appear as %q, which is not a clean absolute path, not ., or the name of another", d.Path, as), m.closeDirs())
		}
		root, err := os.OpenRoot(d.Path)
		if err != nil {
			return errors.Join(fmt.Errorf("open a granted directory: %w", err), m.closeDirs())
		}
		m.dirs = append(m.dirs, wasi.Dir{Path: as, Write: d.Write, Root: root, Usage: m.runtime.written.Usage(m.name, d.Path)})
	}
	return nil
}

func (m *Module) closeDirs() error {
	var errs []error
	for _, d := range m.dirs {
		errs = append(errs, d.Root.Close())
	}
	m.dirs = nil
	return errors.Join(errs...)
}

// settle decides what depends on the ABI that the compiled module follows.
func (m *Module) settle(ctx context.Context, manifest Manifest) (err error) {
	if m.kind, err = m.runtime.host.checkSignatures(m.compiled); err != nil {
		return err
	}
	if exports := m.compiled.ExportedFunctions(); m.kind == reactor && exports[exportStart] != nil && exports[exportInit] == nil {
		m.note = strings.TrimPrefix(m.note+"; "+uninitialized, "; ")
	}
	if m.kind == plugin {
		if err = m.followPlugin(); err != nil {
			return err
		}
	}
	if m.isolation == IsolationSession && m.kind == command {
		return errors.New("isolation: session works only for reactors, because a WASI command ends with each call")
	}
	if m.server && m.kind != command {
		return errors.New("a module that is a server must be a WASI command, but this one does not export _start")
	}
	if m.kind != command && (m.invocation.text || m.invocation.filled()) {
		return errors.New("stdin, stdout: text and arguments of the call in args work only for WASI commands")
	}
	m.point = SnapshotInit
	if m.kind == command {
		m.point = SnapshotInst
	}
	m.point = cmp.Or(manifest.Snapshot, m.point)
	if m.kind == command && m.point == SnapshotWarm {
		return errors.New("snapshot: warm works only for reactors, because a WASI command ends with each call")
	}
	if m.point == SnapshotInput {
		if m.kind != command || !m.wasi {
			return errors.New("snapshot: input works only for WASI commands; choose another snapshot in the manifest")
		}
		m.standbys, m.point = new(standbys), SnapshotInst
	}
	if m.sealed == nil {
		m.point = SnapshotInst
	}
	if m.kind == plugin && m.tools == nil {
		m.tools, err = m.list(ctx)
	}
	for _, t := range m.tools {
		if m.plain && err == nil {
			err = m.checkExport(t.Name)
		}
	}
	return err
}

func (m *Module) sealedGlobals() int {
	if m.sealed == nil {
		return 0
	}
	return m.sealed.Globals
}

// keptInstances is how many instances of a module wait for their next call: as many run
// at once, and some wait for their host.
func keptInstances() int { return 2 * turns.Processors }

// Manifest returns the manifest by which the module was compiled: the one that was given for
// it, or the one that it carries. It is the zero Manifest if there is none.
func (m *Module) Manifest() Manifest { return m.manifest }

// Tools returns the definitions of the module's tools, in the order of its
// manifest. They are the module's own claims: unchecked but for their form.
func (m *Module) Tools() []Tool { return slices.Clone(m.tools) }

// drop frees instances and memories that are not used.
func drop(ctx context.Context, instances []*instance, memories []*image.Memory) error {
	var errs []error
	for _, in := range instances {
		errs = append(errs, in.close(ctx).Close())
	}
	for _, memory := range memories {
		errs = append(errs, memory.Close())
	}
	return errors.Join(errs...)
}

// Close frees what the module holds. No call of it may run, and it must not be
// called again.
func (m *Module) Close(ctx context.Context) error {
	m.runtime.forget(m)
	if m.standbys != nil {
		m.standbys.close()
	}
	m.runtime.sessions.endAll(ctx, func(one *session) bool { return one.key.module == m })
	errs := []error{drop(ctx, m.instances.drain(), m.memories.drain())}
	if s := m.snapshot.Swap(nil); s != nil {
		errs = append(errs, s.image.Close())
	}
	return errors.Join(append(errs, m.closeDirs(), m.compiled.Close(ctx))...)
}
