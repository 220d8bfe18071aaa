package telemetry

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/step"
)

// DefaultSeries is how many series there are at most, unless the operator says otherwise.
const DefaultSeries = 2000

// Calls counts what is in records. Use it from several goroutines.
type Calls struct {
	budget    *budget
	received  *family[operation]
	sent      *family[sentKey]
	calls     *family[outcome]
	overhead  *family[word]
	steps     *family[word]
	hostCalls *family[pair]
	findings  *family[pair]
	approvals *family[word]
	waits     *family[word]
	fuel      *family[word]
	memory    *family[word]
	appends   *family[none]
	failed    *family[none]
	sessions  *family[none]
	inflight  atomic.Int64
}

// An operation is one kind of request as the gateway received it.
type operation struct{ method, tool, prompt, failure string }

func (k operation) values() []string { return []string{k.method, k.tool, k.prompt, k.failure} }
func (k operation) coarse() operation {
	if k.tool != "" {
		k.tool = Other
	}
	if k.prompt != "" {
		k.prompt = Other
	}
	return k
}

// A sentKey is one kind of request as the gateway sent it on.
type sentKey struct{ method, server, failure string }

func (k sentKey) values() []string { return []string{k.method, k.server, k.failure} }
func (k sentKey) coarse() sentKey  { k.server = Other; return k }

// An outcome is what became of calls of a tool.
type outcome struct{ action, server, tool, code, effect string }

func (k outcome) values() []string { return []string{k.action, k.server, k.tool, k.code, k.effect} }
func (k outcome) coarse() outcome  { k.server, k.tool = Other, Other; return k }

// A word is a label of a small set: a step, a state, a configured server.
type word string

func (k word) values() []string { return []string{string(k)} }
func (word) coarse() word       { return Other }

type pair struct{ one, two string }

func (k pair) values() []string { return []string{k.one, k.two} }
func (k pair) coarse() pair     { return pair{Other, k.two} }

// none is the key of an instrument without labels.
type none struct{}

func (none) values() []string { return nil }
func (none) coarse() none     { return none{} }

// NewCalls returns counters that make at most so many series; 0 is [DefaultSeries]. Beyond that,
// everything is counted under the name [Other], so that sums stay right.
func NewCalls(series int) *Calls {
	if series <= 0 {
		series = DefaultSeries
	}
	b := &budget{left: series, reserve: series / 5}
	seconds := func(name, help string, bounds []float64, labels ...string) Metric {
		return Metric{Name: name, Help: help, Unit: "s", Kind: Histogram, Bounds: bounds, Labels: labels}
	}
	count := func(name, help, what string, labels ...string) Metric {
		return Metric{Name: name, Help: help, Unit: what, Kind: Counter, Labels: labels}
	}
	c := &Calls{budget: b}
	c.sessions = newFamily[none](b, seconds("mcp.server.session.duration", "Duration of client sessions that have ended.", sessionBounds), perSecond)
	c.sessions.cell(none{}) // it is there before the first has ended
	c.appends = newFamily[none](b, seconds("wasmgate.audit.append.duration", "Time until an audit record was written.", ownBounds), perSecond)
	c.failed = newFamily[none](b, count("wasmgate.audit.failed", "Audit records that could not be written.", "{record}"), 1)
	c.overhead = newFamily[word](b, seconds("wasmgate.overhead.duration", "Time that the gateway itself took for a call, without its server and without the wait for approval.", ownBounds, "action"), perSecond)
	c.steps = newFamily[word](b, seconds("wasmgate.step.duration", "Time that each step of a call took.", ownBounds, "step"), perSecond)
	c.approvals = newFamily[word](b, count("wasmgate.approvals", "Approval questions, by outcome.", "{approval}", "state"), 1)
	c.waits = newFamily[word](b, seconds("wasmgate.approval.wait", "How long calls waited for approval.", waitBounds, "action"), perSecond)
	c.findings = newFamily[pair](b, count("wasmgate.findings", "Findings in definitions and results, by rule.", "{finding}", "rule", "removed"), 1)
	c.hostCalls = newFamily[pair](b, count("wasmgate.sandbox.host_calls", "Host calls of sandboxed tools.", "{call}", "action", "code"), 1)
	c.fuel = newFamily[word](b, count("wasmgate.sandbox.fuel", "Fuel (instructions) that sandboxed tools used.", "{instruction}", "wasmgate.server"), 1)
	c.memory = newFamily[word](b, Metric{Name: "wasmgate.sandbox.memory.peak", Help: "The most memory that a call of a sandboxed tool had.", Unit: "By", Kind: Histogram, Bounds: memoryBounds, Labels: []string{"wasmgate.server"}}, 1)
	c.calls = newFamily[outcome](b, count("wasmgate.calls", "Calls that have ended, refused ones included.", "{call}", "action", "server", "tool", "code", "effect"), 1)
	c.received = newFamily[operation](b, seconds("mcp.server.operation.duration", "Duration of requests that the gateway received.", operationBounds,
		"mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name", "error.type"), perSecond)
	c.sent = newFamily[sentKey](b, seconds("mcp.client.operation.duration", "Duration of requests that the gateway sent to servers.", operationBounds,
		"mcp.method.name", "wasmgate.server", "error.type"), perSecond)
	c.failed.add(none{}, 0) // an alert on it needs the series before the first failure
	return c
}

