package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/forms"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/panicked"
	"github.com/wasmgate/wasmgate/policy/internal/decision"
	"github.com/wasmgate/wasmgate/policy/internal/fields"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/recent"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// An Engine is one compiled policy. It is immutable: policies that change are
// another engine. It is used from several goroutines.
type Engine struct {
	timeout  time.Duration
	wall     time.Duration // after which a decision is overdue, however few steps it took
	revision string
	grants   bool // whether the pack grants is on

	// every is a label for each text in the policy: what a session counts as
	// having that could not be kept. Nil if the policy computes labels.
	every gate.Labels

	decision rego.PreparedEvalQuery
	deny     rego.PreparedEvalQuery // the set alone
	listing  *listing
	inputs   *input.Builder
	labels   labelling
	persons  *persons

	idle     []Problem // rules without effect
	idleAsks []Problem
	doubts   []Problem // names that may be misspelt
	compared []fields.Comparison

	// To explain decisions.
	compiler *ast.Compiler
	written  map[string]*ast.Module // by file, as parsed
	options  []func(*rego.Rego)

	keys      *recent.Cache[*gate.Principal, principalKey]
	decisions *recent.Cache[pairing, specialised]
}

var _ gate.Authorizer = (*Engine)(nil)

// Revision identifies the policy: a hash of the packs', files' and grants'
// content, the same wherever that content is the same.
func (e *Engine) Revision() string { return e.revision }

// IdleAsks returns warnings of rules and packs that ask about what nothing allows. Such
// calls are denied, and nobody is asked.
func IdleAsks(e *Engine) []Problem { return e.idleAsks }

// Idle returns warnings of rules from which no decision follows, such as those of another
// package than wasmgate to which no rule of it refers, and of misspelt ones.
func (e *Engine) Idle() []Problem { return e.idle }

// prepare makes the queries.
func (e *Engine) prepare(ctx context.Context, c *ast.Compiler, o Options, data map[string]any) error {
	store, functions, err := newStore(ctx, o.Grants, o.RateLimits, data)
	if err != nil {
		return err
	}
	e.compiler = c
	e.options = []func(*rego.Rego){
		rego.Compiler(c), rego.Store(store), functions,
		rego.StrictBuiltinErrors(true), rego.SetRegoVersion(ast.RegoV1),
		// Results stay values of Rego; decode reads them.
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	}
	if o.Print != nil {
		e.options = append(e.options, rego.PrintHook(topdown.NewPrintHook(o.Print)))
	}
	for name, q := range map[string]*rego.PreparedEvalQuery{"decision": &e.decision, "deny": &e.deny} {
		o := append(e.options[:len(e.options):len(e.options)], rego.Query("data.wasmgate."+name))
		if *q, err = rego.New(o...).PrepareForEval(ctx); err != nil {
			return fmt.Errorf("prepare policy: %w", err)
		}
	}
	e.listing, err = newListing(ctx, c, e.options)
	return err
}

// Authorize decides on one call, on one host call of a sandboxed tool, or on what a
// server asks of the client. Whatever is not a decision that it understands is an error, which denies.
func (e *Engine) Authorize(ctx context.Context, q gate.Query) (d gate.Decision, err error) {
	defer recoverTo(&err, func() { d = gate.Decision{} })
	if q, err = e.checked(q); err != nil {
		return gate.Decision{}, err
	}
	if q.Tool.Feature == gate.FeatureTool && q.Call.Action == gate.CallTool {
		return e.specialise(ctx, q)
	}
	return e.full(ctx, q)
}

// checked returns the query as it is decided on, or why it cannot be.
func (e *Engine) checked(q gate.Query) (gate.Query, error) {
	switch {
	case q.Call == nil || q.Call.Who == nil || q.Tool == nil:
		return q, errors.New("policy: the query names no call, no principal or no tool")
	case !decides(q):
		return q, fmt.Errorf("policy: action %q is not decided in this version", q.Call.Action)
	case q.Session.Top && e.every == nil:
		return q, errors.New("policy: the session has read more than could be kept, and the policy computes the names of labels, so no decision is possible")
	case q.Session.Top:
		q.Session.Labels = q.Session.Labels.Join(e.every)
	}
	return q, nil
}

