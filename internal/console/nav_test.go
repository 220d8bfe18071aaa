package console

import (
	"net/url"
	"strings"
	"testing"
)

// The operator sees on each page how many questions wait; who has signed in at an issuer does not,
// because a policy may deny them that.
func TestNavigationCounts(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\napprovals: {channels: [cli], hold: 0s}\n", "p.rego", asks, "grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n")
	const badge, title = `<span class="badge">1<span class="heard"> awaiting approval</span></span>`, "<title>(1) "
	if page := d.get("/ui/policy"); strings.Contains(page, badge) || strings.Contains(page, title) {
		t.Errorf("a question is counted that no one asked: %s", page)
	}
	if err := d.call("local__hash", `{"text":"a","algorithm":"sha256"}`); err == nil {
		t.Fatal("no one was asked")
	}
	for _, path := range []string{"/ui/", "/ui/calls", "/ui/policy/trial"} {
		if page := d.get(path); !strings.Contains(page, badge) || !strings.Contains(page, title) {
			t.Errorf("%s does not count the question: %s", path, page)
		}
	}
	if page := d.get("/ui/policy/trial"); !strings.Contains(page, `<a href="/ui/policy" aria-current="page">`) {
		t.Errorf("the page stands under no link: %s", page)
	}
	if page := d.get("/ui/"); strings.Contains(page, "/ui/skills") {
		t.Error("a page of skills is offered where no server has any")
	}
	if page := d.get("/ui/approvals"); !strings.Contains(page, "says about the tool") {
		t.Errorf("the question does not show the description of the tool: %s", page)
	}
	if w := d.ask("POST", "/ui/pause", url.Values{"server": {"local"}}, nil); w.Header().Get("Location") == "" || !strings.Contains(d.get("/ui/servers"), `aria-label="Resume calls of local"`) {
		t.Errorf("the row of the server does not resume: %d", w.Code)
	}
}
