package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/session"
)

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

// A SessionError says that a command named no session, or several.
type SessionError struct {
	ID    string
	Among []string // IDs that it could mean; empty if there is none
}

func (e *SessionError) Error() string {
	if len(e.Among) == 0 {
		return fmt.Sprintf("no session %q is kept: there is none, or it has read nothing; see `wasmgate sessions list`", e.ID)
	}
	return fmt.Sprintf("session %q could be %s", e.ID, strings.Join(e.Among, " or "))
}

// Sessions returns the sessions that are kept, the last used one first.
func (a *App) Sessions(ctx context.Context) ([]Session, error) {
	if err := a.gateway.Operator().RefreshSessions(ctx, false); err != nil {
		return nil, err
	}
	list := []Session{}
	for _, s := range a.gateway.Operator().Sessions() {
		one := newSession(s)
		one.Missing = a.gateway.Operator().MissingPlaces()
		list = append(list, one)
	}
	return list, nil
}

// FindSession returns the session that id names: by its ID, or by the name that the
// audit log has of it.
func FindSession(list []Session, id string) (Session, error) {
	var found []Session
	for _, s := range list {
		if s.ID == id || s.Session != "" && s.Session == id {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &SessionError{ID: id}
	for _, s := range found {
		e.Among = append(e.Among, s.ID)
	}
	return Session{}, e
}

type resetRequest struct {
	Session Session `json:"session"`
}

// ResetSession takes from a session all that it has read, and returns what that
// was. The audit log keeps it. The error is [gate.ErrStale] if the session has another version
// by now than s; without one any is taken.
func (a *App) ResetSession(ctx context.Context, s Session) (Session, error) {
	return a.ResetSessionBy(ctx, s, "the local operator")
}

// ResetSessionBy is ResetSession, and who does it.
func (a *App) ResetSessionBy(ctx context.Context, s Session, by string) (Session, error) {
	was, err := a.gateway.Operator().ResetSession(ctx, s.Key(), s.Version, by)
	if errors.Is(err, session.ErrUnknown) {
		return Session{}, &SessionError{ID: s.ID}
	}
	if err != nil {
		return Session{}, err
	}
	return newSession(was), nil
}

// Sessions returns what [App.Sessions] does.
func (r *Remote) Sessions(ctx context.Context) ([]Session, error) {
	var list []Session
	err := r.call(ctx, methodSessions, nil, &list)
	return list, err
}

// Destinations returns what [App.Destinations] does.
func (r *Remote) Destinations(ctx context.Context) ([]gate.Destination, error) {
	var all []gate.Destination
	err := r.call(ctx, methodDestinations, nil, &all)
	return all, err
}

// RevokeDestinations does what [App.RevokeDestinations] does.
func (r *Remote) RevokeDestinations(ctx context.Context, id string) ([]gate.Destination, error) {
	var gone []gate.Destination
	err := r.call(ctx, methodRevoke, revokeRequest{id}, &gone)
	return gone, err
}

// ResetSession does what [App.ResetSession] does.
func (r *Remote) ResetSession(ctx context.Context, s Session) (Session, error) {
	var was Session
	err := r.call(ctx, methodReset, resetRequest{s}, &was)
	return was, err
}