// full evaluates the policy on a query.
func (e *Engine) full(ctx context.Context, q gate.Query) (gate.Decision, error) {
	_, d, err := e.decide(ctx, e.inputs.Input(q))
	if err != nil {
		return gate.Decision{}, err
	}
	return e.complete(ctx, q, d), nil
}

// complete completes a denial. That of a host call, of a request to the client, or of an
// agent's own tool hides no tool: whoever made the call knows it.
func (e *Engine) complete(ctx context.Context, q gate.Query, d gate.Decision) gate.Decision {
	if d.Effect != gate.Deny {
		return d
	}
	if len(d.Reasons) == 0 {
		d.Reasons = []string{nothingAllows(what(q), q.Call.Who.ID)}
		d.Remedy = e.remedy(q)
	}
	if within(q.Call.Action) || q.Call.Action == actions.AgentCall {
		return d
	}
	visible, err := e.Visible(ctx, q.Call.Who, []*gate.Tool{q.Tool})
	d.Hidden = err != nil || !visible[0]
	if !d.Hidden && q.Call.Action == gate.CallTool { // a rule allows other calls of the tool: a grant would allow all
		d.Remedy = ""
	}
	return d
}

// what names what a query is about.
func what(q gate.Query) string {
	if actions.IsHostCall(q.Call.Action) {
		return string(q.Call.Action) + " of " + q.Tool.Name.String()
	}
	if forms.AsksSecret(q.Call.Action, q.Call.Args) {
		return whatSecret(q)
	}
	if actions.IsPeerRequest(q.Call.Action) {
		return string(q.Call.Action) + " by server " + q.Tool.Name.Server
	}
	return q.Subject()
}

func whatSecret(q gate.Query) string {
	return string(q.Call.Action) + " for a secret by server " + q.Tool.Name.Server
}

// remedy returns what would allow what nothing allows: a command for a tool, a line of
// the grants file for what else grants can grant, and "" for the rest.
func (e *Engine) remedy(q gate.Query) string {
	if !e.grants {
		return ""
	}
	who := match.Name(q.Call.Who.Tenant, q.Call.Who.ID)
	if q.Tool.Feature == gate.FeatureMethod && !within(q.Call.Action) {
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "")
	}
	if q.Tool.Skill != nil {
		return grantLine(who, "skills", q.Tool.Skill.Name, "")
	}
	switch a := q.Call.Action; a {
	case gate.CallTool:
		return remedy(q.Tool.Name.String(), who)
	case actions.AgentCall:
		return remedy("--agent "+q.Tool.Name.String(), who)
	case gate.Complete:
		if q.Tool.Feature != gate.FeaturePrompt {
			return "" // who can read what a template stands for is asked of each URI
		}
		return grantLine(who, "prompts", q.Subject(), "")
	case gate.GetPrompt, gate.ReadResource, gate.Subscribe:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "")
	case actions.Sample:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "sampling")
	case actions.ListRoots:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "roots")
	case actions.Elicit:
		return grantLine(who, grantKey(q.Tool.Feature), q.Subject(), "secrets")
	default:
		return ""
	}
}

// grantKey is where the patterns of a feature stand in a grant.
func grantKey(f gate.Feature) string {
	switch f {
	case gate.FeaturePrompt:
		return "prompts"
	case gate.FeatureMethod:
		return "methods"
	case gate.FeatureResource, gate.FeatureTemplate:
		return "resources"
	default:
		return "tools"
	}
}

// grantLine says which line of the grants file grants what is named, and lets its
// server ask for what asks says; "" if who cannot be named, or if the pattern would
// match more.
func grantLine(who, key, name, asks string) string {
	if tables.ParseSubject(who).Kind != "id" || strings.Contains(name, "*") {
		return ""
	}
	if asks != "" {
		asks = ", asks: [" + asks + "]"
	}
	return fmt.Sprintf("write into the grants file: - {to: [%q], %s: [%q]%s}", who, key, name, asks)
}