// Overflow is how often a set of labels has had no room among the series.
func (c *Calls) Overflow() uint64 { return c.budget.overflow.Load() }

// Observe counts a record that took so long to be kept, or that could not be, which err
// says. It keeps nothing of r.
func (c *Calls) Observe(r *gate.Record, kept time.Duration, err error) {
	c.appends.add(none{}, int64(kept))
	if err != nil {
		c.failed.add(none{}, 1)
	}
	switch r.Event {
	case gate.Granted:
		if err == nil {
			c.inflight.Add(1)
		}
	case gate.Done:
		c.done(r, err)
	case gate.HostCall:
		c.hostCalls.add(pair{string(r.Call.Action), r.Code}, int64(max(1, r.Count)))
	case gate.EventApproval:
		c.approvals.add(word(r.Approval.State), 1)
	}
}

func (c *Calls) done(r *gate.Record, err error) {
	code := r.Code
	if err != nil {
		code = unrecorded
	}
	failure := code
	if code == codes.OK {
		failure = ""
	}
	if slices.ContainsFunc(r.Steps, isInvoke) {
		c.inflight.Add(-1)
	}
	server, tool := names(r.Tool)
	action := string(r.Call.Action)
	c.calls.add(outcome{action, server, tool, code, string(r.Decision.Effect)}, 1)
	c.received.add(received(r, failure), int64(r.Took))
	waited, asked, sent := c.eachStep(r)
	if sent > 0 {
		c.sent.add(sentKey{action, server, failure}, int64(sent))
	}
	if asked {
		c.waits.add(word(action), int64(waited))
	}
	c.overhead.add(word(action), int64(r.Took-waited-sent))
	for i := range r.Findings {
		f := &r.Findings[i]
		c.findings.add(pair{f.Rule, truth(f.Removed)}, int64(max(1, f.Count)))
	}
	if r.Usage.Fuel > 0 || r.Usage.MemoryPeak > 0 {
		c.fuel.add(word(server), int64(r.Usage.Fuel))
		c.memory.add(word(server), r.Usage.MemoryPeak)
	}
}

// eachStep counts what the steps took, and returns how long the call waited for a person
// and was with its server.
func (c *Calls) eachStep(r *gate.Record) (waited time.Duration, asked bool, sent time.Duration) {
	for _, s := range r.Steps {
		switch s.Step {
		case step.Approve:
			waited, asked = waited+s.Took, true
		case step.Invoke:
			sent += s.Took
		default:
			c.steps.add(word(s.Step), int64(s.Took))
		}
	}
	return waited, asked, sent
}

func isInvoke(s step.Time) bool { return s.Step == step.Invoke }

// unrecorded is the code of calls whose record could not be kept.
var unrecorded = (&gate.Refusal{Step: step.Record}).Code()

// names returns the labels for a tool. They contain no name that was not approved.
func names(t *gate.Tool) (server, tool string) {
	switch {
	case t == nil:
		return Other, Other
	case t.Quarantine != "":
		return t.Name.Server, Other
	}
	return t.Name.Server, t.Name.Tool // "" for resources, whose name is a URI
}

func received(r *gate.Record, failure string) operation {
	k := operation{method: string(r.Call.Action), failure: failure}
	_, name := names(r.Tool)
	if name != "" && name != Other {
		name = r.Tool.Offered
	}
	switch r.Call.Action {
	case gate.CallTool:
		k.tool = name
	case gate.GetPrompt:
		k.prompt = name
	}
	return k
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// Session counts a session that has ended. A nil Calls counts nothing.
func (c *Calls) Session(lasted time.Duration) {
	if c != nil {
		c.sessions.add(none{}, int64(lasted))
	}
}

// Metrics returns what was counted until now.
func (c *Calls) Metrics() []Metric {
	overflow := Metric{
		Name: "wasmgate.metrics.overflow", Help: "Sets of labels that had no room among the series.", Unit: "{set}", Kind: Counter,
		Points: []Point{{Value: float64(c.Overflow())}},
	}
	return []Metric{
		c.received.metric(), c.sent.metric(), c.calls.metric(), c.overhead.metric(), c.steps.metric(), c.hostCalls.metric(), c.findings.metric(),
		c.approvals.metric(), c.waits.metric(), c.sessions.metric(), c.fuel.metric(), c.memory.metric(), c.appends.metric(), c.failed.metric(), overflow,
		NewGauge("wasmgate.inflight", "Calls that servers are carrying out.", "{call}", float64(max(0, c.inflight.Load()))),
	}
}
