package transport

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// GroupParam is the wildcard in the pattern of an [http.ServeMux] that says at which
// group a client is served, as in /mcp/{group}. Without it a client is offered all that
// its principal is. A session is of the group at which it was opened.
const GroupParam = "group"

// Offer narrows what clients over HTTP are offered to what is in one of the groups; none
// narrows nothing. It is called before the first request.
func (f *Front) Offer(groups []string) { f.offer = gate.Groups(nil).Within(groups) }

// at returns the groups that clients of a front are offered.
func (f *Front) at(group string) gate.Groups {
	if group == "" {
		return f.offer
	}
	return f.offer.Within([]string{group})
}

// groupMark ends the group in the id of a session. No group and no id that is made here
// has it.
const groupMark = "."

// inGroup returns an id that names the group at which the session is opened.
func inGroup(group, id string) string {
	if group == "" {
		return id
	}
	return group + groupMark + id
}

// withoutGroup returns the id that inGroup was given.
func withoutGroup(id string) string {
	if _, own, found := strings.Cut(id, groupMark); found {
		return own
	}
	return id
}

// openedElsewhere reports whether a session is used elsewhere than where it was opened.
func openedElsewhere(session, group string) bool {
	opened, _, found := strings.Cut(session, groupMark)
	if !found {
		opened = ""
	}
	return session != "" && opened != group
}
