package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

func TestInstantiateNeedsToFindTheProcess(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	defer r.Close(t.Context())
	if err := wasi.Instantiate(t.Context(), r, nil); err == nil {
		t.Error("Instantiate without a function that finds the process succeeds")
	}
}

func TestEveryCallWithoutAProcessIsRefused(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	g.ctx = t.Context()
	for name, params := range signatures {
		if name == "proc_exit" {
			continue
		}
		if e := g.call(name, make([]uint64, len(params))...); e != nosys {
			t.Errorf("%s = errno %d, want ENOSYS", name, e)
		}
	}
	_, err := g.mod.ExportedFunction("proc_exit").Call(g.ctx, 3)
	if code, ok := exitCode(err); !ok || code != 3 {
		t.Errorf("proc_exit: %v", err)
	}
}

func TestAModuleWithoutMemoryIsRefused(t *testing.T) {
	mod, err := newRuntime(t).Instantiate(t.Context(), wrapper(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), processKey{}, &wasi.Process{})
	for name, params := range signatures {
		if name == "proc_exit" {
			continue
		}
		res, err := mod.ExportedFunction(name).Call(ctx, make([]uint64, len(params))...)
		if err != nil || res[0] != fault {
			t.Errorf("%s = %v, %v, want EFAULT", name, res, err)
		}
	}
}

func TestExitLeavesTheInstanceUsable(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	for _, want := range []uint64{0, 7, 1<<32 - 1} {
		_, err := g.mod.ExportedFunction("proc_exit").Call(g.ctx, want)
		if code, ok := exitCode(err); err == nil || !ok || uint64(code) != want {
			t.Fatalf("exit %d: %v", want, err)
		}
		g.must("sched_yield")
	}
}

