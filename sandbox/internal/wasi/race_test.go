package wasi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// raceTime is how long each race lasts. WASMGATE_RACE makes it longer.
func raceTime(t *testing.T) time.Duration {
	if s := os.Getenv("WASMGATE_RACE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if testing.Short() {
		return 500 * time.Millisecond
	}
	return 5 * time.Second
}

// TestRace has another writer replace the folder x, again and again, by a link to
// the folder protected and by nothing, while a guest reads and changes what is
// below x. Whatever the moment: nothing of protected is read, listed or changed,
// and what is done was asked about by a name that the thing has.
func TestRace(t *testing.T) {
	judges := map[string]func(granted, path string) bool{
		"a policy protects a folder":   func(granted, path string) bool { return !below(path, filepath.Join(granted, "protected")) },
		"a decision leaves one folder": func(granted, path string) bool { return below(path, filepath.Join(granted, "x")) },
	}
	writers := map[string]func(t *testing.T, d tree) func(from, to string, link bool){
		"on the host": hostFlipper, "another guest": guestFlipper,
	}
	for writer, flipper := range writers {
		for judge, allows := range judges {
			t.Run(writer+", "+judge, func(t *testing.T) {
				t.Parallel()
				race(t, flipper, allows)
			})
		}
	}
}

func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// secret is in the protected folder, under each name that is tried.
const secret = "TOP SECRET"

