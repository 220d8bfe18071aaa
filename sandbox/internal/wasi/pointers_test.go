package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// TestBadPointers gives each function, in each place of a pointer, one that is
// out of bounds, while everything else is right.
func TestBadPointers(t *testing.T) {
	const end = pages << 16
	g, d := newFileGuest(t, true)
	g.p.Args, g.p.Env = []string{"tool"}, []string{"A=b"}
	d.hostLink(t, "file", "link")
	file := g.mustOpen("file", 0, rAll)
	name, n := g.put("file")
	link, m := g.put("link")
	fresh, f := g.put("fresh")
	at, at2 := g.room(256), g.room(4)
	vector := g.vector(at, 8)
	sleep, _ := g.put(subscription(1, 0, 1, 0, 0))
	tests := map[string]struct {
		args     []uint64
		pointers []int
	}{
		"args_get":                {[]uint64{at, at2}, []int{0, 1}},
		"args_sizes_get":          {[]uint64{at, at2}, []int{0, 1}},
		"environ_get":             {[]uint64{at, at2}, []int{0, 1}},
		"environ_sizes_get":       {[]uint64{at, at2}, []int{0, 1}},
		"clock_res_get":           {[]uint64{0, at}, []int{1}},
		"clock_time_get":          {[]uint64{0, 0, at}, []int{2}},
		"fd_fdstat_get":           {[]uint64{file, at}, []int{1}},
		"fd_filestat_get":         {[]uint64{file, at}, []int{1}},
		"fd_pread":                {[]uint64{file, vector, 1, 0, at2}, []int{1, 4}},
		"fd_prestat_get":          {[]uint64{root, at}, []int{1}},
		"fd_prestat_dir_name":     {[]uint64{root, at, 9}, []int{1}},
		"fd_pwrite":               {[]uint64{file, vector, 1, 0, at2}, []int{1, 4}},
		"fd_read":                 {[]uint64{file, vector, 1, at2}, []int{1, 3}},
		"fd_readdir":              {[]uint64{root, at, 99, 0, at2}, []int{1, 4}},
		"fd_seek":                 {[]uint64{file, 0, 0, at}, []int{3}},
		"fd_tell":                 {[]uint64{file, at}, []int{1}},
		"fd_write":                {[]uint64{file, vector, 1, at2}, []int{1, 3}},
		"path_create_directory":   {[]uint64{root, fresh, f}, []int{1}},
		"path_filestat_get":       {[]uint64{root, 0, name, n, at}, []int{2, 4}},
		"path_filestat_set_times": {[]uint64{root, 0, name, n, 0, 0, 0}, []int{2}},
		"path_link":               {[]uint64{root, 0, name, n, root, fresh, f}, []int{2, 5}},
		"path_open":               {[]uint64{root, 0, fresh, f, oCreate, rAll, 0, 0, at}, []int{2, 8}},
		"path_readlink":           {[]uint64{root, link, m, at, 9, at2}, []int{1, 3, 5}},
		"path_remove_directory":   {[]uint64{root, name, n}, []int{1}},
		"path_rename":             {[]uint64{root, name, n, root, fresh, f}, []int{1, 4}},
		"path_symlink":            {[]uint64{name, n, root, fresh, f}, []int{0, 3}},
		"path_unlink_file":        {[]uint64{root, name, n}, []int{1}},
		"poll_oneoff":             {[]uint64{sleep, at, 1, at2}, []int{0, 1, 3}},
		"random_get":              {[]uint64{at, 9}, []int{0}},
	}
	before := snapshot(t, d.outside)
	for fn, tt := range tests {
		for _, i := range tt.pointers {
			for _, bad := range []uint64{end, end - 1, 1<<32 - 1, 1 << 31} {
				args := append([]uint64(nil), tt.args...)
				args[i] = bad
				if e := g.call(fn, args...); e != fault {
					t.Errorf("%s with pointer %d at %#x = errno %d, want EFAULT", fn, i, bad, e)
				}
			}
		}
	}
	if diff := cmp.Diff(before, snapshot(t, d.outside)); diff != "" {
		t.Errorf("files have changed (-before +after):\n%s", diff)
	}
	for fn, params := range signatures { // the table is complete
		if _, ok := tests[fn]; !ok && strings.Contains("fd_advise fd_allocate fd_close fd_datasync fd_fdstat_set_flags fd_fdstat_set_rights "+
			"fd_filestat_set_size fd_filestat_set_times fd_renumber fd_sync proc_exit proc_raise sched_yield "+
			"sock_accept sock_recv sock_send sock_shutdown", fn) == false {
			t.Errorf("%s (%s) is not tried", fn, params)
		}
	}
}