func TestArgumentsAndEnvironment(t *testing.T) {
	g := newGuest(t, &wasi.Process{Args: []string{"tool", "", "größe"}, Env: []string{"A=1", "B="}})
	for name, want := range map[string][]string{"args": g.p.Args, "environ": g.p.Env} {
		count, size := g.room(4), g.room(4)
		g.must(name+"_sizes_get", count, size)
		pointers, text := g.room(int(4*g.u32(count))), g.room(int(g.u32(size)))
		g.must(name+"_get", pointers, text)
		var got []string
		for i := range uint64(g.u32(count)) {
			from := uint64(g.u32(pointers + 4*i))
			all := g.bytes(from, int(text+uint64(g.u32(size))-from))
			got = append(got, string(all[:bytes.IndexByte(all, 0)]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheZeroProcess(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	if e, text := g.read(0, 8); e != success || text != "" {
		t.Errorf("read = errno %d, %q, want an empty stdin", e, text)
	}
	if e := g.write(1, "x"); e != success {
		t.Errorf("write to stdout = errno %d", e)
	}
	if e := g.call("fd_prestat_get", 3, g.room(8)); e != badf {
		t.Errorf("fd_prestat_get 3 = errno %d, want EBADF", e)
	}
}

func TestStreams(t *testing.T) {
	var out, log bytes.Buffer
	g := newGuest(t, &wasi.Process{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &log})
	if e, text := g.read(0, 3); e != success || text != "hel" {
		t.Errorf("read = errno %d, %q", e, text)
	}
	if e, text := g.read(0, 8); e != success || text != "lo" {
		t.Errorf("second read = errno %d, %q", e, text)
	}
	if e, text := g.read(0, 8); e != success || text != "" {
		t.Errorf("read at the end = errno %d, %q", e, text)
	}
	a, an := g.put("one")
	b, bn := g.put("two")
	vectors := g.vector(a, an)
	g.vector(b, bn) // directly behind
	result := g.room(4)
	g.must("fd_write", 1, vectors, 2, result)
	g.must("fd_write", 2, vectors, 1, result)
	if out.String() != "onetwo" || log.String() != "one" {
		t.Errorf("stdout %q, stderr %q", &out, &log)
	}
	for name, want := range map[string]uint64{
		"write to stdin":   g.write(0, "x"),
		"read from stdout": g.call("fd_read", 1, vectors, 1, result),
	} {
		if want != badf {
			t.Errorf("%s = errno %d, want EBADF", name, want)
		}
	}
	for _, fd := range []uint64{0, 1, 2} {
		if e := g.call("fd_seek", fd, 0, 0, result); e != spipe {
			t.Errorf("seek %d = errno %d, want ESPIPE", fd, e)
		}
		if e := g.call("fd_sync", fd); e != inval {
			t.Errorf("sync %d = errno %d, want EINVAL", fd, e)
		}
	}
	g.must("fd_close", 1)
	if e := g.write(1, "x"); e != badf {
		t.Errorf("write to closed stdout = errno %d, want EBADF", e)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestAStreamThatFails(t *testing.T) {
	g := newGuest(t, &wasi.Process{Stdout: brokenWriter{errors.New("full")}, Stderr: brokenWriter{io.ErrClosedPipe}})
	if e := g.write(1, "x"); e != eio {
		t.Errorf("stdout = errno %d, want EIO", e)
	}
	if e := g.write(2, "x"); e != 64 {
		t.Errorf("stderr = errno %d, want EPIPE", e)
	}
}

func TestClocks(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		precise bool
		step    uint64
	}{"coarse": {false, 1e6}, "precise": {true, 1e3}} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, &wasi.Process{PreciseClocks: tt.precise})
			at := g.room(8)
			for clock := range uint64(2) {
				g.must("clock_res_get", clock, at)
				if got := g.u64(at); got != tt.step {
					t.Errorf("resolution of clock %d = %d, want %d", clock, got, tt.step)
				}
				g.must("clock_time_get", clock, 1, at)
				if now := g.u64(at); now == 0 || now%tt.step != 0 {
					t.Errorf("clock %d shows %d, want a multiple of %d", clock, now, tt.step)
				}
			}
			g.must("clock_time_get", 0, 0, at)
			if off := time.Since(time.Unix(0, int64(g.u64(at)))); off < 0 || off > day {
				t.Errorf("the real-time clock is %v late", off)
			}
			g.must("clock_time_get", 1, 0, at)
			before := g.u64(at)
			time.Sleep(3 * time.Millisecond)
			g.must("clock_time_get", 1, 0, at)
			if took := g.u64(at) - before; took < 2e6 || took > uint64(day) {
				t.Errorf("after 3 ms the monotonic clock moved by %d ns", took)
			}
			for clock, want := range map[uint64]uint64{2: notsup, 3: notsup, 4: inval, 1<<32 - 1: inval} {
				if e := g.call("clock_time_get", clock, 0, at); e != want {
					t.Errorf("clock %d = errno %d, want %d", clock, e, want)
				}
				if e := g.call("clock_res_get", clock, at); e != want {
					t.Errorf("resolution of clock %d = errno %d, want %d", clock, e, want)
				}
			}
		})
	}
}

func TestRandom(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	a, b := g.room(32), g.room(32)
	g.must("random_get", a, 32)
	g.must("random_get", b, 32)
	if bytes.Equal(g.bytes(a, 32), g.bytes(b, 32)) || bytes.Equal(g.bytes(a, 32), make([]byte, 32)) {
		t.Errorf("random_get repeats itself: %x %x", g.bytes(a, 32), g.bytes(b, 32))
	}
}

func TestPreopens(t *testing.T) {
	d := newTree(t, false)
	g := newGuest(t, &wasi.Process{Dirs: []wasi.Dir{{Path: "/gone"}, d.dir}, Ask: allow})
	if e := g.call("fd_prestat_get", 3, g.room(8)); e != badf {
		t.Errorf("a directory without a root = errno %d, want EBADF", e)
	}
	at := g.room(8)
	g.must("fd_prestat_get", 4, at)
	if g.u32(at) != 0 || g.u32(at+4) != 5 {
		t.Errorf("prestat = %x", g.bytes(at, 8))
	}
	g.must("fd_prestat_dir_name", 4, at, 5)
	if got := string(g.bytes(at, 5)); got != "/data" {
		t.Errorf("name = %q", got)
	}
	for name, tt := range map[string]struct{ got, want uint64 }{
		"too little room": {g.call("fd_prestat_dir_name", 4, at, 4), nametoolong},
		"stdin":           {g.call("fd_prestat_get", 0, at), badf},
		"none":            {g.call("fd_prestat_dir_name", 5, at, 8), badf},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = errno %d, want %d", name, tt.got, tt.want)
		}
	}
}

func TestSockets(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	for name, params := range signatures {
		if !strings.HasPrefix(name, "sock_") {
			continue
		}
		args := make([]uint64, len(params))
		if e := g.call(name, args...); e != notsock {
			t.Errorf("%s of stdin = errno %d, want ENOTSOCK", name, e)
		}
		args[0] = 9
		if e := g.call(name, args...); e != badf {
			t.Errorf("%s of nothing = errno %d, want EBADF", name, e)
		}
	}
	if e := g.call("proc_raise", 9); e != notsup {
		t.Errorf("proc_raise = errno %d, want ENOTSUP", e)
	}
}
