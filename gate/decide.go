package gate

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

// maxDecisions bounds how often a call is decided on: again when its session has changed
// meanwhile, and when a person has approved it.
const maxDecisions = 9

// A ruling is what a decision comes to for a call.
type ruling struct {
	Decision        // as it holds: see [Decision.Asked]
	sent     *Call  // the call as its server gets it; the call itself if nothing is taken out
	duty     duty   // what the obligations come to
	adds     Labels // to the session, once the call is admitted
	consent  string // the [Question.Binding] that a person has approved; "" if none has
}

// asks reports whether a person has to approve the call, and none has.
func (r ruling) asks() bool { return r.Effect == Ask && r.consent == "" }

// decide has the authorizer decide on the call in the session's state that q has, and
// returns what that comes to. Consent is what a person has approved before: if that was
// another call, it is nothing.
func (w *way) decide(ctx context.Context, q Query, b searched, consent string) (ruling, error) {
	d, err := w.authorize(ctx, q, consent)
	if err != nil {
		return ruling{}, err
	}
	r, err := w.rule(q, b.wary(d).Asked())
	w.rec.Decision, w.rec.Call = r.Decision, r.sent
	if w.TrackOrigins && r.Effect != Allow {
		_, origins := w.unnamed(q)
		w.rec.Met = met(origins)
	}
	if consent != "" && r.question(q, w.Snapshot).Binding() != consent {
		w.rec.Approval = ApprovalRecord{}
		return w.decide(ctx, q, b, "")
	}
	if !r.passes() {
		return ruling{}, w.denied(r.Decision)
	}
	if errors.Is(err, errLogin) && ctx.Err() == nil {
		return ruling{}, w.refuse(stepCredential, "the policy allows this call only with a narrowed login, and the tool's server has no login that can be narrowed", err)
	}
	if err != nil {
		return ruling{}, w.fail(ctx, unableToMeet, err)
	}
	w.rec.Full, r.consent = r.duty.full, consent
	if b.refuses != "" {
		w.next(step.Sanitize)
		return ruling{}, w.fail(ctx, b.refuses, nil)
	}
	return r, nil
}

// stepCredential refuses calls that servers would refuse because a credential is missing, before
// the servers are asked.
const stepCredential step.Step = "credential"

// authorize has the authorizer decide. Its earlier decision is forgotten first: it does not hold if
// this one fails. It sees the arguments of an approved call as approved, which is true of this call
// only: its session does not learn it.
func (w *way) authorize(ctx context.Context, q Query, consent string) (Decision, error) {
	w.rec.Session, w.rec.Decision = q.Session, Decision{}
	if consent == "" { // else the record is of what a person was asked
		w.rec.Met = nil
	}
	if w.TrackValues {
		q.Session.Values = w.known(q)
	}
	if consent != "" {
		q.Session.Values = provenance.Approve(q.Session.Values)
	}
	d, err := w.Authorizer.Authorize(ctx, q)
	switch {
	case err == nil:
	case errors.Is(err, ErrOverdue) && ctx.Err() == nil:
		return Decision{}, w.refuse(step.Busy, "the gateway is too busy to decide on the call; try again", err)
	default:
		return Decision{}, w.undecided(ctx, q, err)
	}
	w.rec.Decision = d
	return d, nil
}

// undecided refuses a call that the policy cannot be evaluated for. Rules rely on the schema for
// the types of arguments. If the arguments break the schema, a caller that may know of the tool
// hears that, because this is what it can fix.
func (w *way) undecided(ctx context.Context, q Query, err error) error {
	if q.Tool.Input != nil && q.Tool.Feature == FeatureTool && w.inputMode(q.Tool) != warnInput && ctx.Err() == nil {
		broken := q.Tool.Input.Validate(q.Call.Args)
		visible, unknown := w.Authorizer.Visible(ctx, q.Call.Who, []*Tool{q.Tool})
		if broken != nil && unknown == nil && len(visible) == 1 && visible[0] {
			w.next(step.ValidateInput)
			err = errors.Join(broken, err)
			return w.fail(ctx, publicViolations(q.Tool, "the arguments", err), err)
		}
	}
	return w.fail(ctx, undecidable, err)
}

// rule returns what a decision on a call comes to. The error says which obligation cannot
// be met.
func (p *Parts) rule(q Query, d Decision) (ruling, error) {
	labels, _ := p.teaches(q.Tool)
	r := ruling{Decision: d, sent: sent(q.Call, d.Obligations), adds: d.Labels.Join(labels).Join(p.opens(q.Call, q.Tool)).Join(q.Tool.loads(q.Call.Action))}
	var err error
	if r.duty, err = noDuty.with(d.Obligations); err == nil && r.duty.narrowed {
		err = fits(q.Tool, r.duty.narrowing)
	}
	if err == nil && q.Tool.Feature == FeatureAgent && (r.duty.onResult() || r.duty.timeout < math.MaxInt64 || r.sent != q.Call) {
		err = errors.New("the agent carries out this call itself, so that no obligation can change its arguments, timeout or result")
	}
	return r, err
}

// errLogin is why a call that may use a part of a login alone cannot be made.
var errLogin = errors.New("the tool's server has no login that could be narrowed")

// fits returns why a tool cannot be narrowed so.
func fits(t *Tool, n obligation.Narrowing) error {
	if n.Scopes != nil && !t.Login {
		return errLogin
	}
	login := obligation.Narrowing{Scopes: n.Scopes, TTL: n.TTL}
	if !t.Sandboxed && (n.Scopes == nil || !reflect.DeepEqual(n, login)) {
		return errors.New("only a sandboxed tool can be narrowed like this")
	}
	return nil
}

// denied refuses the call as the policy does.
func (w *way) denied(d Decision) *Refusal {
	reason := strings.Join(d.Reasons, "; ")
	if reason == "" {
		reason = "not allowed by policy"
	}
	r := w.refuse(step.Authorize, w.sanitized(reason), nil)
	if d.Hidden {
		r.Reason, r.Err = unknown(w.rec.Call.Action), errors.New(reason)
	}
	r.Hidden, r.Remedy = d.Hidden, d.Remedy
	if w.rec.Call.Who.Auth == "bearer" { // no one else can ask for scopes
		r.Scopes = d.Scopes
	}
	return r
}

// question is what a person is asked about the call: its arguments are those that will be
// sent.
func (r ruling) question(q Query, snapshot string) Question {
	q.Call = r.sent
	return Question{Query: q, Reasons: r.Reasons, Revision: r.Revision, Snapshot: snapshot, Approvers: r.approvers()}
}
