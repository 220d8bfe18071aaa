package wasi_test

import (
	"io"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// endless is a stdin that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// hotCalls are what a command that reads its request and writes its answer
// does. Each is called through one function of the guest.
func hotCalls(g *guest) map[string][]uint64 {
	vector, result := g.vector(g.room(400), 400), g.room(64)
	return map[string][]uint64{
		"fd_read":         {0, vector, 1, result},
		"fd_write":        {1, vector, 1, result},
		"fd_fdstat_get":   {1, result},
		"fd_prestat_get":  {3, result},
		"clock_time_get":  {1, 0, result},
		"environ_get":     {result, result},
		"args_sizes_get":  {result, result},
		"random_get":      {result, 16},
		"sched_yield":     {},
		"fd_filestat_get": {1, result},
	}
}

func hotGuest(t testing.TB) *guest {
	return newGuest(t, &wasi.Process{Stdin: endless{}, Stdout: io.Discard, Charge: func(int) error { return nil }})
}

func (g *guest) again(name string, args []uint64) func() {
	f := g.mod.ExportedFunction(name)
	stack := make([]uint64, max(len(args), 1))
	return func() {
		copy(stack, args)
		if err := f.CallWithStack(g.ctx, stack); err != nil {
			g.t.Fatal(err)
		}
	}
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	g := hotGuest(t)
	for name, args := range hotCalls(g) {
		if n := testing.AllocsPerRun(100, g.again(name, args)); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// BenchmarkHostCall measures one host call of each kind, from Go into the guest
// and from there into the host; sched_yield is the cheapest of them.
func BenchmarkHostCall(b *testing.B) {
	g := hotGuest(b)
	for name, args := range hotCalls(g) {
		b.Run(name, func(b *testing.B) {
			call := g.again(name, args)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// BenchmarkFile measures opening, reading and closing a file in a directory
// below its grant, and what that costs in allocations.
func BenchmarkFile(b *testing.B) {
	g, _ := newFileGuest(b, false)
	path, n := g.put("sub/deep")
	at := g.room(8)
	const fd = root + 1 // the next one
	open := g.again("path_open", []uint64{root, 1, path, n, 0, rRead, 0, 0, at})
	read := g.again("fd_read", []uint64{fd, g.vector(g.room(400), 400), 1, at})
	closing := g.again("fd_close", []uint64{fd})
	b.ReportAllocs()
	for b.Loop() {
		open()
		read()
		closing()
	}
	if e, text := g.read(g.mustOpen("sub/deep", 0, rRead), 9); e != success || text != "deep" {
		b.Errorf("errno %d, %q", e, text)
	}
}
