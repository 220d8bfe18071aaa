package sandbox

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/internal/image"
)

// CopyMemories makes a runtime reset memories in the way that works everywhere.
// It is for before the first call.
func (r *Runtime) CopyMemories() { r.method = image.Copy }

// CheckIdle compares the instances that wait for their next call with the
// snapshot, memory and globals, and returns how many there are.
func (m *Module) CheckIdle() (int, error) {
	m.instances.mu.Lock()
	defer m.instances.mu.Unlock()
	s := m.snapshot.Load()
	for _, in := range m.instances.idle {
		if err := in.check(s); err != nil {
			return 0, err
		}
	}
	return len(m.instances.idle), nil
}

func (in *instance) check(s *snapshot) error {
	got, ok := in.mod.Memory().Read(0, in.mod.Memory().Size())
	if !ok || int64(len(got)) != s.image.Size() {
		return fmt.Errorf("the memory has %d bytes, the snapshot %d", len(got), s.image.Size())
	}
	if want := s.image.Content(); !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		return fmt.Errorf("the memory differs from the snapshot at %#x", at)
	}
	for i, g := range in.globals {
		if g.Get() != s.globals[i] {
			return fmt.Errorf("global %d is %#x, in the snapshot %#x", i, g.Get(), s.globals[i])
		}
	}
	return nil
}

// Unfit returns why a module cannot be sealed, "" if it is.
func (m *Module) Unfit() string { return m.unfit }

// SliceOf is how large a slice is of a guest with so many bytes of memory.
func SliceOf(memory uint32) int64 { return sliceOf(memory) }

// StackSize is the size of the stack of a function, -1 if it is unknown.
func StackSize(f api.Function) int64 { return stackSize(f) }

// Waiting is how many calls wait for a place, UnderWay how many have one.
func (r *Runtime) Waiting() int { return r.places.Waiting() }

func (r *Runtime) UnderWay() int { return r.places.Held() }

// EndStandbys ends the instances that wait for their call, as a machine too busy to start
// them in time does, and returns how many there were.
func (m *Module) EndStandbys() int {
	m.standbys.mu.Lock()
	defer m.standbys.mu.Unlock()
	for _, s := range m.standbys.idle {
		s.stop()
		<-s.done
	}
	return len(m.standbys.idle)
}

// StartStandby starts one instance more that waits for a call, if not enough do.
func (m *Module) StartStandby() { m.start(true) }

// Standbys is how many wait.
func (m *Module) Standbys() int {
	m.standbys.mu.Lock()
	defer m.standbys.mu.Unlock()
	return len(m.standbys.idle)
}

// Trim drops what was not used for long, at a time to come.
func (r *Runtime) Trim(later time.Duration) { r.trim(time.Now().Add(later)) }

// SessionBytes is what the sessions hold that no call uses.
func (r *Runtime) SessionBytes() int64 {
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	return r.sessions.bytes
}

// BoundSessions sets how many bytes sessions may keep.
func (r *Runtime) BoundSessions(most int64) { r.sessions.most = most }

// BoundCode sets how many bytes of machine code all modules may have.
func (r *Runtime) BoundCode(most int64) { r.maxCode = most }

// Code is how many bytes they have.
func (r *Runtime) Code() int64 { return r.code }

// MaxRewound is how often an instance goes back to where it waits.
const MaxRewound = maxRewound

// Rewindable reports whether an instance waits that can go back, once those that are kept wait.
func (m *Module) Rewindable() (can bool) {
	m.standbys.mu.Lock()
	defer m.standbys.mu.Unlock()
	for _, s := range m.standbys.idle {
		select {
		case <-s.waits:
			can = can || s.rewind.to != nil
		case <-s.done:
		}
	}
	return can
}
