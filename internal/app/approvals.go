package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/config"
)

// byOperator is who answers through the commands: whoever may open the control
// socket, which is the operator alone.
const byOperator = string(approval.CLI) + ":local"

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
	Reasons   []string        `json:"reasons"`
	Session   string          `json:"session,omitempty"`
	Labels    []string        `json:"labels"`                // what the session has read
	Top       bool            `json:"session_top,omitempty"` // it counts as having read everything
	Call      string          `json:"call"`
	Binding   string          `json:"binding"`
	Policy    string          `json:"policy_revision"`
	// Destinations are the values that say to whom or where, and that nobody trusted has
	// named; Met is where the session has met values of the arguments, by JSON Pointers.
	Destinations []string                 `json:"destinations,omitempty"`
	Met          map[string][]gate.Origin `json:"met,omitempty"`
	By           string                   `json:"by,omitempty"`
	Note         string                   `json:"note,omitempty"`
}

// A DecideRequest is an operator's answer.
type DecideRequest struct {
	ID      string       `json:"id"`
	Verdict gate.Verdict `json:"verdict"`
	Note    string       `json:"note,omitempty"`
	Always  bool         `json:"always,omitempty"` // write a grant for the tool as well
	// Destination approves the call's destinations, too, until its session ends.
	Destination bool `json:"destination,omitempty"`
}

// Decided is what came of an answer.
type Decided struct {
	Approval Approval `json:"approval"`
	Always   *Always  `json:"always,omitempty"`
}

// Always tells of the grant that stands for an answer that is to hold for good.
type Always struct {
	Grants string `json:"grants"` // the file
	Added  bool   `json:"added"`  // false if it has the grant already
	// Still says what the policy makes of the same call now, unless it allows it:
	// the grant is not all that the policy asks about.
	Still string `json:"still,omitempty"`
}

// approvalOptions says how people are asked; nil if they are not.
func (a *App) approvalOptions(node string) *approval.Options {
	c := a.cfg.Approvals
	if len(c.Channels) == 0 {
		return nil
	}
	o := &approval.Options{
		Node: node, Hold: c.Hold, Expire: c.Expire,
		Remedy: func(id string) string { return "wasmgate approvals approve " + id },
		Always: func(ctx context.Context, r approval.Request) error {
			_, err := a.always(ctx, r)
			return err
		},
	}
	if c.Hold == 0 {
		o.Hold = -1 // none is held
	}
	for _, name := range c.Channels {
		o.Channels = append(o.Channels, approval.Channel(name))
	}
	return o
}

var errNotAsked = errors.New("nobody is asked about calls here: approvals.channels in the configuration is empty")

// Approvals returns the calls that wait for a person, the oldest first.
func (a *App) Approvals(ctx context.Context) ([]Approval, error) {
	q := a.gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	all := []Approval{}
	for _, r := range q.Pending(ctx) {
		one := describe(r)
		one.Arguments = nil
		all = append(all, one)
	}
	return all, nil
}

// Approval returns one of them, or one that was answered and has not expired.
func (a *App) Approval(id string) (*Approval, error) {
	q := a.gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	r, ok := q.Request(id)
	if !ok {
		return nil, &gate.NotApproved{Reason: fmt.Sprintf("there is no approval %s, or it has expired", gate.Visible(id))}
	}
	one := describe(r)
	return &one, nil
}

// Decide answers a question, as the operator.
func (a *App) Decide(ctx context.Context, d DecideRequest) (*Decided, error) {
	q := a.gateway.Approvals()
	if q == nil {
		return nil, errNotAsked
	}
	var r approval.Request
	var err error
	if d.Destination && d.Verdict == gate.Approved {
		r, err = q.ApproveDestinations(ctx, d.ID, byOperator, d.Note)
	} else {
		r, err = q.Decide(ctx, d.ID, d.Verdict, byOperator, d.Note)
	}
	if err != nil {
		return nil, err
	}
	done := &Decided{Approval: describe(r)}
	if d.Always && d.Verdict == gate.Approved {
		if done.Always, err = a.always(ctx, r); err != nil {
			return nil, fmt.Errorf("the call is approved, but no grant was written: %w", err)
		}
	}
	return done, nil
}

// always grants the tool of a request to its principal, so that nobody is asked
// again.
func (a *App) always(ctx context.Context, r approval.Request) (*Always, error) {
	of := r.Question
	to, tool := of.Call.Who.ID, of.Tool.Name.String()
	if tenant := of.Call.Who.Tenant; tenant != "" {
		to = tenant + "/" + to
	}
	done := &Always{Grants: a.cfg.Policy.Grants}
	var err error
	if done.Added, err = config.AddAlways(a.cfg.Policy.Grants, tool, to); err != nil {
		return nil, err
	}
	if err := a.reloadPolicy(ctx); err != nil {
		return nil, fmt.Errorf("the policy is refused with it: %w", err)
	}
	a.log.Info("tool approved for good", "tool", tool, "principal", to, "approval", r.ID, "grants", done.Grants)
	d, err := a.gateway.Policy().Authorize(ctx, of.Query)
	if err != nil {
		return nil, err
	}
	if d = d.Asked(); d.Effect != gate.Allow {
		done.Still = fmt.Sprintf("%s: %s", d.Effect, strings.Join(d.Reasons, "; "))
	}
	return done, nil
}

func describe(r approval.Request) Approval {
	of := r.Question
	c := of.Call
	return Approval{
		ID: r.ID, State: r.State, Asked: r.Asked, Expires: r.Expires, By: r.By, Note: r.Note,
		Principal: c.Who.ID, Client: strings.TrimSpace(c.ClientName + " " + c.ClientVersion), Session: c.Session.ID, Call: c.ID,
		Server: of.Tool.Name.Server, Tool: of.Tool.Name.String(), Arguments: c.Args.Raw(), Reasons: of.Reasons,
		Labels: append([]string{}, of.Session.Labels...), Top: of.Session.Top, Destinations: of.Destinations, Met: of.Origins,
		Binding: of.Binding(), Policy: of.Revision,
	}
}

// Destinations returns the destinations that people have approved for sessions which have
// not ended.
func (a *App) Destinations(context.Context) ([]gate.Destination, error) {
	all := []gate.Destination{}
	for _, s := range a.gateway.Sessions() {
		all = append(all, s.Destinations...)
	}
	return all, nil
}

type revokeRequest struct {
	ID string `json:"id"`
}

// RevokeDestinations takes back the destinations that an approval was for, and returns
// them.
func (a *App) RevokeDestinations(ctx context.Context, id string) ([]gate.Destination, error) {
	gone, err := a.gateway.RevokeDestinations(ctx, id, byOperator)
	if err != nil {
		return nil, &gate.NotApproved{Reason: err.Error()}
	}
	return gone, nil
}

// pendingApprovals returns how many calls wait for a person.
func (a *App) pendingApprovals() int {
	if q := a.gateway.Approvals(); q != nil {
		return q.Waiting()
	}
	return 0
}
