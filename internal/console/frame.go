package console

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/console/pages"
	"github.com/wasmgate/wasmgate/internal/console/signin"
)

// A frame shows pages within the navigation, and what was done before.
type frame struct {
	overview *overview.Overview
	sealing  []byte // key of [frame.seal]
}

func (f *frame) show(w http.ResponseWriter, r *http.Request, name, title string, of any) error {
	done := r.FormValue("done")
	if !hmac.Equal([]byte(r.FormValue("seal")), []byte(f.seal(r, done))) {
		done = "" // a link of another's making
	}
	at := cmp.Or(under[name], name)
	pages.Write(w, http.StatusOK, name, pages.View{Title: title, At: at, Nav: f.navigation(r, at), Done: done, Of: of})
	return nil
}

// done goes back to a page that says what was done, so that loading it again does nothing.
func (f *frame) done(w http.ResponseWriter, r *http.Request, to, what string) error {
	http.Redirect(w, r, to+"?"+url.Values{"done": {what}, "seal": {f.seal(r, what)}}.Encode(), http.StatusSeeOther)
	return nil
}

// seal proves to the browser of a request that the console has said a text to it.
func (f *frame) seal(r *http.Request, text string) string {
	h := hmac.New(sha256.New, f.sealing)
	h.Write([]byte(signin.Cookie(r) + "\x00" + text))
	return hex.EncodeToString(h.Sum(nil))
}

func (f *frame) status() *overview.Status {
	s := f.overview.Status()
	s.Running = true
	return s
}

// under is the link under which pages without one of their own stand.
var under = map[string]string{
	"call": "calls", "explanation": "calls", "arguments": "calls", "session": "sessions", "server": "servers",
	"trial": "policy", "comparison": "policy", "exceptions": "findings",
}

// navigation is what who sends a request can go to. Only the operator sees counts: others may be
// denied what they are of. Pages of parts that the gateway does not use are left out.
func (f *frame) navigation(r *http.Request, at string) []pages.Group {
	s, asks := f.status(), 0
	var broken, quarantined int
	if by(r.Context()).operator {
		asks, broken, quarantined = s.Approvals, len(s.Faulted()), quarantinedIn(s)
	}
	tools := []pages.Link{{At: "servers", Path: "/ui/servers", Label: "Servers", Count: broken, Waits: "faulted"}}
	if at == "skills" || slices.ContainsFunc(s.Servers, func(one status.Server) bool { return one.Skills > 0 }) {
		tools = append(tools, pages.Link{At: "skills", Path: "/ui/skills", Label: "Skills"})
	}
	if at == "modules" || len(s.Modules) > 0 {
		tools = append(tools, pages.Link{At: "modules", Path: "/ui/modules", Label: "Modules"})
	}
	activity := []pages.Link{
		{At: "overview", Path: "/ui/", Label: "Overview"},
		{At: "calls", Path: "/ui/calls", Label: "Calls"},
		{At: "sessions", Path: "/ui/sessions", Label: "Sessions"},
		{At: "findings", Path: "/ui/findings", Label: "Findings"},
	}
	if len(s.Nodes) > 0 {
		activity = append(activity, pages.Link{At: "nodes", Path: "/ui/nodes", Label: "Gateways"})
	}
	return []pages.Group{
		{Name: "Activity", Links: activity},
		{Name: "Decisions", Links: []pages.Link{
			{At: "approvals", Path: "/ui/approvals", Label: "Approvals", Count: asks, Waits: "awaiting approval"},
			{At: "pins", Path: "/ui/pins", Label: "Pins", Count: quarantined, Waits: "quarantined"},
			{At: "grants", Path: "/ui/grants", Label: "Grants"},
			{At: "policy", Path: "/ui/policy", Label: "Policy"},
		}},
		{Name: "Tools", Links: tools},
	}
}

// quarantinedIn counts the definitions that wait for an approval.
func quarantinedIn(s *overview.Status) (n int) {
	for _, one := range s.Servers {
		n += len(one.Quarantined)
	}
	return n
}
