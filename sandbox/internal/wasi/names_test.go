package wasi_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

func TestOpen(t *testing.T) {
	g, d := newFileGuest(t, true)
	d.hostLink(t, "file", "to-file")
	d.hostLink(t, "sub", "to-sub")
	d.hostLink(t, "made-by-link", "to-nothing")
	tests := map[string]struct {
		path        string
		how, rights uint64
		want        uint64
	}{
		"a file":                              {"file", 0, rRead, success},
		"a file below a directory":            {"sub/deep", 0, rRead, success},
		"dots and slashes":                    {"./sub//..//./sub/deep", 0, rRead, success},
		"a directory":                         {"sub", 0, rRead, success},
		"a directory by a slash":              {"sub/", 0, rRead, success},
		"a directory as such":                 {"sub", oDirectory, rReaddir, success},
		"the granted directory":               {".", oDirectory, rReaddir, success},
		"through links":                       {"to-sub/../to-file", 0, rRead, success},
		"a link to a directory with a slash":  {"to-sub/", oDirectory, rRead, success},
		"creating what a link names":          {"to-nothing", oCreate, rWrite, success},
		"creating":                            {"new", oCreate, rWrite, success},
		"a file with a slash":                 {"file/", 0, rRead, notdir},
		"a file as a directory":               {"file", oDirectory, rRead, notdir},
		"below a file":                        {"file/x", 0, rRead, notdir},
		"a directory to write":                {"sub", 0, rRead | rWrite, isdir},
		"a directory to truncate":             {"sub", oTruncate, rRead, isdir},
		"what is not there":                   {"nothing", 0, rRead, noent},
		"below what is not there":             {"nothing/x", oCreate, rWrite, noent},
		"back from what is not there":         {"nothing/../file", 0, rRead, noent},
		"creating with a slash":               {"new2/", oCreate, rWrite, isdir},
		"creating a directory":                {"new3", oCreate | oDirectory, rWrite, inval},
		"creating exclusively over a link":    {"to-file", oCreate | oExclusive, rWrite, exist},
		"no path":                             {"", 0, rRead, noent},
		"a NUL":                               {"fi\x00le", 0, rRead, inval},
		"no UTF-8":                            {"\xff", 0, rRead, ilseq},
		"a name that no file system has":      {strings.Repeat("x", 300), 0, rRead, nametoolong},
		"a path that is too long":             {strings.Repeat("x/", 3000), 0, rRead, nametoolong},
		"a path of too many steps":            {strings.Repeat("./", 300) + "file", 0, rRead, nametoolong},
		"a flag that is none":                 {"file", 16, rRead, inval},
		"truncating without a right to write": {"sub/deep", oTruncate, rRead, success},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, fd := g.open(tt.path, tt.how, tt.rights)
			if e != tt.want {
				t.Errorf("errno %d, want %d", e, tt.want)
			}
			if e == success {
				g.must("fd_close", fd)
			}
		})
	}
	at, size := g.put("to-file")
	if e := g.call("path_open", root, 0, at, size, 0, rRead, 0, 0, g.room(4)); e != loop {
		t.Errorf("a link that is not followed = errno %d, want ELOOP", e)
	}
	if e := g.call("path_open", root, 2, at, size, 0, rRead, 0, 0, g.room(4)); e != inval {
		t.Errorf("a lookup flag that is none = errno %d, want EINVAL", e)
	}
}

