package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// signatures are the functions of preview 1 as its witx gives them: i and I
// are parameters of 32 and 64 bits. All but proc_exit return an errno.
var signatures = map[string]string{
	"args_get": "ii", "args_sizes_get": "ii", "environ_get": "ii", "environ_sizes_get": "ii",
	"clock_res_get": "ii", "clock_time_get": "iIi",
	"fd_advise": "iIIi", "fd_allocate": "iII", "fd_close": "i", "fd_datasync": "i", "fd_fdstat_get": "ii",
	"fd_fdstat_set_flags": "ii", "fd_fdstat_set_rights": "iII", "fd_filestat_get": "ii", "fd_filestat_set_size": "iI",
	"fd_filestat_set_times": "iIIi", "fd_pread": "iiiIi", "fd_prestat_get": "ii", "fd_prestat_dir_name": "iii",
	"fd_pwrite": "iiiIi", "fd_read": "iiii", "fd_readdir": "iiiIi", "fd_renumber": "ii", "fd_seek": "iIii",
	"fd_sync": "i", "fd_tell": "ii", "fd_write": "iiii",
	"path_create_directory": "iii", "path_filestat_get": "iiiii", "path_filestat_set_times": "iiiiIIi",
	"path_link": "iiiiiii", "path_open": "iiiiiIIii", "path_readlink": "iiiiii", "path_remove_directory": "iii",
	"path_rename": "iiiiii", "path_symlink": "iiiii", "path_unlink_file": "iii",
	"poll_oneoff": "iiii", "proc_exit": "i", "proc_raise": "i", "sched_yield": "", "random_get": "ii",
	"sock_accept": "iii", "sock_recv": "iiiiii", "sock_send": "iiiii", "sock_shutdown": "ii",
}

// Numbers of typenames.witx, $errno.
const (
	success     = 0
	acces       = 2
	again       = 6
	badf        = 8
	busy        = 10
	dquot       = 19
	exist       = 20
	fault       = 21
	ilseq       = 25
	intr        = 27
	inval       = 28
	eio         = 29
	isdir       = 31
	loop        = 32
	mfile       = 33
	nametoolong = 37
	noent       = 44
	nosys       = 52
	notdir      = 54
	notempty    = 55
	notsock     = 57
	notsup      = 58
	perm        = 63
	rofs        = 69
	spipe       = 70
	stale       = 72
	xdev        = 75
	notcapable  = 76
	fbig        = 22
)

const pages = 4 // of the guest's memory

// wrapper is a module that imports every function of preview 1 and exports,
// under the same name, one that calls it. It also has and exports a memory of
// this many pages, unless it is none.
func wrapper(pages byte) []byte { return wrapperOf(wasi.ModuleName, pages) }

func wrapperOf(host string, pages byte) []byte {
	var types, imports, functions, exports, bodies [][]byte
	for _, name := range slices.Sorted(maps.Keys(signatures)) { // the same bytes each time: they are compiled once
		params := signatures[name]
		i := byte(len(types))
		var args []byte
		body := []byte{0} // no locals
		for n, c := range params {
			kind := map[rune]byte{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[c]
			args = append(args, kind)
			body = append(body, 0x20, byte(n)) // local.get
		}
		results := []byte{1, api.ValueTypeI32}
		if name == "proc_exit" {
			results = []byte{0}
		}
		types = append(types, bytes.Join([][]byte{{0x60}, sized(args), results}, nil))
		imports = append(imports, bytes.Join([][]byte{sized([]byte(host)), sized([]byte(name)), {0, i}}, nil))
		functions = append(functions, []byte{i})
		exports = append(exports, append(sized([]byte(name)), 0, byte(len(signatures))+i))
		bodies = append(bodies, sized(append(body, 0x10, i, 0x0b))) // call, end
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items [][]byte) {
		module = append(append(module, id), sized(append(leb(len(items)), bytes.Join(items, nil)...))...)
	}
	section(1, types)
	section(2, imports)
	section(3, functions)
	if pages > 0 {
		section(5, [][]byte{{0, pages}})
		exports = append(exports, append(sized([]byte("memory")), 2, 0))
	}
	section(7, exports)
	section(10, bodies)
	return module
}

func leb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sized(b []byte) []byte { return append(leb(len(b)), b...) }

// moduleConfig does not run _start: it needs the context of a call.
var moduleConfig = wazero.NewModuleConfig().WithStartFunctions()

type processKey struct{}

func processOf(ctx context.Context) (context.Context, *wasi.Process) {
	p, _ := ctx.Value(processKey{}).(*wasi.Process)
	return ctx, p
}

// compiled keeps what was compiled for the next test.
var compiled = sync.OnceValue(wazero.NewCompilationCache)

func newRuntime(t testing.TB) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCompilationCache(compiled()))
	t.Cleanup(func() { r.Close(context.WithoutCancel(t.Context())) })
	if err := wasi.Instantiate(t.Context(), r, processOf); err != nil {
		t.Fatal(err)
	}
	return r
}

// A guest calls the host functions one by one, as a program would.
type guest struct {
	t    testing.TB
	mod  api.Module
	ctx  context.Context
	p    *wasi.Process
	free uint32 // where its memory is unused
}

// newGuest runs p, and closes it at the end of the test.
func newGuest(t testing.TB, p *wasi.Process) *guest {
	t.Helper()
	return newGuestWith(t, p, pages)
}

func newGuestWith(t testing.TB, p *wasi.Process, pages byte) *guest {
	t.Helper()
	mod, err := newRuntime(t).Instantiate(t.Context(), wrapper(pages))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &guest{t: t, mod: mod, ctx: context.WithValue(t.Context(), processKey{}, p), p: p, free: 64}
}

