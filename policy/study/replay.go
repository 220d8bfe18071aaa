package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

// A RecordedSession is a session whose calls were written down, in their order.
type RecordedSession struct {
	ID     string
	Who    *gate.Principal
	Prompt string // the user's own words; "" if they are not known
	Calls  []RecordedCall
}

// A RecordedCall is a call that was made, and what came of it.
type RecordedCall struct {
	Action gate.Action // "" is a call of a tool
	Tool   string      // server__tool, or the URI of what was read
	Args   gate.Doc
	Result gate.Doc // the MCP result; absent if the call had none
	// Prompt is what the user says before the call, and holds for those after it; "" says
	// nothing new.
	Prompt string
	// Learned are labels that the session got before the call, but not by the result of one.
	Learned gate.Labels
	App     *RecordedApp // nil for a client that shows no apps
	// Definition is the tool, or the skill, as it was called. Nil takes that of a tool from [ReplayOptions].
	Definition *gate.Tool
	// Unknown names the parts of the input that are not known, such as input.arguments,
	// and how to say that they are missing. A call that depends on one is not decided: the
	// session then sees the result if the call passed when it was made.
	Unknown map[string]string
	// Effect is what was decided then; "" if that is not known.
	Effect gate.Effect
	// Approved says that a person approved the call then. Where the policy asks, the call
	// continues as it did, and what was decided stays ask.
	Approved bool
	Time     time.Time // when it was decided on; zero if that is not known
}

// A RecordedApp is how a call had to do with the app of its server: see [gate.Tool.AppOnly]
// and [gate.Call.OwnName].
type RecordedApp struct{ Only, OwnName bool }

// ReplayOptions configure [Replay].
type ReplayOptions struct {
	// Sessions makes what keeps sessions, as the gateway does; required.
	Sessions func() gate.Sessions
	// Tools are the definitions of the tools, MCP tools with qualified names, by
	// name. Nil takes every name for a tool that declares nothing, and is native,
	// unpinned and without findings.
	Tools map[string]gate.Doc
	// Input returns what the arguments of a tool that Tools declares are coerced by, as
	// the gateway does before it decides, or nil. Nil coerces none.
	Input func(definition gate.Doc) gate.Coercer
	// Structure reads a text of a result as a document, as the gateway does; nil reads none.
	Structure func(text string) (gate.Doc, bool)
	// Echoes remembers what tools say every time, over all sessions that have it; nil
	// remembers nothing.
	Echoes *provenance.Echoes
	// Rules has the rules told of each decision that differs from the one before.
	Rules bool
	// ApproveAsks carries on as if a person had approved each call that is asked
	// about.
	ApproveAsks bool
	// ApproveBeside carries on as if the person had also approved, until the session ends,
	// the call's destinations and those next to them.
	ApproveBeside bool
}

// A ReplayedCall is what the policy decides on a recorded call.
type ReplayedCall struct {
	Index   int         `json:"index"` // in the session, from 0
	Tool    string      `json:"tool"`
	Effect  gate.Effect `json:"effect"` // "" if that cannot be known
	Reasons []string    `json:"reasons"`
	Labels  gate.Labels `json:"labels"` // of the session after the call
	Before  gate.Effect `json:"before,omitempty"`
	Rules   []Explained `json:"rules,omitempty"` // that decide, as of [Explanation]
}

// A ReplayedSession is what the policy decides on a recorded session.
type ReplayedSession struct {
	ID        string         `json:"id"`
	Principal string         `json:"-"`
	Decisions []ReplayedCall `json:"decisions"`
}

