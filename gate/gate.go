package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Gate passes calls on to an upstream, or refuses them. Use it from several
// goroutines.
type Gate struct {
	parts atomic.Pointer[Parts]
}

// New returns a gate made of the given parts. It is an error if a required one
// is missing.
func New(p Parts) (*Gate, error) {
	g := new(Gate)
	if err := g.Swap(p); err != nil {
		return nil, err
	}
	return g, nil
}

// Swap replaces all parts at once. Calls under way end with the parts they
// began with.
func (g *Gate) Swap(p Parts) error {
	for _, part := range []struct {
		name    string
		missing bool
	}{
		{"Upstream", p.Upstream == nil}, {"Authorizer", p.Authorizer == nil}, {"Sessions", p.Sessions == nil},
		{"Sanitizer", p.Sanitizer == nil}, {"Recorder", p.Recorder == nil},
	} {
		if part.missing {
			return fmt.Errorf("gate: parts have no %s", part.name)
		}
	}
	g.parts.Store(&p)
	return nil
}

// Parts returns the parts in use.
func (g *Gate) Parts() Parts { return *g.parts.Load() }

// Tools returns the tools that who may call, or might with the right arguments.
// Those whose definitions are not approved are none.
func (g *Gate) Tools(ctx context.Context, who *Principal) ([]*Tool, error) {
	return g.Features(ctx, who, FeatureTool)
}

// Features returns the tools, or the prompts, resources or templates, that who may
// use, or might with the right arguments. Those whose definitions are not approved
// are none.
func (g *Gate) Features(ctx context.Context, who *Principal, f Feature) (tools []*Tool, err error) {
	p := g.parts.Load()
	defer func() {
		if v := recover(); v != nil {
			tools, err = nil, fmt.Errorf("list tools: panic: %v\n%s", v, debug.Stack())
		}
	}()
	all := who.offered(p.approved(p.features(ctx, f)))
	visible, err := p.Authorizer.Visible(ctx, who, all)
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	if len(visible) != len(all) {
		return nil, fmt.Errorf("list tools: %d verdicts for %d tools", len(visible), len(all))
	}
	offerer, _ := p.Authorizer.(Offerer)
	for i, t := range all {
		if visible[i] || t.Relay {
			tools = append(tools, offered(ctx, offerer, who, t))
		}
	}
	return tools, nil
}

// offered returns the tool as who should see it.
func offered(ctx context.Context, o Offerer, who *Principal, t *Tool) *Tool {
	if o == nil || t.Feature != FeatureTool || t.Relay {
		return t
	}
	d := o.Offer(ctx, who, t)
	if d.Kind() != Object || &d.Raw()[0] == &t.Definition.Raw()[0] {
		return t
	}
	its := *t
	its.Definition = d
	return &its
}

// Do carries out a call, or refuses it. The error is a [*Refusal], an error of
// the upstream, or wraps ctx.Err() if ctx ended first; [Code] names it. A tool
// that reports its own failure is no error: see [Result.IsError].
func (g *Gate) Do(ctx context.Context, c Call) (Result, error) { return g.do(ctx, c, false) }

// do is Do; relayed says that the call was made by [Permit.Relay].
func (g *Gate) do(ctx context.Context, c Call, relayed bool) (Result, error) {
	if c.ID == "" {
		c.ID = NewID()
	}
	if c.Args.IsZero() {
		c.Args = emptyObject
	}
	p := g.parts.Load()
	if p == nil {
		return Result{}, &Refusal{Step: StepRecord, Call: c.ID, Name: c.Name, Reason: "the gate has no parts"}
	}
	w := way{gate: g, Parts: p, relayed: relayed, step: StepParse, mark: time.Now()}
	w.rec = Record{Event: Done, Time: w.mark, Call: &c, Snapshot: w.Snapshot}
	res, err := w.pass(ctx, &c)
	if w.leaves(err) {
		return res, err
	}
	w.rec.Result = res.Doc
	if err := w.end(ctx, outcome(res, err), err); err != nil {
		return Result{}, err
	}
	return res, nil
}

var emptyObject = MustDoc("{}")

func outcome(res Result, err error) string {
	if err == nil && res.IsError {
		return CodeToolError
	}
	return Code(err)
}

// way is one call on its way.
type way struct {
	*Parts
	gate    *Gate      // nil for a host call
	parent  *permitted // of a host call, or of a request to the client; otherwise nil
	relayed bool       // made by [Permit.Relay]
	rec     Record
	step    Step // under way
	mark    time.Time
	// What is to be done for the secrets in the arguments; "" for nothing.
	secretAsks, secretRefused string

	consent string // the binding that a person has approved; "" if none has
	paid    []Rate // those that the call has been charged for
	duty
}

