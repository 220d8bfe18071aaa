package wasi_test

import (
	"bytes"
	"testing"
)

func TestFiles(t *testing.T) {
	g, d := newFileGuest(t, true)
	fd := g.mustOpen("new", oCreate|oExclusive, rAll)
	if e, _ := g.open("new", oCreate|oExclusive, rAll); e != exist {
		t.Errorf("exclusive creation of what exists = errno %d, want EEXIST", e)
	}
	g.write(fd, "hello world")
	at := g.room(8)
	g.must("fd_tell", fd, at)
	if g.u64(at) != 11 {
		t.Errorf("position %d after writing 11 bytes", g.u64(at))
	}
	g.must("fd_seek", fd, ^uint64(4), 2, at) // 5 before the end
	if e, text := g.read(fd, 99); e != success || text != "world" {
		t.Errorf("read = errno %d, %q", e, text)
	}
	g.must("fd_pwrite", fd, g.vector(g.put("W")), 1, 6, g.room(4))
	buf, result := g.room(8), g.room(4)
	g.must("fd_pread", fd, g.vector(buf, 5), 1, 6, result)
	if got := string(g.bytes(buf, int(g.u32(result)))); got != "World" {
		t.Errorf("pread = %q", got)
	}
	g.must("fd_tell", fd, at)
	if g.u64(at) != 11 {
		t.Errorf("position %d after pread and pwrite", g.u64(at))
	}
	g.must("fd_filestat_set_size", fd, 5)
	g.must("fd_allocate", fd, 0, 3)
	if got := d.content(t, "new"); got != "hello" {
		t.Errorf("after truncating, and allocating less: %q", got)
	}
	g.must("fd_allocate", fd, 5, 2)
	if got := d.content(t, "new"); got != "hello\x00\x00" {
		t.Errorf("after allocating: %q", got)
	}
	for _, name := range []string{"fd_sync", "fd_datasync"} {
		g.must(name, fd)
	}
	g.must("fd_advise", fd, 0, 0, 5)
	for name, tt := range map[string]struct{ got, want uint64 }{
		"advice that is none":     {g.call("fd_advise", fd, 0, 0, 6), inval},
		"seek before the start":   {g.call("fd_seek", fd, ^uint64(0), 0, at), inval},
		"seek beyond all files":   {g.call("fd_seek", fd, 1<<63-1, 1, at), 61},
		"seek from nowhere":       {g.call("fd_seek", fd, 0, 3, at), inval},
		"allocating nothing":      {g.call("fd_allocate", fd, 0, 0), inval},
		"allocating too much":     {g.call("fd_allocate", fd, 1<<62, 1<<62), fbig},
		"a size beyond all files": {g.call("fd_filestat_set_size", fd, 1<<63), fbig},
		"pread before the start":  {g.call("fd_pread", fd, g.vector(buf, 1), 1, 1<<63, result), inval},
		"pwrite before the start": {g.call("fd_pwrite", fd, g.vector(buf, 1), 1, 1<<63, result), inval},
		"pwrite at the very end":  {g.call("fd_pwrite", fd, g.vector(buf, 1), 1, 1<<63-1, result), fbig},
		"a directory as file":     {g.call("fd_seek", root, 0, 0, at), isdir},
		"reading a directory":     {g.call("fd_read", root, g.vector(buf, 1), 1, result), isdir},
		"a file as directory":     {g.call("path_create_directory", fd, buf, 1), notdir},
		"what is not open":        {g.call("fd_close", 99), badf},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = errno %d, want %d", name, tt.got, tt.want)
		}
	}
}

func TestAppend(t *testing.T) {
	g, d := newFileGuest(t, true)
	at, size := g.put("file")
	result := g.room(4)
	g.must("path_open", root, 1, at, size, 0, rAll, 0, fdAppend, result)
	fd := uint64(g.u32(result))
	other := g.mustOpen("file", 0, rAll)
	g.write(fd, "+1")
	g.must("fd_seek", other, 0, 2, g.room(8))
	g.write(other, "+2")
	g.write(fd, "+3")
	g.must("fd_pwrite", fd, g.vector(g.put("IN")), 1, 0, result)
	if got := d.content(t, "file"); got != "INside+1+2+3" {
		t.Errorf("after appending: %q", got)
	}
	g.must("fd_fdstat_set_flags", fd, 0)
	g.must("fd_seek", fd, 0, 0, g.room(8))
	g.write(fd, "in")
	g.must("fd_fdstat_set_flags", fd, fdAppend)
	g.write(fd, "!")
	if got := d.content(t, "file"); got != "inside+1+2+3!" {
		t.Errorf("after changing the flag: %q", got)
	}
	if e := g.call("fd_fdstat_set_flags", fd, 16); e != notsup {
		t.Errorf("setting sync afterwards = errno %d, want ENOTSUP", e)
	}
	if e := g.call("fd_fdstat_set_flags", fd, 32); e != inval {
		t.Errorf("a flag that is none = errno %d, want EINVAL", e)
	}
	g.must("path_open", root, 1, at, size, 0, rAll, 0, 16, result) // sync
	g.write(uint64(g.u32(result)), "I")
	if got := d.content(t, "file"); got != "Inside+1+2+3!" {
		t.Errorf("after writing synchronously: %q", got)
	}
}

func TestRenumber(t *testing.T) {
	var out bytes.Buffer
	g, d := newFileGuest(t, true)
	g.p.Stdout = &out
	fd := g.mustOpen("file", oTruncate, rAll)
	g.must("fd_renumber", fd, 1)
	g.write(1, "redirected")
	if out.Len() != 0 || d.content(t, "file") != "redirected" {
		t.Errorf("stdout got %q, the file %q", &out, d.content(t, "file"))
	}
	for name, tt := range map[string]struct{ got, want uint64 }{
		"the old number":       {g.call("fd_close", fd), badf},
		"onto what is closed":  {g.call("fd_renumber", 1, 99), badf},
		"of what is closed":    {g.call("fd_renumber", 99, 1), badf},
		"of a granted folder":  {g.call("fd_renumber", root, 1), notsup},
		"onto the same folder": {g.call("fd_renumber", 1, root), notsup},
		"onto itself":          {g.call("fd_renumber", 1, 1), success},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = errno %d, want %d", name, tt.got, tt.want)
		}
	}
}