func TestRights(t *testing.T) {
	g, _ := newFileGuest(t, true)
	at := g.room(24)
	rightsOf := func(fd uint64) (uint64, uint64) {
		g.must("fd_fdstat_get", fd, at)
		return g.u64(at + 8), g.u64(at + 16)
	}
	fd := g.mustOpen("file", 0, rRead|rWrite|1<<2)
	if base, below := rightsOf(fd); base != rRead|rWrite|1<<2 || below != 0 {
		t.Errorf("rights %x, %x", base, below)
	}
	if e := g.call("fd_fdstat_set_rights", fd, rAll, 0); e != notcapable {
		t.Errorf("widening rights = errno %d, want ENOTCAPABLE", e)
	}
	g.must("fd_fdstat_set_rights", fd, rRead, 0)
	for name, tt := range map[string]struct{ got, want uint64 }{
		"writing":  {g.write(fd, "x"), badf},
		"seeking":  {g.call("fd_seek", fd, 0, 0, at), notcapable},
		"telling":  {g.call("fd_tell", fd, at), notcapable},
		"syncing":  {g.call("fd_sync", fd), notcapable},
		"resizing": {g.call("fd_filestat_set_size", fd, 0), notcapable},
		"dating":   {g.call("fd_filestat_set_times", fd, 0, 0, 0), notcapable},
		"stating":  {g.call("fd_filestat_get", fd, g.room(64)), notcapable},
		"flagging": {g.call("fd_fdstat_set_flags", fd, 0), notcapable},
	} {
		if tt.got != tt.want {
			t.Errorf("%s without the right = errno %d, want %d", name, tt.got, tt.want)
		}
	}
	if e, text := g.read(fd, 9); e != success || text != "inside" {
		t.Errorf("reading with the right = errno %d, %q", e, text)
	}

	reader := g.mustOpen("file", 0, rAll&^rWrite)
	if base, _ := rightsOf(reader); base&(rWrite|1<<8|1<<22) != 0 {
		t.Errorf("a file that is open for reading can be changed: rights %x", base)
	}

	// A right that is taken from a directory is taken from all below it.
	path, size := g.put("sub")
	g.must("path_open", root, 0, path, size, oDirectory, rAll, rRead|1<<13, 0, at)
	sub := uint64(g.u32(at))
	deep, n := g.put("deep")
	if e := g.call("path_open", sub, 0, deep, n, 0, rRead|rWrite, 0, 0, at); e != notcapable {
		t.Errorf("writing below a directory that only passes reading on = errno %d, want ENOTCAPABLE", e)
	}
	g.must("path_open", sub, 0, deep, n, 0, rRead|1<<5, 0, 0, at)
	if base, _ := rightsOf(uint64(g.u32(at))); base != rRead {
		t.Errorf("rights of the file below: %x, want %x", base, rRead)
	}
	dot, m := g.put(".")
	g.must("path_open", sub, 0, dot, m, oDirectory, rAll, rAll, 0, at)
	if _, below := rightsOf(uint64(g.u32(at))); below != rRead|1<<13 {
		t.Errorf("rights below the directory below: %x, want %x", below, rRead|1<<13)
	}
	const pathOpen = 1 << 13
	base, below := rightsOf(sub)
	g.must("fd_fdstat_set_rights", sub, base&^pathOpen, below)
	if e := g.call("path_open", sub, 0, deep, n, 0, rRead, 0, 0, at); e != notcapable {
		t.Errorf("opening without the right to = errno %d, want ENOTCAPABLE", e)
	}
	g.must("fd_fdstat_set_rights", sub, 0, 0)
	if e := g.call("path_open", sub, 0, deep, n, 0, rRead, 0, 0, at); e != notcapable {
		t.Errorf("opening below a directory without rights = errno %d, want ENOTCAPABLE", e)
	}
}

func TestReadOnly(t *testing.T) {
	g, d := newFileGuest(t, false)
	d.hostLink(t, "file", "to-file")
	file := g.mustOpen("file", 0, rAll&^rWrite)
	path, size := g.put("file")
	tests := map[string]uint64{
		"creating":          first(g.open("new", oCreate, rWrite)),
		"creating to read":  first(g.open("new", oCreate, rRead)),
		"writing":           first(g.open("file", 0, rWrite)),
		"truncating":        first(g.open("file", oTruncate, rRead)),
		"a directory":       g.path("path_create_directory", "new"),
		"removing":          g.path("path_unlink_file", "file"),
		"removing a folder": g.path("path_remove_directory", "sub"),
		"renaming":          g.rename("file", "file2"),
		"linking":           g.link("file", "file2"),
		"a symbolic link":   g.symlink("file", "link"),
		"times":             g.call("path_filestat_set_times", root, 0, path, size, 0, 0, 5),
		"times of a file":   g.call("fd_filestat_set_times", file, 0, 0, 5),
		"times of a folder": g.call("fd_filestat_set_times", root, 0, 0, 5),
		"resizing":          g.call("fd_filestat_set_size", file, 0),
		"allocating":        g.call("fd_allocate", file, 0, 99),
	}
	for name, got := range tests {
		if got != rofs {
			t.Errorf("%s = errno %d, want EROFS", name, got)
		}
	}
	if e := g.write(file, "x"); e != badf {
		t.Errorf("writing to a file open for reading = errno %d, want EBADF", e)
	}
	if e, text := g.read(file, 9); e != success || text != "inside" {
		t.Errorf("reading = errno %d, %q", e, text)
	}
	list, err := os.ReadDir(d.granted)
	if err != nil || len(list) != 3 || d.content(t, "file") != "inside" {
		t.Errorf("the directory has changed: %v %v", list, err)
	}
}

