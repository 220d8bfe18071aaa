package wasi

import (
	"context"
	"io"
	"time"

	"github.com/tetratelabs/wazero/api"
)

const (
	maxSubscriptions = 1024

	subscriptionSize = 48 // typenames.witx, $subscription
	eventSize        = 32 // $event

	pollClock = 0 // $eventtype
	pollRead  = 1
	pollWrite = 2

	absolute = 1 // $subclockflags

	// maxSleep keeps sums of times from overflowing: 146 years.
	maxSleep = time.Duration(1) << 62
)

// pollOneoff waits until one of the subscriptions is due, or ctx ends (EINTR).
func pollOneoff(ctx context.Context, p *Process, mem api.Memory, a []uint64) errno {
	n := uint32(a[2])
	if n == 0 || n > maxSubscriptions {
		return errInvalid
	}
	list, ok := at(mem, a[0], n*subscriptionSize)
	if !ok {
		return errFault
	}
	return p.poll(ctx, mem, list, a)
}

// poll polls a list of subscriptions, with the arguments of poll_oneoff.
func (p *Process) poll(ctx context.Context, mem api.Memory, list []byte, a []uint64) errno {
	events, ok := at(mem, a[1], uint32(a[2])*eventSize)
	if !ok {
		return errFault
	}
	count, ok := at(mem, a[3], 4)
	if !ok {
		return errFault
	}
	p.charge(len(list) + len(events))
	w := poll{p: p, start: time.Now(), list: list, events: events}
	for {
		if w.look(ctx); w.found > 0 {
			le.PutUint32(count, uint32(w.found))
			return success
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		w.wait(ctx)
	}
}

// A poll is one poll_oneoff.
type poll struct {
	p      *Process
	start  time.Time
	list   []byte
	events []byte
	found  int // events written

	until time.Time // when the first clock is due
	timed bool      // there is a clock
	stdin io.Reader // which somebody waits for, or nil
}

// look writes an event for each subscription that is due, and notes what to
// wait for.
func (w *poll) look(ctx context.Context) {
	for s := w.list; len(s) > 0; s = s[subscriptionSize:] {
		switch kind := s[8]; kind {
		case pollClock:
			w.clock(s)
		case pollRead, pollWrite:
			w.file(ctx, s, kind)
		default:
			w.event(s, errInvalid, 0)
		}
	}
}

func (w *poll) clock(s []byte) {
	if e := knownClock(uint64(le.Uint32(s[16:]))); e != success {
		w.event(s, e, 0)
		return
	}
	due := w.due(s)
	if !time.Now().Before(due) {
		w.event(s, success, 0)
		return
	}
	if !w.timed || due.Before(w.until) {
		w.until, w.timed = due, true
	}
}

// due is when the clock of a subscription rings.
func (w *poll) due(s []byte) time.Time {
	timeout := time.Duration(min(le.Uint64(s[24:]), uint64(maxSleep)))
	if le.Uint16(s[40:])&absolute == 0 {
		return w.start.Add(timeout)
	}
	if le.Uint32(s[16:]) == clockMonotonic {
		return origin.Add(timeout)
	}
	return time.Unix(0, int64(timeout))
}

func (w *poll) file(ctx context.Context, s []byte, kind byte) {
	want := rightPoll | rightFdRead
	if kind == pollWrite {
		want = rightPoll | rightFdWrite
	}
	f, e := w.p.table.with(uint64(le.Uint32(s[16:])), want)
	if e != success {
		w.event(s, e, 0)
		return
	}
	if f.in != nil && !ready(ctx, f.in) {
		w.stdin = f.in
		return
	}
	var bytes int64
	if f.disk != nil && kind == pollRead {
		if info, err := f.disk.host.Stat(); err == nil {
			bytes = max(0, info.Size()-f.disk.position)
		}
	}
	w.event(s, success, uint64(bytes))
}

// event answers a subscription.
func (w *poll) event(s []byte, e errno, bytes uint64) {
	b := w.events[w.found*eventSize:][:eventSize]
	clear(b)
	copy(b, s[:8]) // the guest's own mark
	le.PutUint16(b[8:], uint16(e))
	b[10] = s[8]
	le.PutUint64(b[16:], bytes)
	w.found++
}

// wait waits for the first clock or for stdin.
func (w *poll) wait(ctx context.Context) {
	if w.timed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.until)
		defer cancel()
	}
	if stdin, ok := w.stdin.(Waiter); ok {
		stdin.Wait(ctx)
		return
	}
	if w.p.Sleep != nil {
		w.p.Sleep(ctx)
		return
	}
	<-ctx.Done()
}

// ready reports whether a stdin would not block.
func ready(ctx context.Context, in io.Reader) bool {
	stdin, ok := in.(Waiter)
	if !ok {
		return true
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	return stdin.Wait(now)
}
