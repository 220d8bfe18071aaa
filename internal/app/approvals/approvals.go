// Package approvals shows the calls that wait for a person, takes answers to them, and grants what is approved for
// good. The operator may break the glass in an emergency.
package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

// The operations of approvals.
var (
	All          = operation.New[operation.None, []Approval]("approvals")
	Show         = operation.New[DecideRequest, *Approval]("approval")
	Decide       = operation.New[DecideRequest, *Decided]("decide")
	Break        = operation.New[GlassRequest, time.Time]("auth-break-glass")
	Destinations = operation.New[operation.None, []gate.Destination]("destinations")
	Revoke       = operation.New[RevokeRequest, []gate.Destination]("destinations-revoke")
)

// Gateway is the one whose calls wait.
type Gateway interface {
	Approvals() *approval.Queue // nil if nothing is asked
	// Admin decides on what someone who runs the gateway would do, and records it if it changes something.
	Admin(ctx context.Context, q policy.AdminQuery, changes bool) error
	Sessions() gateway.Sessions
	RevokeDestinations(ctx context.Context, id, by string) ([]gate.Destination, error)
}

// Others are the other gateways that share a database.
type Others interface {
	// Destinations returns those that are approved for sessions there. The error says which gateways did not answer.
	Destinations(ctx context.Context) ([]gate.Destination, error)
	// RevokeDestinations takes back what an approval has approved there, and returns it; nothing if no session has it.
	RevokeDestinations(ctx context.Context, id, by string) ([]gate.Destination, error)
}

// Approvals are those of one gateway. Its fields are set before the first call.
type Approvals struct {
	Gateway  Gateway
	Others   Others
	Config   func() *config.Config // in use
	Policies *policies.Policies
	// Identify says whose a bearer token or an API key is.
	Identify func(ctx context.Context, token string) (*gate.Principal, auth.Identity, error)
	Shared   state.Document // until when the glass is broken, if gateways share it; else nil
	Log      *slog.Logger

	glass approval.Glass // broken in an emergency: see [Approvals.BreakGlass]
}

// Operations adds those of approvals to a table.
func (a *Approvals) Operations(t operation.Table) {
	operation.AddPlain(t, All, a.List)
	Show.Add(t, func(ctx context.Context, r DecideRequest) (*Approval, error) { return a.Show(ctx, r.ID) })
	Decide.Add(t, a.Decide)
	Break.Add(t, a.BreakGlass)
	operation.AddPlain(t, Destinations, a.Destinations)
	Revoke.Add(t, func(ctx context.Context, r RevokeRequest) ([]gate.Destination, error) {
		return a.RevokeDestinations(ctx, r.ID, operation.ByOperator)
	})
}

