// Package sessions shows what sessions have read, and resets them.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/app/operation"
)

// The operations of sessions.
var (
	All   = operation.New[operation.None, []Session]("sessions")
	Reset = operation.New[ResetRequest, Session]("reset")
)

// A ResetRequest names a session that is reset, as it was seen.
type ResetRequest struct {
	Session Session `json:"session"`
}

// Gateway has the sessions of one gateway.
type Gateway interface {
	List() []session.State
	// Refresh takes over what other gateways have kept.
	Refresh(ctx context.Context, reset bool) error
	// MissingPlaces says which labelled places no result has had.
	MissingPlaces() []string
	Reset(ctx context.Context, k gate.SessionKey, seen uint64, by string) (session.State, error)
}

// Sessions are those of one gateway.
type Sessions struct{ Gateway Gateway }

// Operations adds those of sessions to a table.
func (s Sessions) Operations(t operation.Table) {
	operation.AddPlain(t, All, s.List)
	Reset.Add(t, func(ctx context.Context, r ResetRequest) (Session, error) {
		return s.Reset(ctx, r.Session, "the local operator")
	})
}

// A Session is what commands show of one.
type Session struct {
	// ID names the session to commands: the principal, and / with the MCP session if
	// it is one's.
	ID        string `json:"id"`
	Tenant    string `json:"tenant,omitempty"`
	Principal string `json:"principal"`
	Session   string `json:"session,omitempty"` // as in the audit log
	// Labels are what it has read. Everything says that it counts as having read
	// all there is, because not all of its state could be kept.
	Labels     []string `json:"labels"`
	Everything bool     `json:"everything,omitempty"`
	// Raised are the IDs of the calls with which the labels came, by label, and by ""
	// that with which Everything did; "" is a call that is not known any more.
	Raised  map[string]string `json:"raised,omitempty"`
	Version uint64            `json:"version"`
	Values  int               `json:"values"` // whose origin is known
	Began   time.Time         `json:"began"`  // when it was kept first, by this process
	Used    time.Time         `json:"used"`
	// Missing are the labelled places that no result of their tools has had, in any session.
	Missing []string `json:"missing,omitempty"`
}

func newSession(s session.State) Session {
	id := s.Key.Owner.ID
	if s.Key.ID != "" {
		id += "/" + s.Key.ID
	}
	if s.Key.Tenant != "" {
		id = s.Key.Tenant + "/" + id
	}
	return Session{
		ID: id, Tenant: s.Key.Tenant, Principal: s.Key.Owner.ID, Session: s.Key.ID, Labels: append([]string{}, s.Labels...), Everything: s.Top,
		Raised: s.Raised, Version: s.Version, Values: s.Values, Began: s.Began.UTC(), Used: s.Used.UTC(),
	}
}

// Key is what the gate calls it.
func (s Session) Key() gate.SessionKey {
	return gate.SessionKey{Owner: gate.Owner{Tenant: s.Tenant, ID: s.Principal}, ID: s.Session}
}

// A Error says that a command named no session, or several.
type Error struct {
	ID    string
	Among []string // IDs that it could mean; empty if there is none
}

func (e *Error) Error() string {
	if len(e.Among) == 0 {
		return fmt.Sprintf("no session %q is kept: there is none, or it has read nothing; see `wasmgate sessions list`", e.ID)
	}
	return fmt.Sprintf("session %q could be %s", e.ID, strings.Join(e.Among, " or "))
}

// List returns the sessions that are kept, the last used one first.
func (s Sessions) List(ctx context.Context) ([]Session, error) {
	if err := s.Gateway.Refresh(ctx, false); err != nil {
		return nil, err
	}
	list := []Session{}
	for _, kept := range s.Gateway.List() {
		one := newSession(kept)
		one.Missing = s.Gateway.MissingPlaces()
		list = append(list, one)
	}
	return list, nil
}

// Find returns the session that id names: by its ID, or by the name that the
// audit log has of it.
func Find(list []Session, id string) (Session, error) {
	var found []Session
	for _, s := range list {
		if s.ID == id || s.Session != "" && s.Session == id {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &Error{ID: id}
	for _, s := range found {
		e.Among = append(e.Among, s.ID)
	}
	return Session{}, e
}

// Reset takes from a session all that it has read, and returns what that
// was. The audit log keeps it. The error is [gate.ErrStale] if the session has another version
// by now than this one; without one any is taken. By is who does it.
func (s Sessions) Reset(ctx context.Context, one Session, by string) (Session, error) {
	was, err := s.Gateway.Reset(ctx, one.Key(), one.Version, by)
	if errors.Is(err, session.ErrUnknown) {
		return Session{}, &Error{ID: one.ID}
	}
	if err != nil {
		return Session{}, err
	}
	return newSession(was), nil
}
