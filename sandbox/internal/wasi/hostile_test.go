package wasi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// escapes are paths that lead out of the granted directory.
var escapes = []string{
	"..", "../secret", "../granted/file", "sub/../../secret", "./.././secret", "sub/../../../../../../../etc/passwd",
	"/", "/etc/passwd", "//etc/passwd", "up/secret", "up/granted/file", "sub/up/secret", "abs/secret", "chain1/secret",
	"half/../secret", "sub/back/../secret",
}

// leaks are links that lead out of it themselves.
var leaks = []string{"to-secret", "abs-secret", "chain-secret", "up", "abs", "sub/up"}

func leakyTree(t *testing.T) tree {
	t.Helper()
	d := newTree(t, true)
	d.hostLink(t, "../secret", "to-secret")
	d.hostLink(t, filepath.Join(d.outside, "secret"), "abs-secret")
	d.hostLink(t, "to-secret", "chain-secret")
	d.hostLink(t, "..", "up")
	d.hostLink(t, "../..", "sub/up")
	d.hostLink(t, d.outside, "abs")
	d.hostLink(t, "chain2", "chain1")
	d.hostLink(t, "sub/up", "chain2")
	d.hostLink(t, "sub/..", "half") // leads to the granted directory itself
	d.hostLink(t, "..", "sub/back")
	return d
}

func TestEscapes(t *testing.T) {
	d := leakyTree(t)
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow})
	follow := map[string]func(path string) uint64{
		"open":         func(p string) uint64 { return first(g.open(p, 0, rRead)) },
		"open to make": func(p string) uint64 { return first(g.open(p, oCreate|oTruncate, rWrite)) },
		"list":         func(p string) uint64 { return first(g.open(p, oDirectory, rReaddir)) },
		"stat":         func(p string) uint64 { return first(g.stat(p, 1)) },
		"times": func(p string) uint64 {
			at, n := g.put(p)
			return g.call("path_filestat_set_times", root, 1, at, n, 0, 0, 5)
		},
		"link": func(p string) uint64 {
			at, n := g.put(p)
			to, m := g.put("new")
			return g.call("path_link", root, 1, at, n, root, to, m)
		},
	}
	exact := map[string]func(path string) uint64{
		"stat of a link": func(p string) uint64 { return first(g.stat(p, 0)) },
		"readlink": func(p string) uint64 {
			at, n := g.put(p)
			return g.call("path_readlink", root, at, n, at, 1, g.room(4))
		},
		"make a directory": func(p string) uint64 { return g.path("path_create_directory", p) },
		"remove":           func(p string) uint64 { return g.path("path_unlink_file", p) },
		"remove directory": func(p string) uint64 { return g.path("path_remove_directory", p) },
		"rename in":        func(p string) uint64 { return g.rename(p, "new") },
		"rename out":       func(p string) uint64 { return g.rename("file", p) },
		"link in":          func(p string) uint64 { return g.link(p, "new") },
		"link out":         func(p string) uint64 { return g.link("file", p) },
		"symlink out":      func(p string) uint64 { return g.symlink("x", p) },
	}
	before := snapshot(t, d.outside)
	check := func(name, path string, got uint64) {
		t.Helper()
		if got != perm {
			t.Errorf("%s %q = errno %d, want EPERM", name, path, got)
		}
		g.free = 64
	}
	for name, call := range follow {
		for _, path := range append(escapes, leaks...) {
			check(name, path, call(path))
		}
	}
	for name, call := range exact {
		for _, path := range escapes {
			check(name, path, call(path))
		}
	}
	if diff := cmp.Diff(before, snapshot(t, d.outside)); diff != "" {
		t.Errorf("files have changed (-before +after):\n%s", diff)
	}
}

// snapshot is the content of all files below dir, and the targets of links.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		content := []byte(e.Type().String())
		if e.Type().IsRegular() {
			content, err = os.ReadFile(path)
		}
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLinksThatLeadOutCannotBeMade(t *testing.T) {
	g, d := newFileGuest(t, true)
	for _, to := range []string{"..", "../secret", "/etc/passwd", "sub/../../secret", "sub/../file", d.outside} {
		if e := g.symlink(to, "link"); e != perm {
			t.Errorf("a link to %q = errno %d, want EPERM", to, e)
		}
	}
	if _, err := os.Lstat(filepath.Join(d.granted, "link")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused link: %v", err)
	}
}

