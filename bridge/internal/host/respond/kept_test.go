package respond

import (
	"fmt"
	"testing"
)

// TestStreamsKept is bounded: what was dropped cannot be resumed, and says so.
func TestStreamsKept(t *testing.T) {
	k := NewKept()
	const streams, size = 20, 1 << 20
	for i := range streams {
		name := fmt.Sprint("s", i)
		k.Open("one", name)
		k.Add("one", name, nil) // as a stream begins
		k.Add("one", name, make([]byte, size))
	}
	kept := 0
	for i := range streams {
		if events, ok := k.After("one", fmt.Sprint("s", i), 0); ok && len(events) == 1 && len(events[0]) == size {
			kept++
		}
	}
	if kept < 5 || kept > 10 {
		t.Errorf("%d MiB kept, want nearly 10", kept)
	}
	k.Add("one", "s0", []byte("x"))
	if events, ok := k.After("one", "s0", 0); ok {
		t.Errorf("of a stream whose beginning is lost: %q", events)
	}
	for range 100_000 {
		k.Add("one", "", []byte("{}"))
	}
	for i := range 10_000 {
		k.Open("two", fmt.Sprint(i))
	}
	if n, size := len(k.streams), k.size; n > 4096 || size > 10<<20 {
		t.Errorf("%d streams of %d bytes", n, size)
	}
	if events, ok := k.After("two", "", -1); !ok || len(events) > 0 {
		t.Errorf("who opens a stream anew is sent %q, %v", events, ok)
	}
	k.Forget("one")
	k.Forget("two")
	if n, size := len(k.streams), k.size; n != 0 || size != 0 {
		t.Errorf("%d streams of %d bytes are left of sessions that have ended", n, size)
	}
}