// call returns the errno.
func (g *guest) call(name string, args ...uint64) uint64 {
	g.t.Helper()
	res, err := g.mod.ExportedFunction(name).Call(g.ctx, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return res[0]
}

// must calls a function that has to succeed.
func (g *guest) must(name string, args ...uint64) {
	g.t.Helper()
	if e := g.call(name, args...); e != success {
		g.t.Fatalf("%s%v = errno %d", name, args, e)
	}
}

// room returns the address of n unused bytes.
func (g *guest) room(n int) uint64 {
	g.t.Helper()
	at := g.free
	g.free += uint32(n+7) &^ 7
	if g.free > g.mod.Memory().Size() {
		g.t.Fatal("the test uses more memory than its guest has")
	}
	return uint64(at)
}

// put returns address and length of b in the guest's memory.
func (g *guest) put(b string) (at, size uint64) {
	g.t.Helper()
	at = g.room(len(b))
	g.mod.Memory().Write(uint32(at), []byte(b))
	return at, uint64(len(b))
}

func (g *guest) bytes(at uint64, n int) []byte {
	g.t.Helper()
	b, ok := g.mod.Memory().Read(uint32(at), uint32(n))
	if !ok {
		g.t.Fatalf("%d bytes at %d are out of bounds", n, at)
	}
	return bytes.Clone(b)
}

func (g *guest) u32(at uint64) uint32 {
	g.t.Helper()
	return binary.LittleEndian.Uint32(g.bytes(at, 4))
}

func (g *guest) u64(at uint64) uint64 {
	g.t.Helper()
	return binary.LittleEndian.Uint64(g.bytes(at, 8))
}

// vector returns the address of one pair of pointer and length.
func (g *guest) vector(at, size uint64) uint64 {
	g.t.Helper()
	pair := binary.LittleEndian.AppendUint32(nil, uint32(at))
	v, _ := g.put(string(binary.LittleEndian.AppendUint32(pair, uint32(size))))
	return v
}

// Flags of path_open, and rights.
const (
	oCreate    = 1
	oDirectory = 2
	oExclusive = 4
	oTruncate  = 8

	rRead    = 1 << 1
	rWrite   = 1 << 6
	rReaddir = 1 << 14
	rAll     = 1<<30 - 1

	fdAppend = 1

	root = 3 // the first directory's descriptor
)

// open returns the errno and the new descriptor. It follows links.
func (g *guest) open(path string, how, rights uint64) (errno, fd uint64) {
	g.t.Helper()
	at, size := g.put(path)
	result := g.room(4)
	e := g.call("path_open", root, 1, at, size, how, rights, rAll, 0, result)
	return e, uint64(g.u32(result))
}

func (g *guest) mustOpen(path string, how, rights uint64) (fd uint64) {
	g.t.Helper()
	e, fd := g.open(path, how, rights)
	if e != success {
		g.t.Fatalf("open %q = errno %d", path, e)
	}
	return fd
}

func (g *guest) write(fd uint64, text string) uint64 {
	g.t.Helper()
	return g.call("fd_write", fd, g.vector(g.put(text)), 1, g.room(4))
}

func (g *guest) read(fd uint64, n int) (errno uint64, text string) {
	g.t.Helper()
	at, result := g.room(n), g.room(4)
	e := g.call("fd_read", fd, g.vector(at, uint64(n)), 1, result)
	return e, string(g.bytes(at, int(g.u32(result))))
}

// path calls a function of (fd, path) on the first directory.
func (g *guest) path(name, path string) uint64 {
	g.t.Helper()
	at, size := g.put(path)
	return g.call(name, root, at, size)
}

func (g *guest) rename(from, to string) uint64 {
	g.t.Helper()
	a, an := g.put(from)
	b, bn := g.put(to)
	return g.call("path_rename", root, a, an, root, b, bn)
}

func (g *guest) link(from, to string) uint64 {
	g.t.Helper()
	a, an := g.put(from)
	b, bn := g.put(to)
	return g.call("path_link", root, 0, a, an, root, b, bn)
}

func (g *guest) symlink(to, name string) uint64 {
	g.t.Helper()
	a, an := g.put(to)
	b, bn := g.put(name)
	return g.call("path_symlink", a, an, root, b, bn)
}

func (g *guest) stat(path string, follow uint64) (errno uint64, filestat []byte) {
	g.t.Helper()
	at, size := g.put(path)
	result := g.room(64)
	e := g.call("path_filestat_get", root, follow, at, size, result)
	return e, g.bytes(result, 64)
}

// A tree is a granted directory inside one that is not:
//
//	secret           outside
//	granted/file     "inside"
//	granted/sub/deep "deep"
type tree struct {
	outside, granted string
	dir              wasi.Dir
}

func newTree(t testing.TB, write bool) tree {
	t.Helper()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	granted := filepath.Join(outside, "granted")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(granted, "sub"), 0o755),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644),
		os.WriteFile(filepath.Join(granted, "file"), []byte("inside"), 0o644),
		os.WriteFile(filepath.Join(granted, "sub", "deep"), []byte("deep"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := os.OpenRoot(granted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return tree{outside, granted, wasi.Dir{Path: "/data", Write: write, Root: r}}
}

// hostLink makes a symbolic link as somebody on the host may.
func (d tree) hostLink(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(d.granted, name)); err != nil {
		t.Fatal(err)
	}
}

func (d tree) content(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.granted, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func allow(context.Context, string, string) error { return nil }

func newFileGuest(t testing.TB, write bool) (*guest, tree) {
	t.Helper()
	d := newTree(t, write)
	return newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow}), d
}

// exitCode is what a command ended with.
func exitCode(err error) (uint32, bool) {
	var exit *sys.ExitError
	if err == nil {
		return 0, true
	}
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, false
}