func TestEndlessLinks(t *testing.T) {
	g, d := newFileGuest(t, true)
	d.hostLink(t, "b", "a")
	d.hostLink(t, "a", "b")
	d.hostLink(t, "self/self", "self")
	for i := range 60 {
		d.hostLink(t, fmt.Sprintf("l%d", i+1), fmt.Sprintf("l%d", i))
	}
	for path, want := range map[string]uint64{"a": loop, "self": loop, "l0": loop, "l30": noent} {
		if e, _ := g.open(path, 0, rRead); e != want {
			t.Errorf("open %q = errno %d, want %d", path, e, want)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	g, d := newFileGuest(t, true)
	if err := os.MkdirAll(filepath.Join(d.granted, strings.Repeat("d/", 80)), 0o755); err != nil {
		t.Fatal(err)
	}
	if e, _ := g.stat(strings.Repeat("d/", 64), 0); e != success {
		t.Errorf("64 directories = errno %d", e)
	}
	if e, _ := g.stat(strings.Repeat("d/", 65), 0); e != nametoolong {
		t.Errorf("65 directories = errno %d, want ENAMETOOLONG", e)
	}
}

// TestAsk checks what is asked, and that a refusal leaves all as it was.
func TestAsk(t *testing.T) {
	tests := map[string]struct {
		call func(g *guest) uint64
		want []string // op and name of each question
	}{
		"read":                 {func(g *guest) uint64 { return first(g.open("file", 0, rRead)) }, []string{"read file"}},
		"write":                {func(g *guest) uint64 { return first(g.open("file", 0, rWrite)) }, []string{"write file"}},
		"truncate":             {func(g *guest) uint64 { return first(g.open("file", oTruncate, 0)) }, []string{"write file"}},
		"read and write":       {func(g *guest) uint64 { return first(g.open("file", 0, rRead|rWrite)) }, []string{"read file", "write file"}},
		"open for nothing":     {func(g *guest) uint64 { return first(g.open("file", 0, 0)) }, []string{"read file"}},
		"read through a link":  {func(g *guest) uint64 { return first(g.open("to-sub/deep", 0, rRead)) }, []string{"read sub/deep"}},
		"read through dots":    {func(g *guest) uint64 { return first(g.open("sub/.././/sub/deep", 0, rRead)) }, []string{"read sub/deep"}},
		"create":               {func(g *guest) uint64 { return first(g.open("new", oCreate, rWrite)) }, []string{"create new"}},
		"create behind a link": {func(g *guest) uint64 { return first(g.open("to-new", oCreate, rWrite)) }, []string{"create sub/new"}},
		"list": {func(g *guest) uint64 {
			return g.call("fd_readdir", g.mustOpen("sub", oDirectory, rAll), g.room(99), 99, 0, g.room(4))
		}, []string{"read sub"}},
		"list the root":    {func(g *guest) uint64 { return g.call("fd_readdir", root, g.room(99), 99, 0, g.room(4)) }, []string{"read "}},
		"make a directory": {func(g *guest) uint64 { return g.path("path_create_directory", "new") }, []string{"create new"}},
		"remove":           {func(g *guest) uint64 { return g.path("path_unlink_file", "file") }, []string{"remove file"}},
		"remove directory": {func(g *guest) uint64 { return g.path("path_remove_directory", "empty") }, []string{"remove empty"}},
		"rename":           {func(g *guest) uint64 { return g.rename("file", "to-sub/deep") }, []string{"rename file", "rename sub/deep"}},
		"rename a directory": {func(g *guest) uint64 { return g.rename("sub", "new") },
			[]string{"rename sub", "rename new", "rename sub/deep", "rename new/deep", "rename sub/folder", "rename new/folder", "rename sub/folder/file", "rename new/folder/file"}},
		"link":          {func(g *guest) uint64 { return g.link("to-sub/deep", "new") }, []string{"link sub/deep", "create new"}},
		"symbolic link": {func(g *guest) uint64 { return g.symlink("file", "new") }, []string{"create new"}},
		"times": {func(g *guest) uint64 {
			at, n := g.put("to-sub/deep")
			return g.call("path_filestat_set_times", root, 1, at, n, 0, 0, 5)
		}, []string{"write sub/deep"}},
		"times of what is open": {func(g *guest) uint64 { return g.call("fd_filestat_set_times", root, 0, 0, 5) }, []string{"write "}},
	}
	for name, tt := range tests {
		for denied := range len(tt.want) + 1 { // the first, the second, ..., none
			t.Run(fmt.Sprintf("%s, question %d is denied", name, denied), func(t *testing.T) {
				d := newTree(t, true)
				d.hostLink(t, "sub", "to-sub")
				d.hostLink(t, "sub/new", "to-new")
				for _, folder := range []string{"empty", "sub/folder"} {
					if err := os.Mkdir(filepath.Join(d.granted, folder), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(d.granted, "sub/folder/file"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				before := snapshot(t, d.outside)
				var asked []string
				g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: func(_ context.Context, op, path string) error {
					rel, err := filepath.Rel(d.granted, path)
					if err != nil || !filepath.IsAbs(path) {
						t.Errorf("asked about %q", path)
					}
					asked = append(asked, op+" "+strings.TrimPrefix(rel, "."))
					if len(asked) == denied+1 {
						return errors.New("denied")
					}
					return nil
				}})
				e := tt.call(g)
				if denied == len(tt.want) {
					if e != success {
						t.Errorf("allowed = errno %d", e)
					}
					if diff := cmp.Diff(tt.want, asked); diff != "" {
						t.Errorf("questions (-want +got):\n%s", diff)
					}
					return
				}
				if e != acces {
					t.Errorf("errno %d, want EACCES", e)
				}
				if diff := cmp.Diff(before, snapshot(t, d.outside)); diff != "" {
					t.Errorf("files have changed (-before +after):\n%s", diff)
				}
			})
		}
	}
	t.Run("nobody to ask", func(t *testing.T) {
		d := newTree(t, true)
		g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}})
		if e, _ := g.open("file", 0, rRead); e != acces {
			t.Errorf("errno %d, want EACCES", e)
		}
	})
}