// remedy returns the command that grants a tool, as its argument or flag says, or "" if who cannot be named.
func remedy(tool, who string) string {
	command := "wasmgate grant " + tool
	switch {
	case who == gate.Local().ID: // the default of the command
		return command
	case tables.ParseSubject(who).Kind != "id":
		return ""
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@:/+="
	if who == "" || strings.Trim(who, plain) != "" || who[0] == '-' {
		return command + " --to='" + strings.ReplaceAll(who, "'", `'\''`) + "'"
	}
	return command + " --to " + who
}

func nothingAllows(what, who string) string { return "no policy allows " + what + " for " + who }

// decide evaluates the policy on one input. It returns the decision as Rego
// made it, too.
func (e *Engine) decide(ctx context.Context, input ast.Value) (ast.Object, gate.Decision, error) {
	v, err := e.eval(ctx, e.decision, input)
	if err != nil {
		return nil, gate.Decision{}, err
	}
	o, ok := v.(ast.Object)
	if !ok {
		return nil, gate.Decision{}, errors.New("policy: data.wasmgate.decision is not an object")
	}
	d, err := e.decode(o)
	return o, d, err
}

// decode reads a decision that Rego made.
func (e *Engine) decode(o ast.Object) (gate.Decision, error) {
	d, err := decision.Read(o)
	if err != nil {
		return gate.Decision{}, fmt.Errorf("policy: data.wasmgate.decision: %w", err)
	}
	d.Revision = e.revision
	return d, nil
}

// eval returns the value of a query.
func (e *Engine) eval(ctx context.Context, q rego.PreparedEvalQuery, input ast.Value) (ast.Value, error) {
	end := e.deadline(ctx)
	rs, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(end), rego.EvalMetrics(metrics.NoOp()))
	switch {
	case end.over != nil:
		return nil, e.late(end.over)
	case err != nil:
		return nil, fmt.Errorf("policy: %w", err)
	case len(rs) != 1 || len(rs[0].Expressions) != 1:
		return nil, errors.New("policy: data.wasmgate.decision is undefined")
	}
	v, _ := rs[0].Expressions[0].Value.(ast.Value)
	return v, nil
}

// late is the error of a decision that was not reached before its end.
func (e *Engine) late(over error) error {
	switch {
	case errors.Is(over, errSteps):
		return fmt.Errorf("policy: no decision within the %d steps that policy.timeout (%v) allows: %w", e.steps(), e.timeout, over)
	case errors.Is(over, gate.ErrOverdue):
		return fmt.Errorf("policy: the gateway is too busy: no decision within %v: %w", e.wall, over)
	}
	return fmt.Errorf("policy: no decision: %w", over)
}

// What bounds a decision is how much work it is, which does not depend on what else the
// machine does: a step takes about a microsecond where there is time. The clock bounds it
// too, but far above, and then it is the gateway that was too slow.
const (
	stepTime = time.Microsecond
	patience = 10 // times the timeout, on the clock
)

func (e *Engine) steps() int { return max(int(e.timeout/stepTime), 1) }

var errSteps = errors.New("the policy needs too many evaluation steps")

// deadline ends an evaluation. OPA asks it at every step, from one goroutine; it
// looks at the clock itself, which costs less than a timer and a goroutine for
// each decision.
type deadline struct {
	ctx   context.Context
	steps int // that are left
	at    time.Time
	over  error // why the evaluation was ended
}

func (e *Engine) deadline(ctx context.Context) *deadline {
	return &deadline{ctx: ctx, steps: e.steps(), at: time.Now().Add(e.wall)}
}

// askedBetween is how many steps pass between two looks at the clock.
const askedBetween = 16

// Cancel is not used: the deadline alone ends an evaluation.
func (d *deadline) Cancel() {}

// Cancelled reports whether the evaluation has to end.
func (d *deadline) Cancelled() bool {
	if d.over != nil {
		return true
	}
	if d.steps%askedBetween == 0 {
		if d.over = d.ctx.Err(); d.over == nil && time.Now().After(d.at) {
			d.over = gate.ErrOverdue
		}
	}
	if d.steps--; d.steps < 0 && d.over == nil {
		d.over = errSteps
	}
	return d.over != nil
}

// recoverTo turns a panic into an error. It is deferred.
func recoverTo(err *error, undo func()) {
	if v := recover(); v != nil {
		undo()
		*err = fmt.Errorf("policy: %w", panicked.Error(v))
	}
}
