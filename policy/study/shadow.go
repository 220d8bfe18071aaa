package study

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/policy"
)

const (
	// shadowQueue is how many calls may wait for a shadow: a second of them at the
	// rate that a busy gateway has.
	shadowQueue = 4096
	// shadowBytes bounds the arguments of the calls that wait, together.
	shadowBytes = 64 << 20
	// shadowDrain is how long a shadow may go on at the end.
	shadowDrain = 2 * time.Second
)

// A Shadow has a second policy decide next to the one in use, so that it can be
// seen what it would change. It enforces nothing: as a [gate.Recorder] it gets
// calls that were decided already, and it decides on them off their way, one after
// the other. Of the calls that come faster than it decides it drops, and counts,
// those that find the queue full.
type Shadow struct {
	report func(Difference)
	engine atomic.Pointer[policy.Engine]
	queue  chan decided
	bytes  atomic.Int64 // of arguments that wait

	compared, differed, dropped atomic.Uint64
}

var _ gate.Recorder = (*Shadow)(nil)

// A Difference is a call on which two policies do not agree.
type Difference struct {
	Event    gate.Event // done or host_call
	Query    gate.Query
	Decision gate.Decision // of the policy in use, which holds
	Shadow   gate.Decision // what it would have been; a deny if Err is set
	Err      error         // why the shadow came to no decision
	// Differs names what is not the same: effect, obligations or labels. Reasons are
	// not compared, for two policies have their own words.
	Differs []string
}

// ShadowCounts say what a [Shadow] has done.
type ShadowCounts struct {
	Compared uint64 `json:"compared"` // calls on which both decided
	Differed uint64 `json:"differed"` // of these
	Dropped  uint64 `json:"dropped"`  // calls on which the shadow did not decide, for want of time
}

// decided is a call that waits for the shadow.
type decided struct {
	event    gate.Event
	query    gate.Query
	decision gate.Decision
}

// NewShadow returns a Shadow without a policy: see [Shadow.Set]. Report is given
// each difference, by the goroutine of [Shadow.Run].
func NewShadow(report func(Difference)) *Shadow {
	return &Shadow{report: report, queue: make(chan decided, shadowQueue)}
}

// Set puts a policy in the place of the shadow's; nil lets it decide nothing.
func (s *Shadow) Set(e *policy.Engine) { s.engine.Store(e) }

// Policy returns the shadow's policy, or nil.
func (s *Shadow) Policy() *policy.Engine { return s.engine.Load() }

// A ShadowStatus tells how a shadow policy is.
type ShadowStatus struct {
	Revision string `json:"policy_revision,omitempty"`
	ShadowCounts
}

// Status tells how the shadow policy is, or nil if there is none.
func (s *Shadow) Status() *ShadowStatus {
	e := s.Policy()
	if e == nil {
		return nil
	}
	return &ShadowStatus{Revision: e.Revision(), ShadowCounts: s.Counts()}
}

// Counts returns what was done so far.
func (s *Shadow) Counts() ShadowCounts {
	return ShadowCounts{s.compared.Load(), s.differed.Load(), s.dropped.Load()}
}

// Record puts a call that was decided into the queue. It does not wait, and its
// error is always nil.
func (s *Shadow) Record(_ context.Context, r *gate.Record) error {
	if s.engine.Load() == nil || r.Event != gate.Done && r.Event != gate.HostCall || r.Tool == nil {
		return nil
	}
	if r.Decision.Effect == "" && r.Code != failedDecision {
		return nil // it was refused before it was decided on
	}
	c := *r.Call
	d := decided{r.Event, gate.Query{Call: &c, Tool: r.Tool, Session: r.Session}, r.Decision.Asked()}
	if d.decision.Effect == "" {
		d.decision.Effect = gate.Deny
	}
	size := int64(len(c.Args.Raw()))
	if s.bytes.Add(size) > shadowBytes {
		s.bytes.Add(-size)
		s.dropped.Add(1)
		return nil
	}
	select {
	case s.queue <- d:
	default:
		s.bytes.Add(-size)
		s.dropped.Add(1)
	}
	return nil
}

// failedDecision is the code of a call on which the policy in use came to no
// decision, if its record has no effect.
var failedDecision = (&gate.Refusal{Step: step.Authorize}).Code()

// Run decides on the calls in the queue until ctx ends, and then on those that are
// left, for a moment.
func (s *Shadow) Run(ctx context.Context) {
	for {
		select {
		case d := <-s.queue:
			s.compare(context.WithoutCancel(ctx), d) // its timeout ends it
		case <-ctx.Done():
			s.drain(ctx)
			return
		}
	}
}

func (s *Shadow) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shadowDrain)
	defer cancel()
	for {
		select {
		case d := <-s.queue:
			s.compare(ctx, d)
		default:
			return
		}
	}
}

// compare decides on a call, and reports a difference.
func (s *Shadow) compare(ctx context.Context, d decided) {
	s.bytes.Add(-int64(len(d.query.Call.Args.Raw())))
	e := s.engine.Load()
	if e == nil || ctx.Err() != nil {
		s.dropped.Add(1)
		return
	}
	would, err := e.Authorize(ctx, d.query)
	if err != nil && ctx.Err() != nil {
		s.dropped.Add(1)
		return
	}
	would = would.Asked()
	if err != nil {
		would = gate.Decision{Effect: gate.Deny, Revision: e.Revision()}
	}
	s.compared.Add(1)
	if differs := differences(d.decision, would); len(differs) > 0 {
		s.differed.Add(1)
		s.report(Difference{d.event, d.query, d.decision, would, err, differs})
	}
}

// differences names what two decisions would do otherwise.
func differences(a, b gate.Decision) []string {
	var names []string
	if a.Effect != b.Effect {
		names = append(names, "effect")
	}
	if a.Effect == gate.Deny || b.Effect == gate.Deny {
		return names // a denied call has neither
	}
	if len(a.Obligations)+len(b.Obligations) > 0 && !reflect.DeepEqual(a.Obligations, b.Obligations) {
		names = append(names, "obligations")
	}
	if !slices.Equal(a.Labels, b.Labels) {
		names = append(names, "labels")
	}
	return names
}
