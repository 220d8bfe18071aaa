package host

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// GroupParam is the wildcard in the pattern of an [http.ServeMux] that says at which
// group a client is served, as in /mcp/{group}. Without it a client is offered all that
// its principal is.
const GroupParam = "group"

// fronts are the endpoints below the host's, one for each group that was asked for. Each
// has sessions of its own.
type fronts struct {
	mu sync.Mutex
	by map[string]http.Handler
}

// front returns what serves a group over HTTP, and false if there is no such group.
// "" is all.
func (h *Host) front(group string) (http.Handler, bool) {
	if group != "" && (h.cfg.Group == nil || !h.cfg.Group(group)) {
		return nil, false
	}
	h.fronts.mu.Lock()
	defer h.fronts.mu.Unlock()
	if h.fronts.by == nil {
		h.fronts.by = make(map[string]http.Handler)
	}
	f := h.fronts.by[group]
	if f == nil {
		f = h.newHTTP(group)
		h.fronts.by[group] = f
	}
	return f, true
}

// Offer narrows what clients over HTTP are offered to what is in one of the groups; none
// narrows nothing. It is called before the first request.
func (h *Host) Offer(groups []string) { h.offer = gate.Groups(nil).Within(groups) }

// at returns the groups that clients of a front are offered.
func (h *Host) at(group string) gate.Groups {
	if group == "" {
		return h.offer
	}
	return h.offer.Within([]string{group})
}

// groupMark ends the group in the id of a session. No group and no id that is made here
// has it.
const groupMark = "."

// newSessionID returns an id that names the group at which the session is opened.
func newSessionID(group string) string {
	if group == "" {
		return rand.Text()
	}
	return group + groupMark + rand.Text()
}

// strays reports whether a session is used elsewhere than where it was opened.
func strays(session, group string) bool {
	opened, _, found := strings.Cut(session, groupMark)
	if !found {
		opened = ""
	}
	return session != "" && opened != group
}
