package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/policy/study"
)

const decides = `package wasmgate

deny contains "not this text" if {
	input.arguments.text == "no"
	input.tool.name == "local__hash"
}

deny contains "nothing after what strangers wrote" if "untrusted" in input.session.labels

deny contains "no developer" if "dev" in input.principal.roles
`

// A call is tried as it would be decided, coerced and with the rule's place, and nothing is called.
func TestTrial(t *testing.T) {
	d := open(t, "policy: {packs: [grants], paths: [p.rego]}\nprincipals: {bob: {roles: [dev]}}\n", "p.rego", decides, "grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n")
	for _, tt := range []struct {
		body, effect, file string
		line               int
	}{
		{`{"tool":"local__hash","arguments":{"text":"yes","algorithm":"sha256"}}`, "allow", "grants.rego", 0},
		{`{"tool":"local__hash","arguments":{"text":"no","algorithm":"sha256"}}`, "deny", "p.rego", 3},
		{`{"tool":"local__hash","arguments":{"text":"yes"},"labels":["untrusted"]}`, "deny", "p.rego", 8},
		{`{"tool":"local__hash","arguments":{"text":"yes"},"principal":"bob"}`, "deny", "p.rego", 10},
	} {
		w := d.ask("POST", "/api/v1/policy/trial", tt.body, nil)
		var got struct{ Explanation study.Explanation }
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != http.StatusOK || err != nil || string(got.Explanation.Effect) != tt.effect {
			t.Errorf("%s: %d %s", tt.body, w.Code, w.Body)
			continue
		}
		if by := got.Explanation.Decided; len(by) == 0 || !strings.HasSuffix(by[0].File, tt.file) || tt.line > 0 && by[0].Line != tt.line {
			t.Errorf("%s: decided by %+v, want %s:%d", tt.body, by, tt.file, tt.line)
		}
	}
	for body, want := range map[string]int{
		`{"tool":"local__none"}`: 404, `{"tool":"local__hash","arguments":[]}`: 400, `{"tool":"local__hash","principal":"nosuch"}`: 400, `{"tools":1}`: 400,
	} {
		if w := d.ask("POST", "/api/v1/policy/trial", body, nil); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
	page := d.ask("POST", "/ui/policy/trial", url.Values{"tool": {"local__hash"}, "arguments": {"{\"text\":\"no\",\"algorithm\":\"\u202e\"}"}}, nil).Body.String()
	if !strings.Contains(page, "p.rego:3") || !strings.Contains(page, "not this text") || strings.Contains(page, "\u202e") || !strings.Contains(page, `\u202e`) {
		t.Error(page)
	}
	if calls := d.records(gate.Done); len(calls) > 0 {
		t.Errorf("something was called: %v", calls)
	}
	if tries := d.records("admin"); len(tries) == 0 || !strings.Contains(string(tries[0].Raw), "policy.try") {
		t.Errorf("not recorded: %v", tries)
	}
}

// The page of a call says which rules decide on it, as the command does, and writes it as a test.
func TestExplanation(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego], packs: [grants]}\naudit: {record: full}\n", "p.rego", decides, "grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n")
	if err := d.call("local__hash", `{"text":"no","algorithm":"sha256"}`); err == nil {
		t.Fatal("not denied")
	}
	id := d.records(gate.Done)[0].ID
	if got := d.get("/api/v1/calls/" + id + "/explanation"); !strings.Contains(got, `"line":3`) || !strings.Contains(got, `p.rego"`) {
		t.Error(got)
	}
	for path, want := range map[string][]string{
		"/ui/calls/" + id + "/explanation": {"p.rego:3", "not this text", "A grant cannot help"},
		"/ui/calls/" + id:                  {"wasmgate.decision.effect == &#34;deny&#34; with input as", "Evaluate again with the current policy"},
		"/ui/calls/" + id + "/arguments":   {"&#34;text&#34;:&#34;no&#34;", "That you looked is recorded"},
	} {
		got := d.get(path)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s has no %q:\n%s", path, w, got)
			}
		}
	}
}