// Replay puts a recorded session before the policy: its calls go through a gate of
// their own, one after the other, where the recorded results answer in place of the
// servers. What a call is refused the session does not see. Schemas coerce and are not
// checked, results are not sanitized, rates not kept, and nothing is called.
func Replay(ctx context.Context, e *policy.Engine, o ReplayOptions, r RecordedSession) (ReplayedSession, error) {
	out := ReplayedSession{ID: r.ID, Decisions: []ReplayedCall{}}
	if o.Sessions == nil || r.Who == nil {
		return out, errors.New("replay: set ReplayOptions.Sessions, and Who of each session")
	}
	out.Principal = r.Who.ID
	p := &player{engine: engine.Of(e), options: o, sessions: o.Sessions(), tools: map[toolKey]*gate.Tool{}, partly: map[partKey]partial{}}
	parts := gate.Parts{Upstream: p, Authorizer: p, Labeler: e, Sessions: p.sessions, Structure: o.Structure, Echoes: o.Echoes, Limiter: p, Sanitizer: p, Recorder: p}
	parts.TrackValues, parts.TrackOrigins = e.Tracks()
	if o.ApproveBeside {
		parts.Approver = p
	}
	g, err := gate.New(parts)
	if err != nil {
		return out, err
	}
	for i, c := range r.Calls {
		r.Prompt = cmp.Or(c.Prompt, r.Prompt)
		d := ReplayedCall{Index: i, Tool: c.Tool, Before: c.Effect, Reasons: []string{}}
		if err := p.play(ctx, g, r, c, &d); err != nil {
			return out, fmt.Errorf("session %s: call %d: %w", r.ID, i, err)
		}
		d.Labels = append(gate.Labels{}, p.labels...)
		out.Decisions = append(out.Decisions, d)
	}
	return out, nil
}

// passed reports whether the call was let through when it was made.
func (c RecordedCall) passed() bool {
	return c.Effect == gate.Allow || c.Result.Kind() == doc.Object
}

// player is what a recorded session meets in the place of servers, and what looks
// at its decisions. It is used by one call at a time.
type player struct {
	engine   *engine.Engine
	options  ReplayOptions
	sessions gate.Sessions
	tools    map[toolKey]*gate.Tool

	call     RecordedCall  // under way
	approved bool          // by a person
	decided  gate.Decision // on it
	labels   gate.Labels   // of the session
	query    gate.Query    // that was decided on last

	partly map[partKey]partial
}

// toolKey names a tool of a session, whose calls may be of several definitions.
type toolKey struct {
	name       string
	definition *gate.Tool
	appOnly    bool
}

// play makes one call and completes what is reported of it.
func (p *player) play(ctx context.Context, g *gate.Gate, r RecordedSession, c RecordedCall, d *ReplayedCall) error {
	p.call, p.approved, p.decided, p.query = c, false, gate.Decision{}, gate.Query{}
	call := gate.Call{
		Action: cmp.Or(c.Action, gate.CallTool), Name: c.Tool, Args: c.Args, Who: r.Who, Prompt: r.Prompt,
		Session: gate.SessionKey{Owner: r.Who.Owner, ID: r.ID},
	}
	if c.App != nil {
		call.Renders, call.OwnName = true, c.App.OwnName
	}
	if len(c.Learned) > 0 {
		if err := p.sessions.Learn(ctx, call.Session, gate.Lesson{Labels: c.Learned}); err != nil {
			return err
		}
	}
	_, err := g.Do(ctx, call)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.Effect, d.Reasons = p.decided.Effect, append(d.Reasons, p.decided.Reasons...)
	refused, isRefusal := errors.AsType[*gate.Refusal](err)
	switch {
	case d.Effect == "" && len(d.Reasons) > 0: // it depends on what is not known
	case err == nil || isRefusal && refused.Step == step.Approve:
	case isRefusal:
		d.Effect = gate.Deny
		if len(d.Reasons) == 0 {
			d.Reasons = append(d.Reasons, refused.Reason)
		}
	default:
		return err
	}
	if !p.options.Rules || d.Effect == "" || d.Effect == d.Before || p.query.Call == nil {
		return nil
	}
	x, err := explain(ctx, p.engine, Case{Query: p.query, Unknown: c.Unknown, Decision: p.decided})
	d.Rules = x.Decided
	return err
}

// Authorize implements [gate.Authorizer].
func (p *player) Authorize(ctx context.Context, q gate.Query) (gate.Decision, error) {
	p.query = q
	if len(p.call.Unknown) > 0 {
		return p.authorizePartly(ctx, q)
	}
	d, err := p.engine.Authorize(ctx, q)
	return p.decide(d.Asked()), err
}

