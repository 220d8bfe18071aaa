package telemetry

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

const (
	// maxSpans is how many calls wait to be exported.
	maxSpans = 2048
	// refusedEach is how many refused calls that were not sampled are exported in a second.
	refusedEach = 10
)

// Spans takes the calls whose spans are to be exported, after their end. A call that finds
// no room is counted, and not waited for.
type Spans struct {
	refused bool // also those that were refused and not sampled
	queue   chan ended
	lost    atomic.Uint64
	second  atomic.Int64 // Unix time of those that were counted last
	taken   atomic.Int64 // refused calls in it
}

// An ended call, or host call, as far as its spans tell of it.
type ended struct {
	event          gate.Event
	trace, linked  tracing.Context // linked is that of the HTTP request, if it is another
	id             string
	action         gate.Action
	server, tool   string // as of names
	offered        string
	code, revision string
	effect         gate.Effect
	began          time.Time
	took           time.Duration
	steps          []step.Time
}

// NewSpans returns an empty queue. With refused it also takes refused calls that were not
// sampled, ten a second.
func NewSpans(refused bool) *Spans {
	return &Spans{refused: refused, queue: make(chan ended, maxSpans)}
}

// Lost is how many calls had no room, or could not be exported.
func (s *Spans) Lost() uint64 { return s.lost.Load() }

// Observe takes a record, if its spans are to be exported.
func (s *Spans) Observe(r *gate.Record, err error) {
	if r.Event != gate.Done && r.Event != gate.HostCall {
		return
	}
	t := r.Call.Trace
	if !t.Sampled && !(r.Event == gate.Done && s.refused && (err != nil || strings.HasPrefix(r.Code, "refused_")) && s.room(r.Time)) {
		return
	}
	e := ended{
		event: r.Event, trace: t, id: r.Call.ID, action: r.Call.Action, code: r.Code, effect: r.Decision.Effect, revision: r.Decision.Revision,
		began: r.Time, took: r.Took, steps: append([]step.Time(nil), r.Steps...),
	}
	if err != nil {
		e.code = unrecorded
	}
	e.server, e.tool = names(r.Tool)
	if r.Tool != nil && e.tool != Other {
		e.offered = r.Tool.Offered
	}
	if h, ok := tracing.Parse(t.Header); ok && (h.ID != t.ID || h.Parent != t.Parent) {
		e.linked = h
	}
	select {
	case s.queue <- e:
	default:
		s.lost.Add(1)
	}
}

// room reports whether one more refused call is taken in its second.
func (s *Spans) room(at time.Time) bool {
	if now := at.Unix(); s.second.Swap(now) != now {
		s.taken.Store(0)
	}
	return s.taken.Add(1) <= refusedEach
}
