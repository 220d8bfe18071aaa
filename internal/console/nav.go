package console

import (
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/overview"
)

// A group is a part of the navigation with a heading.
type group struct {
	Name  string
	Links []link
}

// A link leads to a page, with how much waits for a person there; 0 if nothing does.
type link struct {
	At, Path, Label string
	Count           int
	Waits           string // what is counted, for those who hear the page
}

// under is the link under which pages without one of their own stand.
var under = map[string]string{
	"call": "calls", "explanation": "calls", "arguments": "calls", "session": "sessions", "server": "servers",
	"trial": "policy", "comparison": "policy", "exceptions": "findings",
}

// navigation is what who sends a request can go to. Only the operator sees counts: others may be
// denied what they are of. Pages of parts that the gateway does not use are left out.
func (c *Console) navigation(r *http.Request, at string) []group {
	s, asks := c.status(), 0
	var broken, quarantined int
	if by(r.Context()).operator {
		asks, broken, quarantined = s.Approvals, len(s.Faulted()), quarantinedIn(s)
	}
	tools := []link{{At: "servers", Path: "/ui/servers", Label: "Servers", Count: broken, Waits: "faulted"}}
	if at == "skills" || slices.ContainsFunc(s.Servers, func(one status.Server) bool { return one.Skills > 0 }) {
		tools = append(tools, link{At: "skills", Path: "/ui/skills", Label: "Skills"})
	}
	if at == "modules" || len(s.Modules) > 0 {
		tools = append(tools, link{At: "modules", Path: "/ui/modules", Label: "Modules"})
	}
	activity := []link{
		{At: "overview", Path: "/ui/", Label: "Overview"},
		{At: "calls", Path: "/ui/calls", Label: "Calls"},
		{At: "sessions", Path: "/ui/sessions", Label: "Sessions"},
		{At: "findings", Path: "/ui/findings", Label: "Findings"},
	}
	if len(s.Nodes) > 0 {
		activity = append(activity, link{At: "nodes", Path: "/ui/nodes", Label: "Gateways"})
	}
	return []group{
		{"Activity", activity},
		{"Decisions", []link{
			{At: "approvals", Path: "/ui/approvals", Label: "Approvals", Count: asks, Waits: "awaiting approval"},
			{At: "pins", Path: "/ui/pins", Label: "Pins", Count: quarantined, Waits: "quarantined"},
			{At: "grants", Path: "/ui/grants", Label: "Grants"},
			{At: "policy", Path: "/ui/policy", Label: "Policy"},
		}},
		{"Tools", tools},
	}
}

// quarantinedIn counts the definitions that wait for an approval.
func quarantinedIn(s *overview.Status) (n int) {
	for _, one := range s.Servers {
		n += len(one.Quarantined)
	}
	return n
}
