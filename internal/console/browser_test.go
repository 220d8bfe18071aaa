package console

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// hostile are texts that run, load, hide or turn around where they are not shown as texts.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=http://evil.example/x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</pre><svg onload=alert(1)>`,
	`javascript:alert(1)`, "\u202egnp.exe\u202c \u200b\u2066", `<style>*{display:none}</style>`, `{{.Of}} ${alert(1)}`, `<a href="javascript:alert(1)">x</a>`,
	`<form action=http://evil.example/><input name=code autofocus onfocus=alert(1)>`, `<meta http-equiv=refresh content="0;url=http://evil.example/">`,
}

// TestBrowser has a browser show all pages, full of hostile texts: nothing runs or loads, the
// policy of contents has nothing to refuse, and axe finds nothing.
func TestBrowser(t *testing.T) {
	unraced.Long(t)
	toolchain.Need(t, "chromium", "node", toolchain.NodePackages)
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(toolchain.Root(), ".ci", "node", "console.mjs")
	d := open(t, "policy: {paths: [p.rego], timeout: 5s}\naudit: {record: full}\napprovals: {channels: [cli], hold: 1s}\n", "p.rego", `package wasmgate

labels contains "untrusted" if startswith(input.arguments.text, "read")

ask contains input.arguments.text if startswith(input.arguments.text, "ask")

deny contains input.arguments.text if {
	not startswith(input.arguments.text, "read")
	not startswith(input.arguments.text, "ask")
}
`, "grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n")
	all := strings.Join(hostile, "\n")
	for _, text := range []string{"read " + all, all, "ask " + all} {
		args, _ := json.Marshal(map[string]string{"text": text, "algorithm": "sha256"})
		if err := d.call("local__hash", string(args)); (err == nil) != strings.HasPrefix(text, "read") {
			t.Fatal(text, err)
		}
	}
	for _, text := range hostile {
		_ = d.call("x__"+text, "{}") // which there is not
	}
	if page := d.get("/ui/approvals"); !strings.Contains(page, `value="once"`) {
		t.Fatalf("nothing waits:\n%s", page)
	}
	server := httptest.NewServer(d.c)
	defer server.Close()
	paths := []string{"/ui/", "/ui/calls", "/ui/approvals", "/ui/pins", "/ui/servers", "/ui/servers/local", "/ui/skills", "/ui/sessions", "/ui/grants", "/ui/policy", "/ui/policy/trial", "/ui/policy/comparison", "/ui/findings", "/ui/findings/exceptions?rule=html/script&tool=local__hash&server=local", "/ui/findings/exceptions?" + url.Values{"rule": {"secret/jwt"}, "tool": {all}, "at": {all}}.Encode(), "/ui/modules", "/ui/signin"}
	for _, e := range d.records(gate.Done)[:4] {
		paths = append(paths, "/ui/calls/"+e.ID, "/ui/calls/"+e.ID+"/explanation", "/ui/calls/"+e.ID+"/arguments")
	}
	var sessions []sessions.Session
	if err := json.Unmarshal([]byte(d.get("/api/v1/sessions")), &sessions); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		paths = append(paths, "/ui/sessions/"+s.ID)
	}
	c := exec.CommandContext(t.Context(), "node", append([]string{script, d.c.SignIn(server.URL).URL}, paths...)...)
	c.Env = append(os.Environ(), "CHROMIUM="+browser)
	out, err := c.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%.4000s", err, out)
	}
}
