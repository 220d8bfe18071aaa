package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/session"
)

// maxResets bounds how often a reset is tried while the session goes on reading.
const maxResets = 8

// beginSession says that a client begins to use a session.
func (g *Gateway) beginSession(c gate.Call) { g.sessions.Begin(g.session(c.Session), c.Program()) }

// Sessions returns the state of the sessions, the last used one first.
func (g operator) Sessions() []session.State { return g.sessions.List() }

// MissingPlaces says which places of results that labels speak of no result has had, each with
// the tool's name and a colon in front.
func (g operator) MissingPlaces() (all []string) {
	for _, m := range g.echoes.Missing() {
		all = append(all, fmt.Sprintf("%s: no result had %s (%d looked at)", m.Tool, m.Place, m.Results))
	}
	return all
}

// SessionsProblem returns what is wrong with the file in which labels are kept; nil if nothing is.
func (g operator) SessionsProblem() error { return g.sessions.Problem() }

// RefreshSessions takes over what other gateways know of sessions, if any share them; of those
// that were reset if only they are wanted.
func (g operator) RefreshSessions(ctx context.Context, reset bool) error {
	return g.sessions.Refresh(ctx, reset)
}

// RevokeDestinations takes back the destinations that the approval with an ID was for, as of the
// next decision, and returns them. by names the requester, for the audit log, which has it before
// it is done.
func (g operator) RevokeDestinations(_ context.Context, id, by string) ([]gate.Destination, error) {
	for _, s := range g.sessions.List() {
		if !slices.ContainsFunc(s.Destinations, func(d gate.Destination) bool { return d.ID == id }) {
			continue
		}
		if err := g.note(audit.Entry{
			Event: gate.EventApproval, Code: codes.OK, Tenant: s.Key.Tenant, Principal: s.Key.Owner.ID, Session: s.Key.ID,
			Approval: audit.Approval{ID: id, State: "revoked", By: by},
		}); err != nil {
			return nil, fmt.Errorf("the destinations stay approved: %w", err)
		}
		break
	}
	return g.sessions.Revoke(id)
}

// ResetSession takes from a session all that it has read, and returns what that was. seen is the
// version that a person has looked at; if the session has another by then, nothing is done and the
// error wraps [gate.ErrStale]. 0 takes any. by names the requester, for the audit log, which has it
// before it is done. A call under way is not affected. The error wraps [session.ErrUnknown] if
// there is nothing to take.
func (g operator) ResetSession(ctx context.Context, k gate.SessionKey, seen uint64, by string) (session.State, error) {
	for range maxResets {
		list := g.sessions.List()
		i := slices.IndexFunc(list, func(s session.State) bool { return s.Key == k })
		if i < 0 {
			return session.State{}, fmt.Errorf("session %q of %s: %w", k.ID, k.Owner.ID, session.ErrUnknown)
		}
		s := list[i]
		if seen != 0 && s.Version != seen {
			return session.State{}, fmt.Errorf("session %q of %s has read more since you looked at it: %w", k.ID, k.Owner.ID, gate.ErrStale)
		}
		err := g.sessions.Reset(ctx, k, s.Version, func() error {
			if err := g.note(audit.Entry{
				Event: audit.Label, Code: codes.OK, Tenant: k.Tenant, Principal: k.Owner.ID, Session: k.ID,
				LabelsBefore: s.Labels, SessionVersion: s.Version, SessionTop: s.Top,
				Reasons: []string{fmt.Sprintf("reset by %s, with %d values", by, s.Values)},
			}); err != nil {
				return fmt.Errorf("the session was not changed: %w", err)
			}
			return nil
		})
		if !errors.Is(err, gate.ErrStale) {
			return s, err
		}
	}
	return session.State{}, fmt.Errorf("session %q of %s reads too fast to be reset; try again", k.ID, k.Owner.ID)
}
