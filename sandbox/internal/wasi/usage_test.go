package wasi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// calls returns guests that are calls of one tool: what they add to the folder is
// counted together.
func calls(t *testing.T, d tree, limit int64) func() *guest {
	d.dir.Usage = new(wasi.Usage)
	return func() *guest {
		return newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow, MaxWritten: limit})
	}
}

// fill writes files of this size until it is refused, and returns how many it wrote.
func (g *guest) fill(t *testing.T, name string, size, most int) (n int) {
	t.Helper()
	for ; n < most; n++ {
		g.free = 64
		e, fd := g.open(fmt.Sprint(name, n), oCreate|oTruncate, rAll)
		if e == success {
			e = g.call("fd_filestat_set_size", fd, uint64(size))
			g.must("fd_close", fd)
		}
		if e == dquot {
			return n
		}
		if e != success {
			t.Fatalf("file %d: errno %d", n, e)
		}
	}
	return n
}

// TestManyCallsFillNoDisk: however many calls a tool makes, it adds no more to a
// folder than it may.
func TestManyCallsFillNoDisk(t *testing.T) {
	d := newTree(t, true)
	call := calls(t, d, 100_000)
	written := 0
	for i := range 10 {
		g := call()
		written += g.fill(t, fmt.Sprint("call", i, "-"), 10_000, 20)
		if err := g.p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if written != 7 { // with a name each, of 4096
		t.Errorf("%d files of 10,000 bytes are written, want 7", written)
	}
}

func TestWhatIsTakenAwayCountsNoMore(t *testing.T) {
	const limit, size = 100_000, 50_000
	takes := map[string]func(g *guest){
		"removing":   func(g *guest) { g.path("path_unlink_file", "a") },
		"shortening": func(g *guest) { g.must("fd_filestat_set_size", g.mustOpen("a", 0, rAll), 0) },
		"truncating": func(g *guest) { g.mustOpen("a", oTruncate, rAll) },
		"replacing":  func(g *guest) { g.mustOpen("small", oCreate, rAll); g.rename("small", "a") },
		"by another": func(g *guest) {
			if err := os.Remove(filepath.Join(g.p.Dirs[0].Root.Name(), "a")); err != nil {
				g.t.Fatal(err)
			}
		},
	}
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			d := newTree(t, true)
			call := calls(t, d, limit)
			for i := range 6 {
				g := call()
				if e := g.call("fd_filestat_set_size", g.mustOpen("a", oCreate, rAll), size); e != success && (name != "by another" || i < 2) {
					t.Fatalf("round %d: errno %d", i, e) // what others take is looked for once a minute
				}
				take(g)
				if err := g.p.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestNothingIsGivenBackTwice: neither a file that is open, nor a name of several, nor a
// rename that changes nothing makes room.
func TestNothingIsGivenBackTwice(t *testing.T) {
	const limit, size = 100_000, 80_000
	tricks := map[string]func(g *guest){
		"a removed file that is open": func(g *guest) {
			g.mustOpen("a", 0, rAll)
			g.path("path_unlink_file", "a")
		},
		"one of two names": func(g *guest) {
			g.link("a", "b")
			g.path("path_unlink_file", "b")
			g.link("a", "b")
			g.path("path_unlink_file", "b")
			g.p.Close()
		},
		"renaming onto itself": func(g *guest) {
			g.link("a", "b")
			for range 50 {
				g.rename("a", "b")
				g.free = 4096
			}
			g.p.Close()
		},
		"writing behind a truncation": func(g *guest) {
			fd := g.mustOpen("a", 0, rAll)
			for range 5 {
				g.must("fd_filestat_set_size", g.mustOpen("a", oTruncate, rAll), 0)
				g.call("fd_pwrite", fd, g.vector(g.put("x")), 1, size-1, g.room(4))
			}
		},
	}
	for name, trick := range tricks {
		t.Run(name, func(t *testing.T) {
			d := newTree(t, true)
			call := calls(t, d, limit)
			g := call()
			g.must("fd_filestat_set_size", g.mustOpen("a", oCreate, rAll), size)
			trick(g)
			if e := call().stretch("c", size); e != dquot {
				t.Errorf("another file of %d bytes = errno %d, want EDQUOT", size, e)
			}
		})
	}
}

// TestOpenFilesAreOnTheDisk: what a call removes counts until the last call has closed it.
func TestOpenFilesAreOnTheDisk(t *testing.T) {
	const limit, size = 150_000, 80_000
	removes := map[string]func(g *guest) uint64{
		"unlinked": func(g *guest) uint64 { return g.path("path_unlink_file", "a") },
		"replaced": func(g *guest) uint64 { g.mustOpen("other", oCreate, rAll); return g.rename("other", "a") },
	}
	for name, remove := range removes {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by a call of the same module: %v", name, same), func(t *testing.T) {
				d := newTree(t, true)
				call := calls(t, d, limit)
				holder := call()
				holder.must("fd_filestat_set_size", holder.mustOpen("a", oCreate, rAll), size)
				reader := call()
				fd := reader.mustOpen("a", 0, rRead)
				if err := holder.p.Close(); err != nil {
					t.Fatal(err)
				}
				remover := call()
				if !same {
					remover = calls(t, d, limit)()
				}
				if e := remove(remover); e != success {
					t.Fatalf("errno %d", e)
				}
				if err := remover.p.Close(); err != nil {
					t.Fatal(err)
				}
				if e := call().stretch("b", size); e != dquot {
					t.Errorf("a second file, while the first is open: errno %d, want EDQUOT", e)
				}
				reader.must("fd_close", fd)
				if e := call().stretch("b", size); e != success {
					t.Errorf("a second file, once the first is closed: errno %d", e)
				}
			})
		}
	}
}

// stretch makes a file of this size.
func (g *guest) stretch(name string, size uint64) uint64 {
	e, fd := g.open(name, oCreate, rAll)
	if e != success {
		return e
	}
	return g.call("fd_filestat_set_size", fd, size)
}

func TestCallsAtOnceFillNoDisk(t *testing.T) {
	const limit, callers = 1 << 20, 8
	d := newTree(t, true)
	call := calls(t, d, limit)
	var guests []*guest
	for range callers {
		guests = append(guests, call())
	}
	var all sync.WaitGroup
	for i, g := range guests {
		all.Go(func() {
			fd := g.mustOpen("shared", oCreate, rAll)
			v := g.vector(g.room(1000), 1000)
			result, at := g.room(4), g.room(8)
			for n := range 500 {
				if n%7 == i%7 {
					g.call("fd_filestat_set_size", fd, 0)
				}
				g.call("fd_seek", fd, 0, 2, at)
				g.call("fd_write", fd, v, 1, result)
			}
			g.stretch(fmt.Sprint("own", i), limit/2)
		})
	}
	all.Wait()
	var bytes int64
	for _, e := range must(os.ReadDir(d.granted)) {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && e.Name() != "file" {
			bytes += info.Size()
		}
	}
	if bytes > limit {
		t.Errorf("%d bytes are in the folder, more than %d", bytes, limit)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