// TestLargeFoldersDoNotMoveAsOne: what is asked about at once is bounded.
func TestLargeFoldersDoNotMoveAsOne(t *testing.T) {
	d := newTree(t, true)
	many := filepath.Join(d.granted, "many", "below")
	if err := os.MkdirAll(many, 0o755); err != nil {
		t.Fatal(err)
	}
	var asked int
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: func(context.Context, string, string) error { asked++; return nil }})
	for i := range 256 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if e := g.rename("many", "moved"); e != xdev || asked > 2*258 {
		t.Errorf("a folder with 257 names below it: errno %d, want EXDEV, after %d questions", e, asked)
	}
	if err := os.Remove(filepath.Join(many, "0")); err != nil {
		t.Fatal(err)
	}
	if e := g.rename("many", "moved"); e != success {
		t.Errorf("a folder with 256 names below it: errno %d", e)
	}
}

// TestHiddenPlaces: no function tells a call anything about a place that it may not know of, not
// even whether it is there.
func TestHiddenPlaces(t *testing.T) {
	d := newTree(t, true)
	d.hostLink(t, "file", "sub/link")
	d.hostLink(t, "sub/deep", "inside")
	if err := os.MkdirAll(filepath.Join(d.granted, "left", "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(d.granted, "left")
	var asked []string
	newCall := func() *guest {
		return newGuest(t, &wasi.Process{
			Dirs: []wasi.Dir{d.dir},
			Ask: func(_ context.Context, op, path string) error {
				asked = append(asked, op+" "+strings.TrimPrefix(path, d.granted))
				if strings.HasPrefix(path, left) {
					return nil
				}
				return errors.New("denied")
			},
			Sees: func(path string) bool { return strings.HasPrefix(path, left) || strings.HasPrefix(left, path) },
		})
	}
	uses := map[string]func(g *guest, path string) uint64{
		"stat": func(g *guest, path string) uint64 {
			at, n := g.put(path)
			return g.call("path_filestat_get", root, 0, at, n, g.room(64))
		},
		"follow": func(g *guest, path string) uint64 {
			at, n := g.put(path)
			return g.call("path_filestat_get", root, 1, at, n, g.room(64))
		},
		"readlink": func(g *guest, path string) uint64 {
			at, n := g.put(path)
			return g.call("path_readlink", root, at, n, g.room(64), 64, g.room(4))
		},
		"open":    func(g *guest, path string) uint64 { return first(g.open(path, 0, 0)) },
		"folder":  func(g *guest, path string) uint64 { return first(g.open(path, oDirectory, rReaddir)) },
		"create":  func(g *guest, path string) uint64 { return first(g.open(path, oCreate|oExclusive, rWrite)) },
		"mkdir":   func(g *guest, path string) uint64 { return g.path("path_create_directory", path) },
		"unlink":  func(g *guest, path string) uint64 { return g.path("path_unlink_file", path) },
		"rmdir":   func(g *guest, path string) uint64 { return g.path("path_remove_directory", path) },
		"rename":  func(g *guest, path string) uint64 { return g.rename(path, "left/x") },
		"replace": func(g *guest, path string) uint64 { return g.rename("left/below", path) },
		"link":    func(g *guest, path string) uint64 { return g.link(path, "left/x") },
		"symlink": func(g *guest, path string) uint64 { return g.symlink("x", path) },
		"times": func(g *guest, path string) uint64 {
			at, n := g.put(path)
			return g.call("path_filestat_set_times", root, 0, at, n, 0, 0, 5)
		},
	}
	for name, use := range uses {
		for _, path := range []string{"file", "sub", "sub/deep", "sub/link", "sub/nothing", "nothing", "inside", "sub/../left/below", "nothing/../left", "left/../file"} {
			asked = nil
			if e := use(newCall(), path); e != acces || len(asked) == 0 {
				t.Errorf("%s %s: errno %d, want EACCES, recorded as %q", name, path, e, asked)
			}
		}
	}
	for _, path := range []string{".", "left", "left/below"} {
		if e := uses["stat"](newCall(), path); e != success {
			t.Errorf("stat %s: errno %d", path, e)
		}
	}
}

// TestSwapsBetweenAskingAndOpening has the answerer swap what it is asked
// about, which is the worst moment.
func TestSwapsBetweenAskingAndOpening(t *testing.T) {
	file := func(g *guest) (uint64, string) {
		e, fd := g.open("sub/deep", 0, rRead)
		if e != success {
			return e, ""
		}
		return g.read(fd, 99)
	}
	listing := func(g *guest) (uint64, string) {
		fd := g.mustOpen("sub", oDirectory, rAll)
		at, used := g.room(400), g.room(4)
		e := g.call("fd_readdir", fd, at, 400, 0, used)
		return e, string(g.bytes(at, int(g.u32(used))))
	}
	tests := map[string]struct {
		use  func(g *guest) (uint64, string)
		swap func(d tree) error
		want uint64
	}{
		"a directory becomes a link within the tree": {file, func(d tree) error { return os.Symlink("forbidden", filepath.Join(d.granted, "sub")) }, acces},
		"a directory becomes a link out of the tree": {file, func(d tree) error { return os.Symlink("..", filepath.Join(d.granted, "sub")) }, perm},
		"a file becomes a FIFO": {file, func(d tree) error {
			return errors.Join(os.Mkdir(filepath.Join(d.granted, "sub"), 0o755), mkfifo(filepath.Join(d.granted, "sub", "deep")))
		}, acces},
		"a listed directory becomes a link": {listing, func(d tree) error { return os.Symlink("forbidden", filepath.Join(d.granted, "sub")) }, stale},
		"a listed directory becomes a FIFO": {listing, func(d tree) error { return mkfifo(filepath.Join(d.granted, "sub")) }, stale},
		"a file is replaced by another, allowed": {file, func(d tree) error {
			return errors.Join(os.Mkdir(filepath.Join(d.granted, "sub"), 0o755), os.WriteFile(filepath.Join(d.granted, "sub", "deep"), []byte("new"), 0o644))
		}, success},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "FIFO") && mkfifo(filepath.Join(t.TempDir(), "x")) != nil {
				t.Skip("there is no mkfifo here")
			}
			d := newTree(t, true)
			forbidden := filepath.Join(d.granted, "forbidden")
			for _, err := range []error{
				os.Mkdir(forbidden, 0o755),
				os.WriteFile(filepath.Join(forbidden, "deep"), []byte("forbidden"), 0o644),
				os.WriteFile(filepath.Join(d.outside, "deep"), []byte("forbidden"), 0o644),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			var once sync.Once
			g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: func(_ context.Context, _, path string) error {
				if strings.HasPrefix(path, forbidden) {
					return errors.New("forbidden")
				}
				once.Do(func() {
					if err := errors.Join(os.Rename(filepath.Join(d.granted, "sub"), filepath.Join(d.outside, "away")), tt.swap(d)); err != nil {
						t.Error(err)
					}
				})
				return nil
			}})
			e, text := tt.use(g)
			if e != tt.want || strings.Contains(text, "forbidden") || strings.Contains(text, "deep\x00") {
				t.Errorf("errno %d, %q, want errno %d", e, text, tt.want)
			}
		})
	}
}

