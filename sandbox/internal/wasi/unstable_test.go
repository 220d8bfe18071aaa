package wasi_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// TestUnstable calls the functions of the version before preview 1 that are others.
func TestUnstable(t *testing.T) {
	d := newTree(t, true)
	p := &wasi.Process{Dirs: []wasi.Dir{d.dir}, Ask: allow}
	mod, err := newRuntime(t).Instantiate(t.Context(), wrapperOf("wasi_unstable", pages))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	g := &guest{t: t, mod: mod, ctx: context.WithValue(t.Context(), processKey{}, p), p: p, free: 64}
	fd := g.mustOpen("file", 0, rAll)
	at := g.room(8)
	for _, tt := range []struct{ whence, offset, want uint64 }{{2, 4, 4}, {0, 1, 5}, {1, 0, 6}} { // from the start, the position, the end
		g.must("fd_seek", fd, tt.offset, tt.whence, at)
		if got := g.u64(at); got != tt.want {
			t.Errorf("seek %d by %d = %d, want %d", tt.whence, tt.offset, got, tt.want)
		}
	}
	if e := g.call("fd_seek", fd, 0, 3, at); e != inval {
		t.Errorf("seek from nowhere = errno %d", e)
	}
	path, n := g.put("file")
	stat, guard := g.room(56), g.room(8)
	for name, args := range map[string][]uint64{"fd_filestat_get": {fd, stat}, "path_filestat_get": {root, 0, path, n, stat}} {
		g.mod.Memory().WriteUint64Le(uint32(guard), 0x1122334455667788)
		g.must(name, args...)
		if b := g.bytes(stat, 56); b[16] != 4 || binary.LittleEndian.Uint32(b[20:]) != 1 || binary.LittleEndian.Uint64(b[24:]) != 6 {
			t.Errorf("%s = % x", name, b)
		}
		if g.u64(guard) != 0x1122334455667788 {
			t.Errorf("%s writes more than 56 bytes", name)
		}
	}
	sub := make([]byte, 56) // a clock of 20 ms, monotonic
	binary.LittleEndian.PutUint64(sub, 7)
	binary.LittleEndian.PutUint32(sub[24:], 1)
	binary.LittleEndian.PutUint64(sub[32:], uint64(20*time.Millisecond))
	list, _ := g.put(string(sub))
	events, count := g.room(32), g.room(4)
	began := time.Now()
	g.must("poll_oneoff", list, events, 1, count)
	if took := time.Since(began); took < 20*time.Millisecond || g.u32(count) != 1 || g.u64(events) != 7 {
		t.Errorf("the clock rang after %v, %d events, userdata %d", took, g.u32(count), g.u64(events))
	}
}
