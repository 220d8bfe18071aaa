package wasi_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

func TestCharge(t *testing.T) {
	d := newTree(t, true)
	stop := errors.New("spent")
	// What each call must at least be charged.
	tests := map[string]struct {
		least int
		call  func(g *guest)
	}{
		"stdin":     {5, func(g *guest) { g.read(0, 5) }},
		"stdout":    {5, func(g *guest) { g.write(1, "12345") }},
		"random":    {100, func(g *guest) { g.call("random_get", g.room(100), 100) }},
		"arguments": {8, func(g *guest) { g.call("args_get", g.room(8), g.room(8)) }},
		"a poll": {80, func(g *guest) {
			at, _ := g.put(subscription(1, 2, 1, 0, 0))
			g.call("poll_oneoff", at, at, 1, g.room(4))
		}},
		"a long path": {5000, func(g *guest) { g.stat(strings.Repeat("x", 4000), 0) }},
		"a path":      {4, func(g *guest) { g.stat("file", 0) }},
		"a listing":   {4000, func(g *guest) { g.call("fd_readdir", root, g.room(256), 256, 0, g.room(4)) }},
		"a link":      {4, func(g *guest) { g.symlink("file", "a") }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			charged, limit := 0, 1<<30
			g := newGuest(t, &wasi.Process{Args: []string{"tool"}, Stdin: strings.NewReader("12345"), Dirs: []wasi.Dir{d.dir}, Ask: allow,
				Charge: func(n int) error {
					if charged += n; charged > limit {
						return stop
					}
					return nil
				}})
			tt.call(g)
			if charged < tt.least {
				t.Errorf("%d bytes are charged, want at least %d", charged, tt.least)
			}
			limit = 0
			defer func() { _ = recover() }()
			g.t = expectError{t, stop}
			tt.call(g)
			t.Error("a call that cannot be paid for goes on")
		})
	}
}

// expectError turns the failure of a guest's call into a panic that ends the
// test, if the call failed with this error.
type expectError struct {
	testing.TB
	err error
}

func (e expectError) Fatalf(format string, args ...any) {
	err, ok := args[len(args)-1].(error)
	if !ok || !errors.Is(err, e.err) {
		e.TB.Errorf(format, args...)
	}
	panic("ended")
}

func TestDescriptorsAreClosedWithTheProcess(t *testing.T) {
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this platform does not list the descriptors of a process")
		}
		return len(list)
	}
	g, _ := newFileGuest(t, true)
	before := fds()
	at, size := g.put("new")
	for range 10 {
		g.mustOpen("file", 0, rRead)
		g.mustOpen("sub", oDirectory, rReaddir)
		g.must("path_open", root, 1, at, size, oCreate, rWrite, 0, fdAppend, g.room(4))
	}
	if got := fds(); got < before+20 {
		t.Fatalf("%d descriptors are open with 20 files, %d without", got, before)
	}
	for range 2 {
		if err := g.p.Close(); err != nil {
			t.Fatal(err)
		}
		if got := fds(); got != before {
			t.Errorf("%d descriptors are open after Close, %d before", got, before)
		}
	}
	for fd := range uint64(40) {
		if e := g.call("fd_fdstat_get", fd, g.room(24)); e != badf {
			t.Errorf("descriptor %d after Close = errno %d, want EBADF", fd, e)
		}
	}
}

func TestFilesAtOnce(t *testing.T) {
	for limit, want := range map[int]int{0: 64, 3: 3, -1: 0} {
		d := newTree(t, false)
		g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow, MaxFiles: limit})
		n, last := 0, uint64(0)
		for ; n < 100; n++ {
			e, fd := g.open([]string{"file", "sub"}[n%2], 0, rRead)
			if e == mfile {
				break
			}
			if e != success {
				t.Fatalf("open = errno %d", e)
			}
			last = fd
		}
		if n != want {
			t.Errorf("with MaxFiles %d, %d files can be open, want %d", limit, n, want)
		}
		if n == 0 {
			continue
		}
		g.must("fd_close", last)
		if fd := g.mustOpen("file", 0, rRead); fd != last {
			t.Errorf("the lowest free descriptor is %d, but %d is given", last, fd)
		}
	}
}

func TestWhatIsWrittenIsCounted(t *testing.T) {
	const limit = 20000
	open := func(g *guest) uint64 { return g.mustOpen("file", oTruncate, rAll) }
	tests := map[string]func(g *guest) uint64{
		"writing": func(g *guest) uint64 {
			fd := open(g)
			g.must("fd_write", fd, g.vector(g.room(limit), limit), 1, g.room(4))
			return g.write(fd, "x")
		},
		"writing at an offset": func(g *guest) uint64 {
			fd := open(g)
			return g.call("fd_pwrite", fd, g.vector(g.put("x")), 1, limit, g.room(4))
		},
		"writing beyond the end": func(g *guest) uint64 {
			fd := open(g)
			g.must("fd_seek", fd, limit, 0, g.room(8))
			return g.write(fd, "x")
		},
		"appending": func(g *guest) uint64 {
			fd := open(g)
			g.must("fd_fdstat_set_flags", fd, fdAppend)
			g.must("fd_write", fd, g.vector(g.room(limit), limit), 1, g.room(4))
			return g.write(fd, "x")
		},
		"making a file longer": func(g *guest) uint64 { return g.call("fd_filestat_set_size", open(g), limit+1) },
		"allocating":           func(g *guest) uint64 { return g.call("fd_allocate", open(g), limit, 1) },
		"making many files": func(g *guest) uint64 {
			return g.repeat(func(n string) uint64 { e, _ := g.open(n, oCreate, 0); return e })
		},
		"making many folders": func(g *guest) uint64 {
			return g.repeat(func(n string) uint64 { return g.path("path_create_directory", n) })
		},
		"making many links":     func(g *guest) uint64 { return g.repeat(func(n string) uint64 { return g.symlink("x", n) }) },
		"making many hardlinks": func(g *guest) uint64 { return g.repeat(func(n string) uint64 { return g.link("file", n) }) },
	}
	for name, spend := range tests {
		t.Run(name, func(t *testing.T) {
			d := newTree(t, true)
			g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow, MaxWritten: limit})
			if e := spend(g); e != dquot {
				t.Errorf("more than %d bytes: errno %d, want EDQUOT", limit, e)
			}
			if size := len(d.content(t, "file")); size > limit {
				t.Errorf("the file has %d bytes", size)
			}
		})
	}
	t.Run("a file of this size can be written and rewritten in place", func(t *testing.T) {
		d := newTree(t, true)
		g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow, MaxWritten: limit})
		fd := open(g)
		g.must("fd_filestat_set_size", fd, limit-10)
		g.must("fd_pwrite", fd, g.vector(g.put("0123456789")), 1, limit-100, g.room(4))
	})
	t.Run("the default is 64 MiB", func(t *testing.T) {
		g, _ := newFileGuest(t, true)
		fd := open(g)
		if e := g.call("fd_filestat_set_size", fd, 64<<20+1); e != dquot {
			t.Errorf("64 MiB and a byte = errno %d, want EDQUOT", e)
		}
		g.must("fd_filestat_set_size", fd, 64<<20)
	})
}

// repeat makes names until it is refused.
func (g *guest) repeat(name func(string) uint64) uint64 {
	for i := range 20 {
		if e := name("n" + string(rune('a'+i))); e != success {
			return e
		}
	}
	return success
}