// first drops what a call returns in addition to its errno.
func first[T any](errno uint64, _ T) uint64 { return errno }

func TestStat(t *testing.T) {
	g, d := newFileGuest(t, true)
	d.hostLink(t, "file", "link")
	when := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	if err := os.Chtimes(filepath.Join(d.granted, "file"), when, when.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		follow uint64
		kind   byte
		size   uint64
	}{
		"a file":        {"file", 0, 4, 6},
		"a link":        {"link", 0, 7, 4},
		"behind a link": {"link", 1, 4, 6},
	} {
		e, b := g.stat(tt.path, tt.follow)
		if size := binary.LittleEndian.Uint64(b[32:]); e != success || b[16] != tt.kind || size != tt.size {
			t.Errorf("%s: errno %d, type %d, %d bytes", name, e, b[16], size)
		}
	}
	if e, b := g.stat(".", 0); e != success || b[16] != 3 {
		t.Errorf("the directory: errno %d, type %d", e, b[16])
	}
	_, b := g.stat("file", 0)
	at := g.room(64)
	g.must("fd_filestat_get", g.mustOpen("file", 0, rAll), at)
	if diff := cmp.Diff(b, g.bytes(at, 64)); diff != "" {
		t.Errorf("by path and by descriptor (-path +descriptor):\n%s", diff)
	}
	if got := time.Unix(0, int64(binary.LittleEndian.Uint64(b[48:]))); !got.Equal(when.Add(time.Hour)) {
		t.Errorf("modified %v, want %v", got, when.Add(time.Hour))
	}
	g.must("fd_filestat_get", g.mustOpen("sub", oDirectory, rAll), at)
	if kind := g.bytes(at, 64)[16]; kind != 3 {
		t.Errorf("type of a directory: %d", kind)
	}
	g.must("fd_filestat_get", 0, at)
	if !bytes.Equal(g.bytes(at, 64), make([]byte, 64)) {
		t.Errorf("stdin: %x", g.bytes(at, 64))
	}
}