// An Approval is a call that waits for a person, or has, as the commands show it.
type Approval struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	Asked     time.Time       `json:"asked"`
	Expires   time.Time       `json:"expires"`
	Principal string          `json:"principal"`
	Client    string          `json:"client,omitempty"` // as it calls itself
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`                // server__tool
	Arguments json.RawMessage `json:"arguments,omitempty"` // as they will be sent; absent in a list
	// Calls are those that the answer is about, if the client has announced several; Arguments are then
	// those of the tool that announces them.
	Calls   []ProposedCall `json:"calls,omitempty"`
	Reasons []string       `json:"reasons"`
	Session string         `json:"session,omitempty"`
	Labels  []string       `json:"labels"`                // what the session has read
	Top     bool           `json:"session_top,omitempty"` // it counts as having read everything
	Call    string         `json:"call"`
	Binding string         `json:"binding"`
	Policy  string         `json:"policy_revision"`
	// Destinations are the values that say to whom or where, and that no one trusted has
	// named; Met is where the session has met values of the arguments, by JSON Pointers.
	Destinations []string                       `json:"destinations,omitempty"`
	Met          map[string][]provenance.Origin `json:"met,omitempty"`
	// The other values at the same place of the result, if all destinations are at one place. BesideAt
	// describes that place in words.
	Beside   []string `json:"beside,omitempty"`
	BesideAt string   `json:"beside_at,omitempty"`
	// Approvers are who may answer, a list for each who says so; NotSelf says that the
	// principal may not.
	Approvers [][]string `json:"approvers,omitempty"`
	NotSelf   bool       `json:"not_self,omitempty"`
	By        string     `json:"by,omitempty"`
	Auth      string     `json:"auth,omitempty"` // how who answered was verified
	Note      string     `json:"note,omitempty"`
	Closed    string     `json:"closed,omitempty"` // how the client closed the question without asking a person
}

// A ProposedCall is one of several calls that one answer is about.
type ProposedCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // as they will be sent; absent in a list
}

// Why says in words why the call waits.
func (a Approval) Why() string {
	why := strings.Join(a.Reasons, "; ")
	if a.Closed != "" {
		why = "the client " + a.Closed + " by itself; " + why
	}
	return why
}

// MayAnswer says in words who may answer; "" is the operator, and the client of the call.
func (a Approval) MayAnswer() string {
	var said []string
	for _, by := range a.Approvers {
		said = append(said, strings.Join(by, " or "))
	}
	if a.NotSelf {
		said = append(said, "not "+a.Principal)
	}
	return strings.Join(said, "; ")
}

// MetBefore says in words where the session has met values of the arguments, each by its JSON
// Pointer.
func (a Approval) MetBefore() (all []string) {
	for _, at := range slices.Sorted(maps.Keys(a.Met)) {
		for _, o := range a.Met[at] {
			all = append(all, at+" "+wayOf(o))
		}
	}
	return all
}

func wayOf(o provenance.Origin) string {
	where := "in the arguments or the prompt of call " + o.Call
	if o.Tool != "" {
		where = fmt.Sprintf("at %s of %s, call %s", cmp.Or(o.Pointer, "/"), o.Tool, o.Call)
	}
	if o.Label != "" {
		where += ", a place of " + o.Label
	}
	return where + " (" + o.Source + ")"
}

// A DecideRequest is an answer: the operator's, or that of the principal that As names or Token proves.
type DecideRequest struct {
	ID      string       `json:"id"`
	Verdict gate.Verdict `json:"verdict"`
	Note    string       `json:"note,omitempty"`
	Always  bool         `json:"always,omitempty"` // write a grant for the tool as well
	// Destination approves the call's destinations, too, until its session ends.
	Destination bool `json:"destination,omitempty"`
	// Also approve the values that were shown next to the destinations.
	Beside bool   `json:"beside,omitempty"`
	As     string `json:"as,omitempty"`    // a principal of the configuration: the operator says that it is they who answer
	Token  string `json:"token,omitempty"` // the approver's bearer token or API key
}

// Decided is what came of an answer.
type Decided struct {
	Approval Approval `json:"approval"`
	Always   *Always  `json:"always,omitempty"`
}

// Always describes the grant for an answer that is to hold for good.
type Always struct {
	Grants string `json:"grants"` // the file, or the document that gateways share
	Added  bool   `json:"added"`  // false if it has the grant already, or none was written
	// Still says what the policy would make of the same call with the grant, unless it would allow
	// it. No grant is written then.
	Still string `json:"still,omitempty"`
}

// Options says how people are asked; without a channel they are not.
func (a *Approvals) Options(c config.Approvals, node string) *approval.Options {
	o := &approval.Options{
		Node: node, Hold: c.Hold, Expire: c.Expire, Channels: []approval.Channel{}, Approvers: obligation.Approve{By: c.By, NotSelf: c.NotSelf}, Alone: a.alone,
		Remedy: func(id string) string { return "wasmgate approvals approve " + id },
		Always: func(ctx context.Context, r approval.Request) error {
			_, err := a.always(ctx, r)
			return err
		},
	}
	if c.Hold == 0 {
		o.Hold = -1 // no call is held
	}
	for _, name := range c.Channels {
		o.Channels = append(o.Channels, approval.Channel(name))
	}
	return o
}

// alone reports whether everyone is local: callers are not distinguished, neither by a credential nor
// by name.
func (a *Approvals) alone() bool {
	c := a.Config()
	return !c.Auth.On() && !slices.ContainsFunc(c.Principals, func(p config.Principal) bool { return p.ID != gate.Local().ID })
}

var errNotAsked = errors.New("approvals are off, because approvals.channels in the configuration is empty")

// List returns the calls that wait for a person, the oldest first.
func (a *Approvals) List(ctx context.Context) ([]Approval, error) {
	q := a.Gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	all := []Approval{}
	waiting, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range waiting {
		one := a.Describe(r)
		one.Arguments = nil
		for i := range one.Calls {
			one.Calls[i].Arguments = nil
		}
		all = append(all, one)
	}
	return all, nil
}

// Show returns one of them, or one that was answered and has not expired.
func (a *Approvals) Show(ctx context.Context, id string) (*Approval, error) {
	q := a.Gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	r, ok, err := q.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &gate.NotApproved{Reason: fmt.Sprintf("there is no approval %s, or it has expired", escaped.Text(id))}
	}
	one := a.Describe(r)
	return &one, nil
}

// Decide answers a question.
func (a *Approvals) Decide(ctx context.Context, d DecideRequest) (*Decided, error) {
	q := a.Gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	who, err := a.answerer(ctx, d)
	if err != nil {
		return nil, err
	}
	answer := gate.Answer{Verdict: d.Verdict}
	if d.Verdict == gate.Approved {
		answer.Destinations, answer.Beside = d.Destination || d.Beside, d.Beside
	}
	by := string(approval.CLI) + ":" + match.Name(who.Tenant, who.ID)
	if who == approval.BreakGlass {
		by = "break-glass:" + who.ID
	}
	r, err := q.DecideAs(ctx, who, d.ID, answer, by, d.Note)
	if err != nil {
		return nil, err
	}
	done := &Decided{Approval: a.Describe(r)}
	if d.Always && len(r.Question.Set) > 0 {
		return nil, &gate.NotApproved{Reason: "the calls are approved, each once; a list of calls is never approved for good"}
	}
	if d.Always && d.Verdict == gate.Approved {
		if done.Always, err = a.always(ctx, r); err != nil {
			return nil, fmt.Errorf("the call is approved, but no grant was written: %w", err)
		}
	}
	return done, nil
}

// answerer returns who answers.
func (a *Approvals) answerer(ctx context.Context, d DecideRequest) (*gate.Principal, error) {
	if d.Token == "" && d.As == "" && !a.glass.Until().IsZero() {
		return approval.BreakGlass, nil
	}
	if d.Token == "" {
		return naming.Principal(a.Config(), d.As)
	}
	who, identity, err := a.Identify(ctx, d.Token)
	switch {
	case err != nil:
		return nil, &gate.NotApproved{Reason: "the token of the person who answers is refused: " + err.Error()}
	case identity.Bound != "":
		return nil, &gate.NotApproved{Reason: "the token of the person who answers is bound to a client certificate, which cannot be shown here"}
	case d.As != "" && d.As != match.Name(who.Tenant, who.ID):
		return nil, &gate.NotApproved{Reason: fmt.Sprintf("the token belongs to %s, not to %s", escaped.Text(match.Name(who.Tenant, who.ID)), escaped.Text(d.As))}
	}
	return who, nil
}

// A GlassRequest breaks the glass for a time; 0 ends that.
type GlassRequest struct {
	For    time.Duration `json:"for"`
	Reason string        `json:"reason,omitempty"`
}

// BreakGlass lets the operator answer any question until a time, which it returns, even questions that
// only others may answer. It opens nothing else, and ends with the gateway, unless gateways share it.
func (a *Approvals) BreakGlass(ctx context.Context, r GlassRequest) (time.Time, error) {
	until, err := a.glass.Break(r.For, func(what string) error {
		return a.Gateway.Admin(context.WithoutCancel(ctx), policy.AdminQuery{
			Who: gate.Local(), Action: "admin/approve", Op: "auth.break-glass", Object: strings.TrimSpace(what + " " + escaped.Text(r.Reason)), Operator: true,
		}, true)
	})
	if err != nil {
		return until, operation.Misuse("%v", err)
	}
	if a.Shared != nil {
		if err := a.Shared.Change(ctx, func([]byte) ([]byte, error) { return until.MarshalText() }); err != nil {
			return until, fmt.Errorf("it holds at this gateway only: %w", err)
		}
	}
	a.Log.Warn("break-glass", "until", until, "reason", r.Reason)
	return until, nil
}

// Broken is until when the operator answers any question; zero if that is not so.
func (a *Approvals) Broken() time.Time { return a.glass.Until() }

// Follow takes over what another gateway has done to the glass.
func (a *Approvals) Follow(ctx context.Context) error {
	raw, _, err := a.Shared.Load(ctx, 0)
	if err != nil || raw == nil {
		return err
	}
	var until time.Time
	if err := until.UnmarshalText(raw); err != nil {
		return fmt.Errorf("%s: %w", a.Shared.Name(), err)
	}
	a.glass.Follow(until)
	return nil
}

// always grants the tool of a request to its principal, so that no one is asked again. No grant is
// written if the policy asks all the same.
func (a *Approvals) always(ctx context.Context, r approval.Request) (*Always, error) {
	to, tool := alwaysFor(r)
	grants := a.Policies.Grants()
	done := &Always{Grants: grants.Name()}
	still, err := a.stillAsked(ctx, []approval.Request{r})
	if err != nil {
		return nil, err
	}
	if done.Still = still[r.ID]; done.Still != "" {
		a.Log.Warn("a grant does not stop the question, and none was written", "tool", tool, "principal", to, "approval", r.ID, "policy", done.Still)
		return done, nil
	}
	if done.Added, err = policydata.AddAlways(ctx, grants, tool, to); err != nil {
		return nil, err
	}
	if err := a.Policies.Reload(ctx); err != nil {
		return nil, fmt.Errorf("the grant is written to %s, but the policy does not load with it: %w", done.Grants, err)
	}
	a.Log.Info("tool approved for good", "tool", tool, "principal", to, "approval", r.ID, "grants", done.Grants)
	return done, nil
}

// alwaysFor returns the principal and the tool that [Approvals.always] writes a grant for.
func alwaysFor(r approval.Request) (to, tool string) {
	of := r.Question
	return match.Name(of.Call.Who.Tenant, of.Call.Who.ID), of.Tool.Name.String()
}

// StillAsked returns, by the ids of the waiting calls, the reasons for which the policy would still ask
// about them if their tools were approved for good. A call that it would allow then is left out.
func (a *Approvals) StillAsked(ctx context.Context) (map[string]string, error) {
	q := a.Gateway.Approvals()
	if q == nil {
		return nil, nil
	}
	all, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	return a.stillAsked(ctx, all)
}

func (a *Approvals) stillAsked(ctx context.Context, all []approval.Request) (map[string]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var grants []policy.Grant
	for _, r := range all {
		to, tool := alwaysFor(r)
		grants = append(grants, policy.Grant{To: []string{to}, Tools: []string{tool}, Always: []string{tool}})
	}
	engine, err := a.Policies.Granted(ctx, grants)
	if err != nil {
		return nil, err
	}
	still := make(map[string]string)
	for _, r := range all {
		d, err := engine.Authorize(ctx, r.Question.Query)
		if err != nil {
			return nil, err
		}
		if d = d.Asked(); d.Effect != gate.Allow {
			still[r.ID] = fmt.Sprintf("%s: %s", d.Effect, strings.Join(d.Reasons, "; "))
		}
	}
	return still, nil
}

// Describe returns a call that waits as the commands show it.
func (a *Approvals) Describe(r approval.Request) Approval {
	of := r.Question
	c := of.Call
	to := Approval{
		ID: r.ID, State: r.State, Asked: r.Asked, Expires: r.Expires, By: r.By, Auth: r.Auth, Note: r.Note, Closed: r.Closed,
		Principal: match.Name(c.Who.Tenant, c.Who.ID), Client: strings.TrimSpace(c.ClientName + " " + c.ClientVersion), Session: c.Session.ID, Call: c.ID,
		Server: of.Tool.Name.Server, Tool: of.Tool.Name.String(), Arguments: c.Args.Raw(), Reasons: of.Reasons,
		Labels: append([]string{}, of.Session.Labels...), Top: of.Session.Top, Destinations: of.Destinations, Met: of.Origins,
		Beside: of.Beside, Binding: of.Binding(), Policy: of.Revision,
	}
	for _, one := range of.Set {
		to.Calls = append(to.Calls, ProposedCall{one.Tool.Name.String(), one.Call.Args.Raw()})
		to.Destinations = append(to.Destinations, one.Destinations...)
	}
	if len(of.Beside) > 0 {
		to.BesideAt = fmt.Sprintf("%s of %s, call %s", cmp.Or(of.BesideOf.Place, "/"), of.BesideOf.Tool, of.BesideOf.Call)
	}
	for _, one := range append([]obligation.Approve{{By: a.Config().Approvals.By, NotSelf: a.Config().Approvals.NotSelf}}, of.Approvers...) {
		if len(one.By) > 0 {
			to.Approvers = append(to.Approvers, one.By)
		}
		to.NotSelf = to.NotSelf || one.NotSelf && !a.alone()
	}
	return to
}

// Own returns the destinations that are approved for sessions at this gateway.
func (a *Approvals) Own() []gate.Destination {
	all := []gate.Destination{}
	for _, s := range a.Gateway.Sessions().List() {
		all = append(all, s.Destinations...)
	}
	return all
}

// Destinations returns the destinations that are approved for sessions, at this gateway and at others. With an error it returns
// those of the gateways that answered.
func (a *Approvals) Destinations(ctx context.Context) ([]gate.Destination, error) {
	others, err := a.Others.Destinations(ctx)
	return append(a.Own(), others...), err
}

// A RevokeRequest names the approval whose destinations are taken back.
type RevokeRequest struct {
	ID string `json:"id"`
}

// RevokeDestinations takes back the destinations that an approval was for, at whichever gateway, and returns
// them. By is who does it.
func (a *Approvals) RevokeDestinations(ctx context.Context, id, by string) ([]gate.Destination, error) {
	gone, err := a.RevokeOwn(ctx, id, by)
	if err == nil && len(gone) == 0 {
		gone, err = a.Others.RevokeDestinations(ctx, id, by)
	}
	switch {
	case len(gone) > 0:
		return gone, nil
	case err == nil:
		err = fmt.Errorf("approval %q has no destinations to revoke; see `wasmgate approvals destinations`", id)
	}
	return nil, &gate.NotApproved{Reason: err.Error()}
}

// RevokeOwn takes back the destinations that an approval was for at this gateway, and returns them.
func (a *Approvals) RevokeOwn(ctx context.Context, id, by string) ([]gate.Destination, error) {
	if !slices.ContainsFunc(a.Own(), func(d gate.Destination) bool { return d.ID == id }) {
		return nil, nil
	}
	return a.Gateway.RevokeDestinations(ctx, id, by)
}

// On reports whether people are asked about calls.
func (a *Approvals) On() bool { return a.Gateway.Approvals() != nil }

// Waiting returns how many calls wait for a person.
func (a *Approvals) Waiting() int {
	if q := a.Gateway.Approvals(); q != nil {
		return q.Waiting()
	}
	return 0
}
