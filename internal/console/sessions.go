package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/console/pages"
)

// sessionHandlers serve the sessions of clients, with what each has read.
type sessionHandlers struct {
	*frame
	log      *auditLog
	sessions sessions.Sessions
}

func (h *sessionHandlers) getSessions(w http.ResponseWriter, r *http.Request) error {
	all, err := h.sessions.List(r.Context())
	return answer(w, all, err)
}

// session returns a session and its calls, the oldest first.
func (h *sessionHandlers) session(r *http.Request) (sessions.Session, []audit.Entry, error) {
	all, err := h.sessions.List(r.Context())
	if err != nil {
		return sessions.Session{}, nil, err
	}
	s, err := sessions.Find(all, r.PathValue("id"))
	if err != nil {
		return sessions.Session{}, nil, err
	}
	since, err := h.since(r.Context(), s)
	if err != nil {
		return sessions.Session{}, nil, err
	}
	calls, _, err := h.log.find(r.Context(), index.Query{Event: gate.Done, Session: s.Session, Principal: s.Principal, Since: since, Last: mostCalls})
	calls = slices.DeleteFunc(calls, func(e audit.Entry) bool { return e.Tenant != s.Tenant })
	slices.Reverse(calls)
	return s, calls, err
}

// since is when a session began, or the first of the calls with which its labels came: those of
// one that was kept over a restart came before.
func (h *sessionHandlers) since(ctx context.Context, s sessions.Session) (time.Time, error) {
	since := s.Began.Add(-time.Second)
	for _, id := range s.Raised {
		raised, _, err := h.log.find(ctx, index.Query{Event: gate.Done, Call: id, Session: s.Session, Principal: s.Principal})
		if err != nil {
			return since, err
		}
		for _, e := range raised {
			if e.ID == id && e.Time.Before(since) {
				since = e.Time
			}
		}
	}
	return since, nil
}

func (h *sessionHandlers) getFlow(w http.ResponseWriter, r *http.Request) error {
	s, calls, err := h.session(r)
	return answer(w, map[string]any{"session": s, "flow": flow.Of(calls)}, err)
}

// reset takes from a session what it has read, if it is still the version that was seen.
func (h *sessionHandlers) reset(ctx context.Context, id string, version uint64) error {
	all, err := h.sessions.List(ctx)
	if err != nil {
		return err
	}
	s, err := sessions.Find(all, id)
	if err != nil {
		return err
	}
	if s.Version != version {
		return &conflict{"session " + id}
	}
	if _, err = h.sessions.Reset(ctx, s, named(ctx)); errors.Is(err, gate.ErrStale) { // it has read something meanwhile
		return &conflict{"session " + id}
	}
	return err
}

func (h *sessionHandlers) postReset(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Session string `json:"session"`
		Version uint64 `json:"version"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	if err := h.reset(r.Context(), asked.Session, asked.Version); err != nil {
		return err
	}
	return answer(w, map[string]any{"session": asked.Session}, nil)
}

func (h *sessionHandlers) sessionsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := h.sessions.List(r.Context())
	if err != nil {
		return err
	}
	return h.show(w, r, "sessions", "Sessions", all)
}

func (h *sessionHandlers) sessionPage(w http.ResponseWriter, r *http.Request) error {
	s, calls, err := h.session(r)
	if err != nil {
		return err
	}
	f := flow.Of(calls)
	return h.show(w, r, "session", "Session", map[string]any{"Session": s, "Flow": f, "Picture": pages.Picture(f)})
}

func (h *sessionHandlers) resetPage(w http.ResponseWriter, r *http.Request) error {
	version, err := strconv.ParseUint(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return &misused{"the form has no version of the session"}
	}
	id := r.PostFormValue("session")
	if err := h.reset(r.Context(), id, version); err != nil {
		return err
	}
	return h.done(w, r, "/ui/sessions", "session "+id+" has no labels now")
}