// TestSwapsBetweenAskingAndChanging has the answerer move the directory that a
// change was asked about, and put a link to another in its place: neither of them
// is changed.
func TestSwapsBetweenAskingAndChanging(t *testing.T) {
	changes := map[string]struct {
		questions int
		call      func(g *guest) uint64
	}{
		"create":           {1, func(g *guest) uint64 { return first(g.open("sub/in/new", oCreate|oExclusive, rWrite)) }},
		"make a directory": {1, func(g *guest) uint64 { return g.path("path_create_directory", "sub/in/new") }},
		"remove":           {1, func(g *guest) uint64 { return g.path("path_unlink_file", "sub/in/deep") }},
		"remove directory": {1, func(g *guest) uint64 { return g.path("path_remove_directory", "sub/in/empty") }},
		"rename":           {2, func(g *guest) uint64 { return g.rename("sub/in/deep", "sub/in/new") }},
		"rename from":      {2, func(g *guest) uint64 { return g.rename("sub/in/deep", "new") }},
		"rename to":        {2, func(g *guest) uint64 { return g.rename("file", "sub/in/new") }},
		"link":             {2, func(g *guest) uint64 { return g.link("sub/in/deep", "new") }},
		"link to":          {2, func(g *guest) uint64 { return g.link("file", "sub/in/new") }},
		"symbolic link":    {1, func(g *guest) uint64 { return g.symlink("x", "sub/in/new") }},
		"times": {1, func(g *guest) uint64 {
			at, n := g.put("sub/in/deep")
			return g.call("path_filestat_set_times", root, 0, at, n, 0, 0, 5)
		}},
	}
	for name, change := range changes {
		for moment := range change.questions {
			t.Run(fmt.Sprintf("%s, question %d", name, moment+1), func(t *testing.T) {
				d := newTree(t, true)
				sub, forbidden := filepath.Join(d.granted, "sub"), filepath.Join(d.granted, "forbidden")
				for _, dir := range []string{sub, forbidden} {
					if err := errors.Join(os.MkdirAll(filepath.Join(dir, "in", "empty"), 0o755), os.WriteFile(filepath.Join(dir, "in", "deep"), nil, 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				asked := 0
				var before map[string]string
				g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: func(_ context.Context, _, path string) error {
					if strings.HasPrefix(path, forbidden) {
						return errors.New("forbidden")
					}
					if asked++; asked == moment+1 {
						if err := errors.Join(os.Rename(sub, filepath.Join(d.granted, "moved")), os.Symlink("forbidden", sub)); err != nil {
							t.Error(err)
						}
						before = dated(t, d.outside)
					}
					return nil
				}})
				want := uint64(again)
				if name == "create" { // opening tries again by itself
					want = acces
				}
				if e := change.call(g); e != want {
					t.Errorf("errno %d, want %d", e, want)
				}
				if diff := cmp.Diff(before, dated(t, d.outside)); diff != "" {
					t.Errorf("files have changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// TestAGrantThatWasReplaced has somebody replace a granted folder by another one, which the names
// that are asked about would then refer to.
func TestAGrantThatWasReplaced(t *testing.T) {
	d := newTree(t, true)
	if err := errors.Join(os.Rename(d.granted, d.granted+"2"), os.Mkdir(d.granted, 0o755)); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow})
	if e, _ := g.open("file", 0, rRead); e != stale {
		t.Errorf("errno %d, want ESTALE", e)
	}
}

// TestSwapsAtAnyMoment lets somebody swap a directory and a link that leads out
// while a guest reads and makes files through it.
func TestSwapsAtAnyMoment(t *testing.T) {
	g, d := newFileGuest(t, true)
	before, err := os.ReadDir(d.outside)
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(d.granted, "inner")
	d.hostLink(t, "..", "evil")
	if err := os.MkdirAll(filepath.Join(inner), 0o755); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, move := range [][2]string{{"inner", "x"}, {"evil", "inner"}, {"inner", "evil"}, {"x", "inner"}} {
				os.Rename(filepath.Join(d.granted, move[0]), filepath.Join(d.granted, move[1]))
			}
		}
	})
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; g.free = 64 {
		if e, fd := g.open("inner/secret", 0, rRead); e == success {
			t.Errorf("read what is outside: descriptor %d", fd)
			break
		}
		if e, fd := g.open("inner/made", oCreate, rWrite); e == success {
			g.must("fd_close", fd)
		}
		g.path("path_create_directory", "inner/made2")
		g.path("path_unlink_file", "inner/made")
		g.rename("inner/made2", "inner/made3")
		g.path("path_remove_directory", "inner/made3")
		g.path("path_unlink_file", "inner/secret")
	}
	close(stop)
	swaps.Wait()
	after, err := os.ReadDir(d.outside)
	if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("outside: %v, before: %v (%v)", after, before, err)
	}
}

func mkfifo(path string) error { return exec.Command("mkfifo", path).Run() }

func TestOnlyFilesAreOpened(t *testing.T) {
	g, d := newFileGuest(t, true)
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no FIFOs and sockets in directories")
	}
	if err := mkfifo(filepath.Join(d.granted, "fifo")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(d.granted) // the path of a socket must be short
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, name := range []string{"fifo", "socket"} {
		for _, rights := range []uint64{0, rRead, rWrite, rRead | rWrite} {
			for _, how := range []uint64{0, oCreate, oTruncate} {
				if e, _ := g.open(name, how, rights); e != acces {
					t.Errorf("open %s, how %d, rights %x = errno %d, want EACCES", name, how, rights, e)
				}
			}
		}
		if e, b := g.stat(name, 1); e != success || b[16] == 4 {
			t.Errorf("stat %s = errno %d, type %d", name, e, b[16])
		}
	}
	if e := g.link("fifo", "fifo2"); e != perm {
		t.Errorf("link to a FIFO = errno %d, want EPERM", e)
	}
	if e := exec.Command("mknod", filepath.Join(d.granted, "device"), "c", "1", "3").Run(); e != nil {
		t.Log("devices are not tried: making one needs privileges")
	} else if e, _ := g.open("device", 0, rRead); e != acces {
		t.Errorf("open a device = errno %d, want EACCES", e)
	}
}

func TestEntriesAtOnce(t *testing.T) {
	g, d := newFileGuest(t, false)
	for i := range 1100 {
		if err := os.WriteFile(filepath.Join(d.granted, "sub", fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at, used := g.room(64), g.room(4)
	n := 0
	var last uint64
	for ; n < 64; n++ {
		last = g.mustOpen("sub", oDirectory, rAll)
		if e := g.call("fd_readdir", last, at, 64, 0, used); e != success {
			break
		}
	}
	if n != 59 { // of 1102 entries each, 65536 together
		t.Errorf("%d listings are held", n)
	}
	g.must("fd_close", last-1)
	g.must("fd_readdir", last, at, 64, 0, used)
	g.must("fd_readdir", last, at, 64, 0, used) // anew: the old one is not counted any more
}
