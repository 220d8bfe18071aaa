package console

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/except"
)

// An exception from what was found is shown, decided on, recorded and written, against the file
// that was seen; what only a person can write is shown alone.
func TestExceptions(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\n# the last line\n", "p.rego", `package wasmgate

allow contains "all" if input.action == "tools/call"

deny contains "rules report nowhere" if startswith(input.admin.object, "sanitize: {secrets: {report")
`)
	file := filepath.Join(d.dir, "wasmgate.yaml")
	text := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := text()
	secret := "ghp_" + (rand.Text() + rand.Text())[:36]
	for range 2 {
		if err := d.call("local__hash", `{"text":"`+secret+`","algorithm":"sha256"}`); err != nil {
			t.Fatal(err)
		}
	}
	var all []except.Finding
	if err := json.Unmarshal([]byte(d.get("/api/v1/findings")), &all); err != nil || len(all) != 1 || all[0].Rule != "secret/github-pat" || all[0].At != "arguments:/text" || all[0].Server != "local" || all[0].Calls != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	if page := d.get("/ui/findings"); !strings.Contains(page, "arguments:/text") || !strings.Contains(page, `value="`+all[0].Fingerprint+`"`) {
		t.Errorf("the findings are\n%s", page)
	}
	of := url.Values{"rule": {all[0].Rule}, "tool": {all[0].Tool}, "server": {all[0].Server}, "at": {all[0].At}, "fingerprint": {all[0].Fingerprint}}
	seen := func() (x except.Offers) {
		t.Helper()
		if err := json.Unmarshal([]byte(d.get("/api/v1/findings/exceptions?"+of.Encode())), &x); err != nil || len(x.All) != 3 || x.All[0].Name != "one" || x.All[1].Name != "tool" {
			t.Fatalf("%+v %v", x, err)
		}
		return x
	}
	x := seen()
	if page := d.get("/ui/findings/exceptions?" + of.Encode()); strings.Count(page, "<button class=\"danger\">Write it") != 3 || !strings.Contains(page, "{arguments: allow}") {
		t.Errorf("the exceptions are\n%s", page)
	}
	post := func(name, seen string) int {
		form := url.Values{"name": {name}, "seen": {seen}}
		for k, v := range of {
			form[k] = v
		}
		return d.ask("POST", "/ui/findings/exceptions", form, nil).Code
	}
	for what, got := range map[string][2]int{
		"denied": {post("rule", x.Seen), http.StatusForbidden}, "not seen": {post("one", strings.Repeat("0", 64)), http.StatusConflict}, "not there": {post("server", x.Seen), http.StatusNotFound},
	} {
		if got[0] != got[1] || text() != before {
			t.Errorf("%s: %d, the file is\n%s", what, got[0], text())
		}
	}
	if got := post("one", x.Seen); got != http.StatusSeeOther || text() != before+x.All[0].Line+"\n" {
		t.Fatalf("%d, the file is\n%s", got, text())
	}
	if c, err := config.Load(file, config.Options{}); err != nil || len(c.Sanitize.Secrets.Allow) != 1 || c.Sanitize.Secrets.Allow[0].Fingerprint != all[0].Fingerprint {
		t.Errorf("%v, the file is\n%s", err, text())
	}
	recorded := d.records(audit.Admin)
	if last := recorded[len(recorded)-1]; last.Code != "ok" || !strings.Contains(string(last.Raw), "exceptions.write") || !strings.Contains(string(last.Raw), all[0].Fingerprint) {
		t.Errorf("recorded %s", last.Raw)
	}
	body, err := json.Marshal(map[string]string{"rule": all[0].Rule, "tool": all[0].Tool, "at": all[0].At, "name": "tool", "seen": seen().Seen})
	if err != nil {
		t.Fatal(err)
	}
	if w := d.ask("POST", "/api/v1/findings/exceptions", string(body), nil); w.Code != http.StatusOK || !strings.Contains(text(), `tools: {"local__hash": {arguments: allow}}`) {
		t.Errorf("%d %s, the file is\n%s", w.Code, w.Body, text())
	}
	marked := before + "sanitize: &here {profile: text}\n"
	if err := os.WriteFile(file, []byte(marked), 0o600); err != nil {
		t.Fatal(err)
	}
	if page := d.get("/ui/findings/exceptions?" + of.Encode()); strings.Contains(page, "Write it") || !strings.Contains(page, "anchors and aliases") || !strings.Contains(page, "sanitize: {secrets: {tools:") {
		t.Errorf("what a person has to write is\n%s", page)
	}
	if got := post("tool", seen().Seen); got != http.StatusConflict || text() != marked {
		t.Errorf("%d, the file is\n%s", got, text())
	}
}