// decide keeps what was decided, and returns what the gate is to go on with.
func (p *player) decide(d gate.Decision) gate.Decision {
	if !p.approved {
		p.decided = d
	}
	if d.Effect == gate.Ask && (p.approved || !p.options.ApproveBeside && (p.options.ApproveAsks || p.call.Approved)) {
		d.Effect = gate.Allow
		d.Obligations = slices.DeleteFunc(slices.Clone(d.Obligations), func(o obligation.Obligation) bool {
			_, asks := o.(obligation.Approve)
			return asks
		})
	}
	return d
}

// Approve implements [gate.Approver].
func (p *player) Approve(_ context.Context, q gate.Question) (gate.Approval, error) {
	p.approved = true
	return gate.Approval{ID: q.Call.ID, By: "replay", Destinations: slices.Concat(q.Destinations, q.Beside)}, nil
}

// Enter implements [gate.Limiter]. Nothing is limited: a replay takes no time.
func (p *player) Enter(context.Context, gate.Entry) (gate.Slot, error) { return unlimited{}, nil }

type unlimited struct{}

func (unlimited) Charge(context.Context, gate.Charges) error { return nil }
func (unlimited) Work(context.Context, int) error            { return nil }
func (unlimited) Rest(context.Context) error                 { return nil }
func (unlimited) Pause() func(context.Context) error         { return nil }
func (unlimited) Release(int64)                              {}

// Visible implements [gate.Authorizer].
func (p *player) Visible(ctx context.Context, who *gate.Principal, tools []*gate.Tool) ([]bool, error) {
	return p.engine.Visible(ctx, who, tools)
}

// Offer implements [gate.Authorizer].
func (p *player) Offer(_ context.Context, _ *gate.Principal, t *gate.Tool) gate.Doc {
	return t.Definition
}

// Lookup implements [gate.Upstream].
func (p *player) Lookup(_ context.Context, _ gate.Action, name string) (*gate.Tool, error) {
	key := toolKey{name, p.call.Definition, p.call.App != nil && p.call.App.Only}
	def, defined := p.options.Tools[name]
	if p.options.Tools != nil && !defined && key.definition == nil && len(p.call.Unknown) == 0 {
		return nil, gate.ErrUnknown
	}
	if t := p.tools[key]; t != nil {
		return t, nil
	}
	if key.definition != nil {
		t := *key.definition
		t.Input, t.Output, t.Quarantine, t.AppOnly = anything{}, nil, "", key.appOnly
		p.tools[key] = &t
		return &t, nil
	}
	parsed, err := gate.ParseToolName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gate.ErrUnknown, err)
	}
	t := &gate.Tool{
		Name: parsed, Local: parsed.Tool, Offered: name, Definition: def, Annotations: def.Get("annotations"),
		Digest: def.Digest(), Input: anything{}, AppOnly: key.appOnly, Teaches: gate.NewLabels(provenance.Untrusted),
	}
	if p.options.Input != nil && defined {
		if input := p.options.Input(def); input != nil {
			t.Input = coercing{input}
		}
	}
	p.tools[key] = t
	return t, nil
}

// Invoke implements [gate.Upstream]: it answers what was recorded.
func (p *player) Invoke(_ context.Context, permit gate.Permit) (gate.Result, error) {
	if _, _, ok := permit.Open(); !ok {
		return gate.Result{}, errors.New("no permit")
	}
	if p.call.Result.Kind() != doc.Object {
		return gate.Result{Doc: gate.MustDoc(`{"content":[],"contents":[]}`)}, nil
	}
	return gate.Result{Doc: p.call.Result}, nil
}

// Features implements [gate.Upstream].
func (p *player) Features(context.Context, gate.Feature) []*gate.Tool { return nil }

// Sanitize implements [gate.Sanitizer]: what was recorded stays as it is.
func (p *player) Sanitize(t gate.Text) (string, []gate.Finding) { return t.Text, nil }

// Record implements [gate.Recorder]: it keeps the session's labels.
func (p *player) Record(_ context.Context, r *gate.Record) error {
	p.labels = r.Session.Labels.Join(r.After)
	return nil
}

// anything is a schema to which every document keeps.
type anything struct{}

func (anything) Validate(gate.Doc) error { return nil }

// coercing coerces by a schema, and every document keeps to it.
type coercing struct{ gate.Coercer }

func (coercing) Validate(gate.Doc) error { return nil }