// pass takes the call from step to step. Whatever goes wrong, a panic included,
// is an error.
func (w *way) pass(ctx context.Context, c *Call) (res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = Result{}, w.fail(ctx, "internal error", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()

	if c.Who == nil {
		return Result{}, w.fail(ctx, "nobody is known to ask", nil)
	}
	if c.Malformed != nil || c.Args.Kind() != Object {
		return Result{}, w.fail(ctx, "the arguments are no acceptable JSON object", c.Malformed)
	}
	if err := c.checkBrought(); err != nil {
		return Result{}, w.fail(ctx, "what came with the call is not acceptable", err)
	}

	w.next(StepLookup)
	tool, err := w.find(ctx, c)
	if err != nil {
		err = w.fail(ctx, unknown(c.Action), err)
		if r, ok := err.(*Refusal); ok {
			r.Hidden = true
		}
		return Result{}, err
	}
	w.rec.Tool = tool
	if err := w.pinned(ctx, c, tool); err != nil {
		return Result{}, err
	}
	if tool.Relay {
		return w.relay(ctx, c, tool)
	}

	w.next(StepAuthorize)
	if err := w.readPrompt(ctx, c); err != nil {
		return Result{}, err
	}
	if err := w.guardArguments(c, tool); err != nil {
		return Result{}, w.fail(ctx, "the arguments cannot be looked through", err)
	}
	q := Query{Call: c, Tool: tool}
	if err := w.authorize(ctx, &q); err != nil {
		return Result{}, err
	}

	if err := w.refuseSecrets(ctx); err != nil {
		return Result{}, err
	}

	w.next(StepValidateInput)
	if tool.Input == nil {
		return Result{}, w.fail(ctx, "the tool has no usable input schema", nil)
	}
	if err := tool.Input.Validate(c.Args); err != nil {
		return Result{}, w.fail(ctx, publicViolations(tool, "the arguments", err), err)
	}
	if err := w.validateSent(ctx, c); err != nil {
		return Result{}, err
	}

	permit, release, err := w.permit(ctx, q)
	if err != nil {
		return Result{}, err
	}
	used := int64(len(w.rec.Call.Args.Raw()))
	defer func() { release(used) }()

	w.next(StepInvoke)
	res, err = w.invoke(ctx, permit)
	used += int64(len(res.Doc.Raw()))
	if err != nil {
		return Result{}, err
	}

	w.next(StepValidateOutput)
	if res.InputRequired {
		return w.askMore(ctx, permit, res)
	}
	if err := w.validateOutput(ctx, res); err != nil {
		return Result{}, err
	}

	w.next(StepSanitize)
	if res.Doc, err = w.clean(ctx, res); err != nil {
		return Result{}, err
	}
	if err := w.learn(ctx, permit, res.Doc); err != nil {
		return Result{}, err
	}
	res.Labels = w.adds(permit.of.tool)
	return res, nil
}

// unknown is what a client reads of a tool that does not exist, and of one that
// is hidden from it.
func unknown(a Action) string {
	switch a {
	case GetPrompt:
		return "no such prompt"
	case ReadResource, Subscribe:
		return "no such resource"
	case Complete:
		return "no such prompt or template of resources"
	default:
		return "no such tool"
	}
}

// maxDecisions bounds how often a call is decided again because its session has
// changed meanwhile.
const maxDecisions = 8

// authorize decides on the call, in the state that its session has now.
func (w *way) authorize(ctx context.Context, q *Query) error {
	var err error
	if q.Session, err = w.Sessions.View(ctx, q.Call.Session); err != nil {
		return w.fail(ctx, "the session's state is unavailable", err)
	}
	if w.parent != nil { // the view may be older than what the call was admitted with
		q.Session.Labels = q.Session.Labels.Join(w.parent.session.Labels)
		q.Session.Top = q.Session.Top || w.parent.session.Top
	}
	return w.decide(ctx, q)
}

func (w *way) decide(ctx context.Context, q *Query) error {
	w.rec.Session = q.Session
	w.rec.Decision = Decision{}
	d, err := w.Authorizer.Authorize(ctx, w.seen(*q))
	if err != nil {
		return w.fail(ctx, "the policy cannot be evaluated", err)
	}
	if w.parent == nil {
		d = w.wary(d).Asked()
		w.rec.Call = sent(q.Call, d.Obligations)
	}
	w.rec.Decision = d
	if w.consent != "" && !w.consented(*q) { // what was approved is another call by now
		w.consent, w.rec.Approval = "", ApprovalRecord{}
		return w.decide(ctx, q)
	}
	if d.Effect != Allow && d.Effect != Ask {
		reason := strings.Join(d.Reasons, "; ")
		if reason == "" {
			reason = "not allowed by policy"
		}
		r := w.refuse(StepAuthorize, reason, nil)
		if d.Hidden {
			r.Reason, r.Err = unknown(w.rec.Call.Action), errors.New(reason)
		}
		r.Hidden, r.Remedy = d.Hidden, d.Remedy
		return r
	}
	if err := w.oblige(d.Obligations); err != nil {
		return w.fail(ctx, "the policy demands what this gateway cannot do", err)
	}
	return nil
}

// oblige takes on the obligations of a decision.
func (w *way) oblige(obligations []Obligation) (err error) {
	if w.parent != nil {
		w.rec.Full = w.parent.duty.full
		return w.parent.duty.holds(obligations)
	}
	if w.duty, err = noDuty.with(obligations); err != nil {
		return err
	}
	w.rec.Full = w.full
	if w.narrowed && !w.rec.Tool.Sandboxed {
		return errors.New("only a sandboxed tool can be narrowed")
	}
	return nil
}

// permit makes the proof that the call may reach the upstream. A person is asked
// before the call takes its place among those under way; and if what its session
// has read makes the policy ask only then, the call gives the place back first.
func (w *way) permit(ctx context.Context, q Query) (Permit, Release, error) {
	for range maxDecisions {
		if err := w.ask(ctx, &q); err != nil {
			return Permit{}, nil, err
		}
		p, release, err := w.grant(ctx, &q)
		if err != errUnasked {
			return p, release, err
		}
	}
	return Permit{}, nil, w.fail(ctx, "the session changes too fast", errUnasked)
}

// grant takes the call's place, and makes its permit and the record of that.
// Nothing is refused after it but what the upstream's answer gives reason for. The
// error is errUnasked if the policy has come to ask a person.
func (w *way) grant(ctx context.Context, q *Query) (Permit, Release, error) {
	release, err := w.take(ctx, *q, Charge{
		Limit: Concurrent, Owner: q.Call.Who.Owner, N: 1,
		Session: q.Call.Session.ID, Server: q.Tool.Name.Server, Tool: q.Tool.Name.String(),
	})
	if err != nil {
		return Permit{}, nil, err
	}
	granted := false
	defer func() {
		if !granted {
			release(0)
		}
	}()

	if err := w.admit(ctx, q); err != nil {
		return Permit{}, nil, err
	}
	if release, err = w.settle(ctx, *q, release); err != nil {
		return Permit{}, nil, err
	}
	w.next(StepRecord)
	if ctx.Err() != nil {
		return Permit{}, nil, w.fail(ctx, "", nil)
	}
	rec := w.rec
	rec.Event, rec.Steps = Granted, slices.Clone(w.rec.Steps)
	if err := w.record(ctx, &rec); err != nil {
		return Permit{}, nil, w.fail(ctx, "the audit log cannot be written", err)
	}
	if q.Call.Granted != nil {
		q.Call.Granted()
	}
	granted = true
	admitted := q.Session
	admitted.Labels = w.rec.After
	return Permit{&permitted{call: w.rec.Call, tool: q.Tool, parts: w.Parts, session: admitted, duty: w.duty, asking: w.rec.Call.asking()}}, release, nil
}

// admit brings the call into the order of its session. If what the session has
// read has grown since the decision, the call is decided again.
func (w *way) admit(ctx context.Context, q *Query) error {
	w.next(StepAuthorize)
	for again := 0; ; again++ {
		now, err := w.Sessions.Admit(ctx, q.Session, q.Call, w.adds(q.Tool))
		if err == nil {
			w.rec.After = now.Labels
			return w.vouch(ctx, q)
		}
		if !errors.Is(err, ErrStale) {
			return w.fail(ctx, "the session's state cannot be kept", err)
		}
		if again == maxDecisions {
			return w.fail(ctx, "the session changes too fast", err)
		}
		if !now.Top && !now.Labels.Cover(q.Session.Labels) {
			return w.fail(ctx, "the session's state cannot be kept", errors.New("the session has lost labels"))
		}
		q.Session = now
		if err := w.decide(ctx, q); err != nil {
			return err
		}
		if w.asks() {
			return errUnasked
		}
	}
}

func (w *way) invoke(ctx context.Context, p Permit) (Result, error) {
	if w.timeout < math.MaxInt64 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	defer func() { w.rec.HostCalls = p.of.end() }()
	res, err := w.Upstream.Invoke(ctx, p)
	w.rec.Usage = res.Usage
	if err != nil {
		_, _ = Code(err), err.Error() // a nil pointer in err panics here, where that is caught
		return Result{}, err
	}
	res.IsError = res.Doc.Get("isError").True() // what the client will read
	if res.Doc.Kind() != Object {
		return Result{}, fmt.Errorf("%s: the result is no JSON object", w.rec.Tool.Name)
	}
	return res, nil
}

func (w *way) validateOutput(ctx context.Context, res Result) error {
	if int64(len(res.Doc.Raw())) > w.maxResult {
		return w.fail(ctx, fmt.Sprintf("the result is larger than %d bytes", w.maxResult), nil)
	}
	err := checkOutput(w.rec.Tool, res)
	if err != nil && w.rec.Tool.OutputWarn {
		w.rec.Err = err
		w.rec.Findings = append(w.rec.Findings, Finding{Rule: "schema/output", At: "/structuredContent", Count: 1})
		return nil
	}
	if err != nil {
		return w.fail(ctx, "the result breaks the output schema that the tool declares", err)
	}
	return nil
}

// checkOutput holds a result against the tool's declaration. A failure that the
// tool reports has no structured content to check (MCP 2025-11-25, server/tools,
// "Output Schema").
func checkOutput(t *Tool, res Result) error {
	if t.Output == nil || res.IsError {
		return nil
	}
	content := res.Doc.Get("structuredContent")
	if content.IsZero() {
		return Violations{{Pointer: "", Message: "the tool declares an output schema and returned no structured content"}}
	}
	return t.Output.Validate(content)
}

// next ends the time of the step under way and begins that of another.
func (w *way) next(s Step) {
	now := time.Now()
	w.rec.Steps = append(w.rec.Steps, StepTime{w.step, now.Sub(w.mark)})
	w.step, w.mark = s, now
}

// end completes the record with the outcome and keeps it. The error is err, or
// says that there is no record.
func (w *way) end(ctx context.Context, code string, err error) error {
	w.next("")
	w.rec.Code, w.rec.Took = code, w.mark.Sub(w.rec.Time)
	if err != nil {
		w.rec.Err = err
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		w.rec.Reason = refused.Reason
	}
	if rerr := w.record(ctx, &w.rec); rerr != nil {
		return errors.Join(w.refuse(StepRecord, "the audit log cannot be written", rerr), err)
	}
	return err
}

// record gives the record to the recorder. The end of the call's context does
// not end the record.
func (w *way) record(ctx context.Context, r *Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return w.Recorder.Record(context.WithoutCancel(ctx), r)
}

// fail refuses the call at the step under way. If the caller has gone, that is
// the outcome, whatever the step says; and a panic at the upstream is the
// upstream's failure, not a refusal.
func (w *way) fail(ctx context.Context, reason string, cause error) error {
	if cerr := ctx.Err(); cerr != nil {
		return fmt.Errorf("%q: %w at %s (%v)", w.rec.Call.Name, cerr, w.step, cause)
	}
	if w.step == StepInvoke {
		return fmt.Errorf("%q: %w", w.rec.Call.Name, cause)
	}
	return w.refuse(w.step, reason, cause)
}

func (w *way) refuse(s Step, reason string, cause error) *Refusal {
	return &Refusal{Step: s, Call: w.rec.Call.ID, Name: w.rec.Call.Name, Reason: reason, Err: cause}
}

// Bounds of what a caller is told of its violations: a schema can find one in
// each element of an array, and a pointer holds names of any length.
const (
	maxViolations = 20
	maxReason     = 4 << 10 // bytes
)

// cut returns the beginning of s, of at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// publicViolations tells a caller what is wrong with what it sent.
func publicViolations(t *Tool, what string, err error) string {
	declared := "the tool's input schema"
	if t.Feature != FeatureTool {
		declared = "what the prompt or template declares"
	}
	var v Violations
	if errors.As(err, &v) {
		more := ""
		if len(v) > maxViolations {
			more = fmt.Sprintf("; and %d more", len(v)-maxViolations)
			v = v[:maxViolations]
		}
		return what + " break " + declared + ": " + cut(v.Error(), maxReason) + more
	}
	return what + " cannot be checked against " + declared
}
