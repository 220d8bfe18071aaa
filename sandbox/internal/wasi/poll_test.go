package wasi_test

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// subscription is one of poll_oneoff: a clock, or a descriptor to read (1) or
// write (2).
func subscription(mark uint64, kind byte, id uint32, timeout time.Duration, flags uint16) string {
	b := make([]byte, 48)
	binary.LittleEndian.PutUint64(b, mark)
	b[8] = kind
	binary.LittleEndian.PutUint32(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], uint64(timeout))
	binary.LittleEndian.PutUint16(b[40:], flags)
	return string(b)
}

// waiter is a stdin that has something to read once the channel is closed.
type waiter struct {
	io.Reader
	ready chan struct{}
}

func (w waiter) Wait(ctx context.Context) bool {
	select {
	case <-w.ready:
		return true
	default:
	}
	select {
	case <-w.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

func TestPoll(t *testing.T) {
	g, _ := newFileGuest(t, true)
	g.p.Stdin = waiter{strings.NewReader("x"), make(chan struct{})}
	file := uint32(g.mustOpen("file", 0, rRead|1<<27))
	write := uint32(g.mustOpen("file", 0, rWrite|1<<27))
	blind := uint32(g.mustOpen("file", 0, rRead))
	const short, long = 10 * time.Millisecond, time.Hour
	tests := map[string]struct {
		subscriptions []string
		want          map[uint64]uint64 // mark to errno
		waits         time.Duration
	}{
		"a sleep":                       {[]string{subscription(1, 0, 1, short, 0)}, map[uint64]uint64{1: success}, short},
		"a sleep by the real clock":     {[]string{subscription(1, 0, 0, short, 0)}, map[uint64]uint64{1: success}, short},
		"the shorter of two":            {[]string{subscription(1, 0, 1, long, 0), subscription(2, 0, 1, short, 0)}, map[uint64]uint64{2: success}, short},
		"a time that has passed":        {[]string{subscription(1, 0, 0, 1, 1)}, map[uint64]uint64{1: success}, 0},
		"a monotonic time that passed":  {[]string{subscription(1, 0, 1, 1, 1)}, map[uint64]uint64{1: success}, 0},
		"CPU time":                      {[]string{subscription(1, 0, 2, short, 0)}, map[uint64]uint64{1: notsup}, 0},
		"a clock that is none":          {[]string{subscription(1, 0, 9, short, 0)}, map[uint64]uint64{1: inval}, 0},
		"a kind that is none":           {[]string{subscription(1, 9, 0, 0, 0)}, map[uint64]uint64{1: inval}, 0},
		"stdout and a clock":            {[]string{subscription(1, 0, 1, long, 0), subscription(2, 2, 1, 0, 0)}, map[uint64]uint64{2: success}, 0},
		"a file to read and to write":   {[]string{subscription(1, 1, file, 0, 0), subscription(2, 2, write, 0, 0)}, map[uint64]uint64{1: success, 2: success}, 0},
		"a file for what it is not for": {[]string{subscription(1, 2, file, 0, 0)}, map[uint64]uint64{1: badf}, 0},
		"a file without the right":      {[]string{subscription(1, 1, blind, 0, 0)}, map[uint64]uint64{1: notcapable}, 0},
		"what is not open":              {[]string{subscription(1, 1, 99, 0, 0)}, map[uint64]uint64{1: badf}, 0},
		"stdin that stays silent":       {[]string{subscription(1, 1, 0, 0, 0), subscription(2, 0, 1, short, 0)}, map[uint64]uint64{2: success}, short},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in, _ := g.put(strings.Join(tt.subscriptions, ""))
			n := len(tt.subscriptions)
			events, count := g.room(32*n), g.room(4)
			start := time.Now()
			g.must("poll_oneoff", in, events, uint64(n), count)
			if took := time.Since(start); took < tt.waits {
				t.Errorf("it took %v, want at least %v", took, tt.waits)
			}
			got := map[uint64]uint64{}
			for i := range uint64(g.u32(count)) {
				got[g.u64(events+32*i)] = uint64(binary.LittleEndian.Uint16(g.bytes(events+32*i+8, 2)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPollWakesWhenStdinIsReady(t *testing.T) {
	ready := make(chan struct{})
	g := newGuest(t, &wasi.Process{Stdin: waiter{strings.NewReader("x"), ready}})
	g.must("fd_fdstat_set_flags", 0, 4) // nonblock
	if e, _ := g.read(0, 1); e != again {
		t.Errorf("read without waiting = errno %d, want EAGAIN", e)
	}
	time.AfterFunc(5*time.Millisecond, func() { close(ready) })
	in, _ := g.put(subscription(7, 1, 0, 0, 0))
	events, count := g.room(32), g.room(4)
	g.must("poll_oneoff", in, events, 1, count)
	if g.u32(count) != 1 || g.u64(events) != 7 {
		t.Errorf("%d events, the first for %d", g.u32(count), g.u64(events))
	}
	if e, text := g.read(0, 1); e != success || text != "x" {
		t.Errorf("read = errno %d, %q", e, text)
	}
}

func TestPollEndsWithTheContext(t *testing.T) {
	for name, s := range map[string]string{
		"a sleep":  subscription(1, 0, 1, time.Hour, 0),
		"stdin":    subscription(1, 1, 0, 0, 0),
		"for ever": subscription(1, 0, 1, -1, 0),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, &wasi.Process{Stdin: waiter{nil, make(chan struct{})}})
			ctx, cancel := context.WithTimeout(g.ctx, 10*time.Millisecond)
			defer cancel()
			g.ctx = ctx
			in, _ := g.put(s)
			if e := g.call("poll_oneoff", in, g.room(32), 1, g.room(4)); e != intr {
				t.Errorf("errno %d, want EINTR", e)
			}
		})
	}
}
