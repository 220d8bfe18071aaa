package sandbox

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A guest executes a slice of instructions between two looks at the time. Each look costs a quarter
// of a microsecond. A slice is also how long the garbage collector waits for a guest, which cannot
// be preempted. No slice is larger than what takes some milliseconds of the slowest instructions,
// whatever was executed before; where they are slow, slices become smaller.
const (
	maxSlice  = int64(1 << 19)
	farSlice  = int64(1 << 15)
	minSlice  = 1 << 12
	longSlice = 2 * time.Millisecond // a slice that took more is followed by a smaller one
)

// sliceOf is how large a slice is at most, by the bytes of memory of a guest; 0 means 4 GiB. A load
// takes 10 to 20 ns from 4 MiB, and 100 to 300 ns from what no cache holds; and each page can be
// new, which takes 0.4 to 2 us. Without memory the slowest are products of subnormal numbers. Some
// processors take 50 ns for one, and every second instruction can be one. Between two looks a guest
// executes a slice that it pays for, and while it returns from calls as much again that it has paid
// for.
func sliceOf(memory uint32) int64 {
	doublings := max(bits.Len32(memory-1)-22, 0) // of 4 MiB
	return max(maxSlice>>doublings, farSlice)
}

// A meter counts the instructions of one call, and looks at its time and its output.
type meter struct {
	life    *lifetime
	stdout  *output
	budget  int64
	granted int64 // what the guest was given of the budget
	globals meterGlobals
	empty   bool // the guest needed more than the budget

	slice  int64
	looked time.Time // when the last slice began
}

// meterGlobals are what an instance counts in: the fuel that is left, and what may be
// executed of what was paid for before the host was asked last.
type meterGlobals struct{ left, behind api.MutableGlobal }

func globalsOf(guest api.Module) meterGlobals {
	return meterGlobals{guest.ExportedGlobal(rewrite.MeterGlobal).(api.MutableGlobal), guest.ExportedGlobal(rewrite.BehindGlobal).(api.MutableGlobal)}
}

// begin is how both are when a call begins.
func (g meterGlobals) begin() {
	g.left.Set(0)
	g.behind.Set(uint64(farSlice))
}

var errFuel = errors.New("the fuel is used up")

// stop ends the guest, which has so much left.
func (m *meter) stop(left int64, err error) {
	m.globals.left.Set(uint64(left))
	panic(err)
}

// adapt chooses the size of the next slice, which is most at most. Since is when the guest got its slot.
func (m *meter) adapt(now, since time.Time, most int64) {
	if since.After(m.looked) { // it has waited for its slot
		m.looked = since
	}
	switch took := now.Sub(m.looked); {
	case m.slice == 0:
		m.slice = most
	case took > longSlice:
		m.slice = max(m.slice/4, minSlice)
	case took < longSlice/4:
		m.slice *= 2
	}
	m.slice = min(m.slice, most)
	m.looked = now
}

// check returns why the guest must end now, if it must, of so much that is left. The clock is asked as well
// as the context: a context ends by a timer, which may be late when guests keep
// all processors busy.
func (m *meter) check(left int64, now time.Time) error {
	if m.granted-left > m.budget {
		m.empty = true
		return errFuel
	}
	if m.stdout.full {
		return errOutput
	}
	return m.life.endedAt(now)
}

var errOutput = errors.New("the output is full")

// renew gives the guest of a server the limits of a call again.
func (m *meter) renew(l Limits) {
	used := m.granted - m.unspent()
	m.budget = used + min(int64(l.Fuel), math.MaxInt64-used)
	m.life.deadline = time.Now().Add(l.Timeout)
}

// used is how many instructions were executed, at most the budget.
func (m *meter) used() uint64 { return uint64(min(m.granted-m.unspent(), m.budget)) }

// unspent is what the guest has left of what it was given.
func (m *meter) unspent() int64 {
	if m.globals.left == nil {
		return 0
	}
	return int64(m.globals.left.Get())
}

// charge takes bytes that the host moves for a guest out of its fuel, at the price of a bulk
// instruction. The bytes that an instance has from the start are free.
func (m *meter) charge(bytes uint64) {
	if left := m.globals.left; left != nil {
		left.Set(left.Get() - bytes/8)
	}
}

// hostPiece is what the host charges for each piece of work in addition to its bytes: one host call
// may read or write a million times.
const hostPiece = 1 << 9

// toll charges for what passes between host and guest, and returns why the guest
// must end, if it must.
func (m *meter) toll(bytes int) error {
	m.charge(uint64(bytes) + hostPiece)
	return m.check(m.unspent(), m.life.now())
}