func TestVectors(t *testing.T) {
	const end = pages << 16
	var out bytes.Buffer
	g := newGuest(t, &wasi.Process{Stdin: strings.NewReader("0123456789"), Stdout: &out})
	at, result := g.room(16), g.room(4)
	for name, tt := range map[string]struct {
		vectors, count uint64
		want           uint64
	}{
		"none":                              {at, 0, success},
		"one of no bytes":                   {g.vector(at, 0), 1, success},
		"a buffer out of bounds":            {g.vector(end-4, 8), 1, fault},
		"a buffer of all addresses":         {g.vector(0, 1<<32-1), 1, fault},
		"a buffer that wraps":               {g.vector(1<<32-8, 16), 1, fault},
		"vectors out of bounds":             {end - 8, 2, fault},
		"more than 1024":                    {at, 1025, inval},
		"so many that their size overflows": {at, 1<<29 + 1, inval},
	} {
		for _, fn := range []string{"fd_read", "fd_write"} {
			fd := map[string]uint64{"fd_read": 0, "fd_write": 1}[fn]
			if e := g.call(fn, fd, tt.vectors, tt.count, result); e != tt.want {
				t.Errorf("%s, %s = errno %d, want %d", fn, name, e, tt.want)
			}
		}
	}
	// A good buffer before a bad one: nothing is written.
	good := g.vector(g.put("text"))
	g.vector(end, 1)
	if e := g.call("fd_write", 1, good, 2, result); e != fault || out.Len() != 0 {
		t.Errorf("a good and a bad buffer = errno %d, %q written", e, &out)
	}
	if _, text := g.read(0, 99); text != "0123456789" {
		t.Errorf("refused reads have consumed input, left is %q", text)
	}
}

func TestVectorsOfMoreThanCanBeAnswered(t *testing.T) {
	g := newGuestWith(t, &wasi.Process{}, 64)
	all := binary.LittleEndian.AppendUint32(make([]byte, 4), 64<<16) // 4 MiB from address 0 on
	vectors, _ := g.put(strings.Repeat(string(all), 1024))
	for _, n := range []uint64{512, 1024} { // 2 and 4 GiB
		if e := g.call("fd_write", 1, vectors, n, g.room(4)); e != inval {
			t.Errorf("%d vectors of 4 MiB = errno %d, want EINVAL", n, e)
		}
	}
	g.must("fd_write", 1, vectors, 511, g.room(4))
}

func TestAReadOverItsOwnVectors(t *testing.T) {
	g, d := newFileGuest(t, true)
	bad := binary.LittleEndian.AppendUint32(nil, 1<<31)
	bad = binary.LittleEndian.AppendUint32(bad, 1<<31-1)
	if err := os.WriteFile(filepath.Join(d.granted, "file"), append(bad, "more"...), 0o644); err != nil {
		t.Fatal(err)
	}
	fd := g.mustOpen("file", 0, rAll)
	vectors := g.room(16)
	g.mod.Memory().WriteUint64Le(uint32(vectors), (vectors+8)|8<<32) // onto the second vector
	g.mod.Memory().WriteUint64Le(uint32(vectors)+8, vectors|4<<32)
	if e := g.call("fd_read", fd, vectors, 2, g.room(4)); e != fault {
		t.Errorf("errno %d, want EFAULT", e)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	g := newGuest(t, &wasi.Process{})
	at, count := g.room(8), g.room(4)
	for _, n := range []uint64{0, 1025, 1 << 31, 1<<32/48 + 1, 1<<32 - 1} {
		if e := g.call("poll_oneoff", at, at, n, count); e != inval {
			t.Errorf("%d subscriptions = errno %d, want EINVAL", n, e)
		}
	}
	in, _ := g.put(strings.Repeat(subscription(1, 2, 1, 0, 0), 1024))
	g.must("poll_oneoff", in, g.room(32*1024), 1024, count)
	if g.u32(count) != 1024 {
		t.Errorf("%d of 1024 subscriptions are answered", g.u32(count))
	}
}

// TestAnyArguments calls each function with numbers that are likely to break
// it: nothing but an errno comes back, and files outside stay as they are.
func TestAnyArguments(t *testing.T) {
	const end = pages << 16
	random := seed.Rand(t)
	d := leakyTree(t)
	secret := func() string { return d.content(t, "../secret") }
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing waits
	likely := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 24, 64, 100, 300, 1024, 1025, end - 8, end - 1, end, end + 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	for name, params := range signatures {
		if name == "proc_exit" {
			continue
		}
		p := &wasi.Process{Args: []string{"a"}, Dirs: []wasi.Dir{d.dir}, Ask: allow}
		g := newGuest(t, p)
		g.ctx = context.WithValue(ctx, processKey{}, p)
		for range 300 {
			g.mod.Memory().Write(0, []byte("file\x00\x00\x00\x00../secret"))
			for at := uint32(24); at < 400; at += 4 {
				g.mod.Memory().WriteUint32Le(at, uint32(likely[random.IntN(len(likely))]))
			}
			args := make([]uint64, len(params))
			for i := range args {
				args[i] = likely[random.IntN(len(likely))]
				if params[i] == 'i' {
					args[i] = uint64(uint32(args[i]))
				}
			}
			if e := g.call(name, args...); e > 76 {
				t.Fatalf("%s%v = errno %d", name, args, e)
			}
		}
	}
	if secret() != "secret" {
		t.Errorf("the file outside is now %q", secret())
	}
}