// Sealed arguments are shown only to callers that a policy allows to see them, and that is recorded
// first.
func TestKeptArguments(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\naudit: {arguments: {tools: [\"local__*\"]}}\n", "p.rego", `package wasmgate

deny contains "not this one" if {
	input.admin.op == "arguments.read"
	input.admin.object == data.none
}
`)
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		ended <- d.app.Run(ctx, app.Front{Listen: []string{"127.0.0.1:0"}, Ready: func(context.Context, *app.App, string) { once.Do(func() { close(ready) }) }})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal("it ended:", err)
	}
	// Arguments and results are kept in the background, a little later than the calls, and only once
	// the gateway has begun to.
	seen := func() bool {
		if err := d.call("local__hash", `{"text":"canary","algorithm":"sha256"}`); err != nil {
			t.Fatal(err)
		}
		for _, e := range d.records(gate.Done) {
			if w := d.ask("GET", "/api/v1/calls/"+e.ID+"/arguments", nil, nil); w.Code == http.StatusOK && strings.Contains(w.Body.String(), "canary") {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(3 * time.Minute); !seen(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no arguments were kept")
		}
	}
	read := 0
	for _, e := range d.records("admin") {
		if strings.Contains(string(e.Raw), "arguments.read") {
			read++
		}
		if strings.Contains(string(e.Raw), "canary") {
			t.Errorf("the log has what was shown: %s", e.Raw)
		}
	}
	if read == 0 {
		t.Error("that they were read is not recorded")
	}
}

// A policy may keep who sees calls from what they were made with.
func TestArgumentsDenied(t *testing.T) {
	d := open(t, "policy: {paths: [p.rego]}\naudit: {record: full}\n", "p.rego", `package wasmgate

deny contains "not what they say" if input.admin.op == "arguments.read"
`)
	if err := d.call("local__hash", `{"text":"x","algorithm":"sha256"}`); err != nil {
		t.Fatal(err)
	}
	id := d.records(gate.Done)[0].ID
	d.get("/ui/calls/" + id)
	for _, path := range []string{"/ui/calls/" + id + "/arguments", "/api/v1/calls/" + id + "/arguments"} {
		if w := d.ask("GET", path, nil, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// compared waits for the comparison that is being made.
func (d *desk) compared() (got compared) {
	d.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got = compared{}
		if err := json.Unmarshal([]byte(d.get("/api/v1/policy/comparison")), &got); err != nil {
			d.t.Fatal(err)
		}
		if !got.Running {
			return got
		}
		if time.Now().After(end) {
			d.t.Fatalf("the comparison comes to no end: %+v", got)
		}
	}
}

// Other grants and labels are put before recorded calls, as texts of their files; a form that has
// them as they are changes nothing.
func TestComparisonOfGrantsAndLabels(t *testing.T) {
	d := open(t, "policy: {packs: [grants], paths: [p.rego], data: {labels: labels.yaml}}\naudit: {record: full}\n",
		"p.rego", `package wasmgate

deny contains "it destroys" if "destructive" in input.tool.labels.effect

deny contains "nobody grants it" if {
	input.action == "tools/call"
	not wasmgate.granted(data.grants, "tools", input.tool.name, input.principal.id, input.principal.roles)
}
`,
		"grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n", "labels.yaml", "local__hash: {effect: [read]}\n")
	if err := d.call("local__hash", `{"text":"a","algorithm":"sha256"}`); err != nil {
		t.Fatal(err)
	}
	page := d.get("/ui/policy/comparison")
	if !strings.Contains(page, "local__hash: {effect: [read]}") || !strings.Contains(page, "tools: [&#34;local__*&#34;]") {
		t.Errorf("the form is\n%s", page)
	}
	for body, want := range map[string]struct {
		of      string
		refused int
	}{
		`{}`: {"", 0}, `{"grants":"- {to: [local], tools: [\"mail__*\"]}"}`: {"grants", 1}, `{"grants":""}`: {"grants", 1},
		`{"labels":"local__hash: {effect: [destructive]}"}`: {"labels", 1}, `{"labels":"","grants":"- {to: [\"*\"], tools: [\"*\"]}"}`: {"grants labels", 0},
	} {
		if w := d.ask("POST", "/api/v1/policy/comparison", body, nil); w.Code != http.StatusOK {
			t.Fatal(body, w.Code, w.Body)
		}
		if got := d.compared(); got.Problem != "" || got.Calls != 1 || got.Unknown != 0 || got.Stricter != want.refused || strings.Join(got.Of, " ") != want.of {
			t.Errorf("%s: %+v", body, got)
		}
	}
	form := url.Values{"file": {"x.rego"}, "pack": {"grants"}, "grants": {"- {to: [local], tools: [\"local__*\"]}\r\n"}, "labels": {"local__hash: {effect: [destructive]}\r\n"}}
	if w := d.ask("POST", "/ui/policy/comparison", form, nil); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	if got := d.compared(); got.Stricter != 1 || strings.Join(got.Of, " ") != "packs: grants labels" {
		t.Errorf("%+v", got)
	}
	for _, body := range []string{`{"grants":"- {tools: [x]}"}`, `{"labels":"x: {effect: [sings]}"}`} {
		if w := d.ask("POST", "/api/v1/policy/comparison", body, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// Another policy is evaluated on the calls of last week: each difference has its rule, one comparison
// is made at a time, and the files stay as they are.
func TestComparison(t *testing.T) {
	d := open(t, "policy: {packs: [grants], paths: [p.rego]}\naudit: {record: full}\n", "p.rego", decides, "grants.yaml", "- {to: [local], tools: [\"local__*\"]}\n")
	for text, denied := range map[string]bool{"no": true, "yes": false, "maybe": false} {
		if err := d.call("local__hash", `{"text":"`+text+`","algorithm":"sha256"}`); (err != nil) != denied {
			t.Fatal(text, err)
		}
	}
	if w := d.ask("GET", "/api/v1/policy/comparison", nil, nil); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
	name := ""
	for _, line := range strings.Split(d.get("/ui/policy/comparison"), "<option") {
		if strings.Contains(line, "p.rego") {
			name = line[strings.Index(line, ">")+1 : strings.Index(line, "</option>")]
		}
	}
	if page := d.get("/ui/policy/comparison?file=" + url.QueryEscape(name)); name == "" || !strings.Contains(page, "not this text") {
		t.Fatalf("file %q: %s", name, page)
	}
	other := strings.Replace(decides, `"no"`, `"maybe"`, 1)
	form := url.Values{"file": {name}, "text": {strings.ReplaceAll(other, "\n", "\r\n")}, "pack": {"grants"}, "since": {"24h"}}
	if w := d.ask("POST", "/ui/policy/comparison", form, nil); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	got := d.compared()
	if got.Running || got.Problem != "" || got.Calls != 3 || got.Unknown != 0 || got.Looser != 1 || got.Stricter != 1 || len(got.Differences) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, x := range got.Differences {
		if len(x.Rules) == 0 || x.Effect == gate.Deny && (x.Rules[0].Line != 3 || !strings.HasSuffix(x.Rules[0].File, "p.rego")) {
			t.Errorf("%+v", x)
		}
	}
	if page := d.get("/ui/policy/comparison"); !strings.Contains(page, "1 would pass now, 1 would be refused now") || !strings.Contains(page, "p.rego:3") {
		t.Error(page)
	}
	if err := d.call("local__hash", `{"text":"maybe","algorithm":"sha256"}`); err != nil {
		t.Error("the changed policy holds:", err)
	}
	for body, want := range map[string]int{`{"since":"x"}`: 400, `{"files":{"../x.rego":""}}`: 400, `{"files":{"x.rego":"package"}}`: 400, `{"packs":["none"]}`: 400} {
		if w := d.ask("POST", "/api/v1/policy/comparison", body, nil); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
	if err := d.c.comparisons.comparing.begin(&compared{Running: true}); err != nil {
		t.Fatal(err)
	}
	if w := d.ask("POST", "/api/v1/policy/comparison", `{}`, nil); w.Code != http.StatusConflict {
		t.Errorf("two at once: %d %s", w.Code, w.Body)
	}
}
