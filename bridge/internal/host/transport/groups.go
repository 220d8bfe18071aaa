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

// groupMark ends the group in the id of a session, and nodeMark the gateway where there are several.
// No group and no id that is made here has either.
const (
	groupMark = "."
	nodeMark  = "~"
)

// sessionID returns an id that names the group at which the session is opened, and the gateway that
// has it.
func (f *Front) sessionID(group, id string) string {
	if f.peers != nil {
		id = f.peers.Node() + nodeMark + id
	}
	if group == "" {
		return id
	}
	return group + groupMark + id
}

// sealedIn returns the id that sessionID was given.
func sealedIn(id string) string {
	_, id = cut(id, groupMark)
	_, id = cut(id, nodeMark)
	return id
}

// nodeOf returns the gateway that an id of a session names; "" if it names none.
func nodeOf(id string) string {
	_, id = cut(id, groupMark)
	node, _ := cut(id, nodeMark)
	return node
}

// cut returns what is before a mark, "" without one, and the rest.
func cut(id, mark string) (before, rest string) {
	if before, rest, found := strings.Cut(id, mark); found {
		return before, rest
	}
	return "", id
}

// isHere reports whether a session of an id that names a gateway can be at this one.
func (f *Front) isHere(node string) bool {
	return node == "" || f.peers != nil && node == f.peers.Node()
}

// openedElsewhere reports whether a session is used elsewhere than where it was opened.
func openedElsewhere(session, group string) bool {
	opened, _ := cut(session, groupMark)
	return session != "" && opened != group
}