func TestTimes(t *testing.T) {
	g, d := newFileGuest(t, true)
	d.hostLink(t, "file", "link")
	fd := g.mustOpen("file", 0, rAll)
	path, size := g.put("file")
	link, n := g.put("link")
	modified := func() time.Time {
		info, err := os.Stat(filepath.Join(d.granted, "file"))
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	const hour = uint64(time.Hour)
	start := modified()
	g.must("fd_filestat_set_times", fd, hour, 0, 1) // accessed only
	if !modified().Equal(start) {
		t.Errorf("setting the time of access changed that of modification to %v", modified())
	}
	g.must("fd_filestat_set_times", fd, 0, hour, 4)
	if got := modified().UnixNano(); uint64(got) != hour {
		t.Errorf("modified at %d, want %d", got, hour)
	}
	g.must("path_filestat_set_times", root, 1, link, n, 0, 2*hour, 4)
	if got := modified().UnixNano(); uint64(got) != 2*hour {
		t.Errorf("modified at %d through the link, want %d", got, 2*hour)
	}
	g.must("path_filestat_set_times", root, 0, path, size, 0, 0, 8|2)
	if ago := time.Since(modified()); ago > time.Hour {
		t.Errorf("set to now, it is %v old", ago)
	}
	g.must("fd_filestat_set_times", root, 0, hour, 4)
	for name, tt := range map[string]struct{ got, want uint64 }{
		"both given and now":     {g.call("fd_filestat_set_times", fd, 0, 0, 3), inval},
		"a flag that is none":    {g.call("fd_filestat_set_times", fd, 0, 0, 16), inval},
		"a time beyond all":      {g.call("fd_filestat_set_times", fd, 1<<63, 0, 1), inval},
		"stdin":                  {g.call("fd_filestat_set_times", 0, 0, 0, 0), inval},
		"the link itself":        {g.call("path_filestat_set_times", root, 0, link, n, 0, hour, 4), notsup},
		"a lookup flag, unknown": {g.call("path_filestat_set_times", root, 2, link, n, 0, hour, 4), inval},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = errno %d, want %d", name, tt.got, tt.want)
		}
	}
	if g.rename("file", "moved") != success {
		t.Fatal("rename")
	}
	g.must("fd_filestat_set_times", fd, 0, hour, 4) // the guest's own rename is followed
	if err := os.Rename(filepath.Join(d.granted, "moved"), filepath.Join(d.granted, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.granted, "moved"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := g.call("fd_filestat_set_times", fd, 0, hour, 4); e != stale {
		t.Errorf("times of a file that was replaced = errno %d, want ESTALE", e)
	}
}

func TestNames(t *testing.T) {
	g, d := newFileGuest(t, true)
	steps := []struct {
		what      string
		got, want uint64
	}{
		{"make a directory", g.path("path_create_directory", "a"), success},
		{"make it with a slash", g.path("path_create_directory", "b/"), success},
		{"make it again", g.path("path_create_directory", "a"), exist},
		{"make it below nothing", g.path("path_create_directory", "x/y"), noent},
		{"unlink a directory", g.path("path_unlink_file", "a"), isdir},
		{"remove a file as directory", g.path("path_remove_directory", "file"), notdir},
		{"remove a full directory", g.path("path_remove_directory", "sub"), notempty},
		{"remove the granted directory", g.path("path_remove_directory", "."), busy},
		{"remove what is not there", g.path("path_unlink_file", "x"), noent},
		{"rename a file", g.rename("file", "a/file"), success},
		{"rename it back onto another", g.rename("a/file", "sub/deep"), success},
		{"rename a directory onto an empty one", g.rename("a", "b"), success},
		{"rename a directory onto a full one", g.rename("b", "sub"), notempty},
		{"rename a directory onto a file", g.rename("b", "sub/deep"), notdir},
		{"rename a file onto a directory", g.rename("sub/deep", "b"), isdir},
		{"rename a directory into itself", g.rename("b", "b/c"), inval},
		{"rename onto itself", g.rename("b", "b"), success},
		{"rename what is not there", g.rename("x", "y"), noent},
		{"rename a file to a name with a slash", g.rename("sub/deep", "y/"), notdir},
		{"rename the granted directory", g.rename(".", "y"), busy},
		{"link", g.link("sub/deep", "hard"), success},
		{"link onto what is there", g.link("sub/deep", "hard"), exist},
		{"link a directory", g.link("sub", "hard2"), perm},
		{"link what is not there", g.link("x", "hard2"), noent},
		{"link to a name with a slash", g.link("hard", "hard2/"), noent},
		{"make a symbolic link", g.symlink("sub/deep", "soft"), success},
		{"make a symbolic link onto what is there", g.symlink("x", "soft"), exist},
		{"make one to nothing", g.symlink("nothing", "soft2"), success},
		{"make one of no text", g.symlink("", "soft3"), noent},
		{"unlink it", g.path("path_unlink_file", "soft2"), success},
		{"remove a directory", g.path("path_remove_directory", "b"), success},
	}
	for _, s := range steps {
		if s.got != s.want {
			t.Errorf("%s = errno %d, want %d", s.what, s.got, s.want)
		}
	}
	if got := d.content(t, "soft"); got != "inside" {
		t.Errorf("behind the link: %q", got)
	}
	path, n := g.put("soft")
	at, used := g.room(8), g.room(4)
	g.must("path_readlink", root, path, n, at, 8, used)
	if got := string(g.bytes(at, int(g.u32(used)))); got != "sub/deep" {
		t.Errorf("readlink = %q", got)
	}
	g.must("path_readlink", root, path, n, at, 3, used)
	if g.u32(used) != 3 {
		t.Errorf("readlink into 3 bytes uses %d", g.u32(used))
	}
	path, n = g.put("sub")
	if e := g.call("path_readlink", root, path, n, at, 8, used); e != inval {
		t.Errorf("readlink of a directory = errno %d, want EINVAL", e)
	}
}

func TestTwoDirectoriesAreTwoDevices(t *testing.T) {
	a, b := newTree(t, true), newTree(t, true)
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{a.dir, b.dir}, Ask: allow})
	path, n := g.put("file")
	other, m := g.put("other")
	if e := g.call("path_rename", 3, path, n, 4, other, m); e != xdev {
		t.Errorf("rename = errno %d, want EXDEV", e)
	}
	if e := g.call("path_link", 3, 0, path, n, 4, other, m); e != xdev {
		t.Errorf("link = errno %d, want EXDEV", e)
	}
}