func race(t *testing.T, flipper func(*testing.T, tree) func(from, to string, link bool), allows func(granted, path string) bool) {
	d := newTree(t, true)
	protected, x := filepath.Join(d.granted, "protected"), filepath.Join(d.granted, "x")
	for _, dir := range []string{protected, filepath.Join(protected, "dir"), filepath.Join(protected, "in"), x, filepath.Join(x, "in")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret", "own", "in/own", "old"} {
		if err := os.WriteFile(filepath.Join(protected, name), []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"own", "in/own"} {
		if err := os.WriteFile(filepath.Join(x, name), []byte("own"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := dated(t, protected)
	var asked []string
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, MaxWritten: 1 << 60, Ask: func(_ context.Context, op, path string) error {
		if !allows(d.granted, path) {
			return errors.New("denied")
		}
		asked = append(asked, path)
		return nil
	}})
	var flips atomic.Int64
	stop := make(chan struct{})
	var writer sync.WaitGroup
	flip := flipper(t, d)
	writer.Go(func() {
		for ; ; flips.Add(1) {
			select {
			case <-stop:
				return
			default:
			}
			flip("x", "y", false)
			flip("protected", "x", true)
			flip("x", "", false)
			flip("y", "x", false)
		}
	})
	defer writer.Wait()
	defer close(stop)

	strike := strikes(g)
	done := map[string]int{}
	enough := func() bool { return flips.Load() >= 10 && done["read"] > 0 } // else it was no race
	for rounds, end := 0, time.Now().Add(raceTime(t)); time.Now().Before(end) || !enough(); rounds++ {
		for name, f := range strike {
			asked, g.free = nil, 64
			e, text := f()
			if strings.Contains(text, "SECRET") || strings.Contains(text, "old") {
				t.Fatalf("round %d, after %d flips: %s: %q, asked %q", rounds, flips.Load(), name, text, asked)
			}
			if e != success {
				continue
			}
			done[name]++
			for _, path := range asked {
				if !below(path, x) && !below(path, filepath.Join(d.granted, "y")) {
					t.Fatalf("round %d: %s was asked about as %q", rounds, name, asked)
				}
			}
			if len(asked) == 0 {
				t.Fatalf("round %d: %s was not asked about", rounds, name)
			}
		}
		if rounds%64 == 0 {
			if diff := cmp.Diff(before, dated(t, protected)); diff != "" {
				t.Fatalf("round %d, after %d flips: the protected folder has changed (-before +after):\n%s", rounds, flips.Load(), diff)
			}
		}
	}
	if diff := cmp.Diff(before, dated(t, protected)); diff != "" {
		t.Errorf("after %d flips: the protected folder has changed (-before +after):\n%s", flips.Load(), diff)
	}
	t.Logf("%d flips, done: %v", flips.Load(), done)
}

// strikes are what the guest tries. Each returns the errno and what it has read.
func strikes(g *guest) map[string]func() (uint64, string) {
	only := func(e uint64) (uint64, string) { return e, "" }
	read := func(path string) func() (uint64, string) {
		return func() (uint64, string) {
			e, fd := g.open(path, 0, rRead)
			if e != success {
				return e, ""
			}
			defer g.must("fd_close", fd)
			return g.read(fd, 32)
		}
	}
	return map[string]func() (uint64, string){
		"read": read("x/own"), "read deep": read("x/in/own"), "read what is not there": read("x/secret"),
		"read back and forth": read("x/in/../own"),
		"list": func() (uint64, string) {
			e, fd := g.open("x", oDirectory, rAll)
			if e != success {
				return e, ""
			}
			defer g.must("fd_close", fd)
			at, used := g.room(400), g.room(4)
			e = g.call("fd_readdir", fd, at, 400, 0, used)
			return e, string(g.bytes(at, int(g.u32(used))))
		},
		"read below what is open": func() (uint64, string) {
			e, dir := g.open("x", oDirectory, rAll)
			if e != success {
				return e, ""
			}
			defer g.must("fd_close", dir)
			at, size := g.put("secret")
			result := g.room(4)
			if e := g.call("path_open", dir, 1, at, size, 0, rRead, 0, 0, result); e != success {
				return e, ""
			}
			defer g.must("fd_close", uint64(g.u32(result)))
			return g.read(uint64(g.u32(result)), 32)
		},
		"write": func() (uint64, string) {
			e, fd := g.open("x/own", 0, rWrite)
			if e != success {
				return e, ""
			}
			defer g.must("fd_close", fd)
			return g.write(fd, "own"), ""
		},
		"create": func() (uint64, string) {
			e, fd := g.open("x/made", oCreate|oExclusive, rWrite)
			if e == success {
				g.must("fd_close", fd)
			}
			return e, ""
		},
		"make a directory": func() (uint64, string) { return only(g.path("path_create_directory", "x/madedir")) },
		"remove":           func() (uint64, string) { return only(g.path("path_unlink_file", "x/made")) },
		"remove directory": func() (uint64, string) { return only(g.path("path_remove_directory", "x/madedir")) },
		"remove protected": func() (uint64, string) { return only(g.path("path_unlink_file", "x/old")) },
		"rename":           func() (uint64, string) { return only(g.rename("x/made", "x/made2")) },
		"rename protected": func() (uint64, string) { return only(g.rename("x/old", "x/old2")) },
		"rename across":    func() (uint64, string) { return only(g.rename("x/made2", "x/in/made2")) },
		"remove moved":     func() (uint64, string) { return only(g.path("path_unlink_file", "x/in/made2")) },
		"link":             func() (uint64, string) { return only(g.link("x/own", "x/hard")) },
		"remove the link":  func() (uint64, string) { return only(g.path("path_unlink_file", "x/hard")) },
		"symbolic link":    func() (uint64, string) { return only(g.symlink("own", "x/soft")) },
		"remove it":        func() (uint64, string) { return only(g.path("path_unlink_file", "x/soft")) },
		"times": func() (uint64, string) {
			at, n := g.put("x/dir")
			return only(g.call("path_filestat_set_times", root, 0, at, n, 0, 0, 4))
		},
	}
}

// dated is snapshot with the times at which things were changed.
func dated(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := snapshot(t, dir)
	for name := range all {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] += fmt.Sprint(info.ModTime().UnixNano())
	}
	return all
}

// hostFlipper renames, makes links and removes as a program of the host does.
func hostFlipper(_ *testing.T, d tree) func(from, to string, link bool) {
	in := func(name string) string { return filepath.Join(d.granted, name) }
	return func(from, to string, link bool) {
		switch {
		case link:
			os.Symlink(from, in(to))
		case to == "":
			os.Remove(in(from))
		default:
			os.Rename(in(from), in(to))
		}
	}
}

// guestFlipper does it as a guest that may change the whole tree.
func guestFlipper(t *testing.T, d tree) func(from, to string, link bool) {
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, MaxWritten: 1 << 60, Ask: allow})
	return func(from, to string, link bool) {
		g.free = 64
		switch {
		case link:
			g.symlink(from, to)
		case to == "":
			g.path("path_unlink_file", from)
		default:
			g.rename(from, to)
		}
	}
}
