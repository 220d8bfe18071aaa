package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// maxResets bounds how often a reset is tried while the session goes on reading.
const maxResets = 8

// sessions are those for which labels are kept.
type sessions struct {
	*session.Sessions
	echoes provenance.Echoes
	one    bool // of each principal: see Config.OneSession
}

// key names the session for which labels are kept, of a client's own.
func (s *sessions) key(k gate.SessionKey) gate.SessionKey {
	if s.one {
		k.ID = ""
	}
	return k
}

// place returns the call in the session for which its labels are kept.
func (s *sessions) place(c gate.Call) gate.Call {
	c.Connection = c.Audience()
	c.Session = s.key(c.Session)
	return c
}

// begin says that a client begins to use a session.
func (s *sessions) begin(c gate.Call) { s.Begin(s.key(c.Session), c.Program()) }

// openApps names the servers with an app that is open in a session.
func (s *sessions) openApps(ctx context.Context, k gate.SessionKey) ([]string, error) {
	is, err := s.View(ctx, s.key(k))
	return is.OpenApps(), err
}

// loadedSkills names the skills that a session has loaded.
func (s *sessions) loadedSkills(ctx context.Context, k gate.SessionKey) ([]string, error) {
	is, err := s.View(ctx, s.key(k))
	return is.LoadedSkills(), err
}

// Sessions are those of clients, with the labels and values that each has read. [Operator.Sessions]
// returns them; the zero Sessions are of no use. Use them from several goroutines.
type Sessions struct{ of *Gateway }

// Sessions returns the sessions.
func (g Operator) Sessions() Sessions { return Sessions{g.Gateway} }

// List returns the state of the sessions, the last used one first.
func (s Sessions) List() []session.State { return s.of.sessions.List() }

// MissingPlaces says which places of results that labels speak of no result has had, each with
// the tool's name and a colon in front.
func (s Sessions) MissingPlaces() (all []string) {
	for _, m := range s.of.sessions.echoes.Missing() {
		all = append(all, fmt.Sprintf("%s: no result had %s (%d looked at)", m.Tool, m.Place, m.Results))
	}
	return all
}

// Problem returns what is wrong with the file in which labels are kept; nil if nothing is.
func (s Sessions) Problem() error { return s.of.sessions.Problem() }

// Refresh takes over what other gateways know of sessions, if any share them; of those
// that were reset if only they are wanted.
func (s Sessions) Refresh(ctx context.Context, reset bool) error {
	return s.of.sessions.Refresh(ctx, reset)
}

// RevokeDestinations takes back the destinations that the approval with an ID was for, as of the
// next decision, and returns them. by names the requester, for the audit log, which has it before
// it is done.
func (g Operator) RevokeDestinations(_ context.Context, id, by string) ([]gate.Destination, error) {
	for _, one := range g.Sessions().List() {
		if !slices.ContainsFunc(one.Destinations, func(d gate.Destination) bool { return d.ID == id }) {
			continue
		}
		if err := g.journal.note(audit.Entry{
			Event: gate.EventApproval, Code: codes.OK, Tenant: one.Key.Tenant, Principal: one.Key.Owner.ID, Session: one.Key.ID,
			Approval: audit.Approval{ID: id, State: "revoked", By: by},
		}); err != nil {
			return nil, fmt.Errorf("the destinations stay approved: %w", err)
		}
		break
	}
	return g.sessions.Revoke(id)
}

// Reset takes from a session all that it has read, and returns what that was. seen is the
// version that a person has looked at; if the session has another by then, nothing is done and the
// error wraps [gate.ErrStale]. 0 takes any. by names the requester, for the audit log, which has it
// before it is done. A call under way is not affected. The error wraps [session.ErrUnknown] if
// there is nothing to take.
func (s Sessions) Reset(ctx context.Context, k gate.SessionKey, seen uint64, by string) (session.State, error) {
	for range maxResets {
		list := s.List()
		i := slices.IndexFunc(list, func(one session.State) bool { return one.Key == k })
		if i < 0 {
			return session.State{}, fmt.Errorf("session %q of %s: %w", k.ID, k.Owner.ID, session.ErrUnknown)
		}
		is := list[i]
		if seen != 0 && is.Version != seen {
			return session.State{}, fmt.Errorf("session %q of %s has read more since you looked at it: %w", k.ID, k.Owner.ID, gate.ErrStale)
		}
		err := s.of.sessions.Reset(ctx, k, is.Version, func() error {
			if err := s.of.journal.note(audit.Entry{
				Event: audit.Label, Code: codes.OK, Tenant: k.Tenant, Principal: k.Owner.ID, Session: k.ID,
				LabelsBefore: is.Labels, SessionVersion: is.Version, SessionTop: is.Top,
				Reasons: []string{fmt.Sprintf("reset by %s, with %d values", by, is.Values)},
			}); err != nil {
				return fmt.Errorf("the session was not changed: %w", err)
			}
			return nil
		})
		if !errors.Is(err, gate.ErrStale) {
			return is, err
		}
	}
	return session.State{}, fmt.Errorf("session %q of %s reads too fast to be reset; try again", k.ID, k.Owner.ID)
}