func TestAnOpenDirectory(t *testing.T) {
	g, d := newFileGuest(t, true)
	sub := g.mustOpen("sub", oDirectory, rAll)
	path, n := g.put("deep")
	stat := func() uint64 { return g.call("path_filestat_get", sub, 0, path, n, g.room(64)) }
	if e := stat(); e != success {
		t.Errorf("below it = errno %d", e)
	}
	up, m := g.put("../file")
	if e := g.call("path_filestat_get", sub, 0, up, m, g.room(64)); e != perm {
		t.Errorf("above it = errno %d, want EPERM", e)
	}
	if e := g.rename("sub", "renamed"); e != success {
		t.Fatalf("rename = errno %d", e)
	}
	if e := stat(); e != success {
		t.Errorf("after the guest renamed it = errno %d", e)
	}
	if err := os.Rename(filepath.Join(d.granted, "renamed"), filepath.Join(d.granted, "hidden")); err != nil {
		t.Fatal(err)
	}
	if e := stat(); e != noent {
		t.Errorf("after somebody else renamed it = errno %d, want ENOENT", e)
	}
	if err := os.Mkdir(filepath.Join(d.granted, "renamed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if e := stat(); e != stale {
		t.Errorf("after somebody else replaced it = errno %d, want ESTALE", e)
	}
}

// list reads a directory with buffers of this size and returns its names.
func (g *guest) list(fd uint64, size int) (names []string, cookies []uint64) {
	g.t.Helper()
	buf, used := g.room(size), g.room(4)
	for cookie := uint64(0); ; {
		g.must("fd_readdir", fd, buf, uint64(size), cookie, used)
		b := g.bytes(buf, int(g.u32(used)))
		for len(b) >= 24 {
			n := int(binary.LittleEndian.Uint32(b[16:]))
			if len(b) < 24+n {
				break
			}
			cookie = binary.LittleEndian.Uint64(b)
			names, cookies = append(names, string(b[24:24+n])), append(cookies, cookie)
			b = b[24+n:]
		}
		if g.u32(used) < uint32(size) {
			return names, cookies
		}
	}
}

func TestReaddir(t *testing.T) {
	g, d := newFileGuest(t, true)
	want := map[string]bool{".": true, "..": true, "file": true, "sub": true}
	for i := range 600 {
		name := "f" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + strings.Repeat("y", i/40)
		want[name] = true
		if err := os.WriteFile(filepath.Join(d.granted, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fd := g.mustOpen(".", oDirectory, rAll)
	var all []string
	for _, size := range []int{100, 4096} {
		names, cookies := g.list(fd, size)
		got := map[string]bool{}
		for _, n := range names {
			got[n] = true
		}
		if diff := cmp.Diff(want, got); diff != "" || len(names) != len(want) {
			t.Fatalf("%d names (-want +got):\n%s", len(names), diff)
		}
		// A cookie leads to the same entry, whatever happens meanwhile.
		at, used := g.room(300), g.room(4)
		if e := g.path("path_unlink_file", names[5]); e != success {
			t.Fatalf("unlink = errno %d", e)
		}
		delete(want, names[5])
		g.must("fd_readdir", fd, at, 300, cookies[9], used)
		b := g.bytes(at, 300)
		if got := string(b[24 : 24+binary.LittleEndian.Uint32(b[16:])]); got != names[10] {
			t.Errorf("cookie %d leads to %q, want %q", cookies[9], got, names[10])
		}
		all = names
	}
	if names, _ := g.list(fd, 4096); len(names) != len(want) {
		t.Errorf("read anew, it has %d entries, want %d", len(names), len(want))
	}
	if e := g.call("fd_readdir", fd, g.room(8), 8, uint64(len(all)+1), g.room(4)); e != inval {
		t.Errorf("a cookie beyond the end = errno %d, want EINVAL", e)
	}
	if e := g.call("fd_readdir", g.mustOpen("file", 0, rAll), g.room(8), 8, 0, g.room(4)); e != badf {
		t.Errorf("a file = errno %d, want EBADF", e)
	}
}
