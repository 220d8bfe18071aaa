package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/policy"
)

var (
	noPacks = []string{}
	alice   = &gate.Principal{Owner: gate.Owner{ID: "alice"}, Auth: "local", Roles: []string{"dev"}}
	someone = []policy.Grant{{To: []string{"alice"}, Tools: []string{"files__read_*"}}}
)

// query is a call of a tool by alice.
func query(tool, args string) gate.Query {
	return gate.Query{
		Call: &gate.Call{Action: gate.CallTool, Name: tool, Args: gate.MustDoc(args), Who: alice},
		Tool: newTool(tool),
	}
}

func TestAuthorize(t *testing.T) {
	const anything = `allow contains "anything goes" if true
`
	tests := map[string]struct {
		files fstest.MapFS
		packs []string
		tool  string
		args  string
		want  gate.Decision
	}{
		"a grant allows": {
			tool: "files__read_text",
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"files__read_* is granted to alice"}},
		},
		"what nothing allows is denied, hidden, and the operator learns the remedy": {
			tool: "files__write",
			want: gate.Decision{
				Effect: gate.Deny, Reasons: []string{"no policy allows files__write for alice"},
				Hidden: true, Remedy: "wasmgate grant files__write --to alice",
			},
		},
		"where a rule allows other arguments a grant is not a remedy": {
			files: user(`allow contains "there" if input.arguments.path == "/srv"`), tool: "files__write", args: `{"path":"/etc"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows files__write for alice"}},
		},
		"without the pack a grant is not a remedy": {
			packs: noPacks, tool: "files__read_text",
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows files__read_text for alice"}, Hidden: true},
		},
		"a user's rule allows beside the pack": {
			files: user(anything), tool: "files__write",
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"anything goes"}},
		},
		"all reasons are given, sorted": {
			files: user(anything), tool: "files__read_text",
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"anything goes", "files__read_* is granted to alice"}},
		},
		"ask beats allow": {
			files: user(anything + `ask contains "writing is asked" if input.tool.local_name == "write"`), tool: "files__write",
			want: gate.Decision{Effect: gate.Ask, Reasons: []string{"writing is asked"}},
		},
		"ask allows nothing": {
			files: user(`ask contains "x" if true`), tool: "files__write",
			want: gate.Decision{
				Effect: gate.Deny, Reasons: []string{"no policy allows files__write for alice"},
				Hidden: true, Remedy: "wasmgate grant files__write --to alice",
			},
		},
		"deny beats ask and allow": {
			files: user(anything + `
ask contains "x" if true
deny contains "not below /srv" if not startswith(input.arguments.path, "/srv/")`),
			tool: "files__write", args: `{"path":"/etc/passwd"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"not below /srv"}},
		},
		"a condition that a deny rule demands is not met by an argument that is missing": {
			files: user(anything + `deny contains "not below /srv" if not startswith(input.arguments.path, "/srv/")`),
			tool:  "files__write",
			want:  gate.Decision{Effect: gate.Deny, Reasons: []string{"not below /srv"}},
		},
		"a number keeps every digit": {
			packs: noPacks, files: user(`allow contains "exact" if input.arguments.n == 12345678901234567891`),
			tool: "a__b", args: `{"n":12345678901234567892}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows a__b for alice"}},
		},
		"a tool that is denied whatever its arguments are is hidden": {
			files: user(anything + `deny contains "never" if input.tool.server == "pay"`), tool: "pay__transfer",
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"never"}, Hidden: true},
		},
		"obligations and labels come with the decision, the strictest obligation of a type": {
			files: user(anything + `
obligations contains {"type": "timeout", "after": "5s"} if true
obligations contains {"type": "timeout", "after": "500ms"} if true
obligations contains {"type": "max_result", "bytes": 4096} if true
obligations contains {"type": "max_result", "bytes": 8192} if true
obligations contains {"type": "sanitize", "profile": "html"} if true
obligations contains {"type": "sanitize", "profile": "strict"} if true
labels contains "untrusted" if true
labels contains "private" if true`),
			tool: "a__b",
			want: gate.Decision{
				Effect: gate.Allow, Reasons: []string{"anything goes"},
				Obligations: []obligation.Obligation{obligation.Timeout{After: 500 * time.Millisecond}, obligation.MaxResult{Bytes: 4096}, obligation.Profile{Name: "strict"}},
				Labels:      gate.Labels{"private", "untrusted"},
			},
		},
		"a helper package has its effect": {
			files: fstest.MapFS{
				"lib/paths.rego": {Data: []byte("package paths\n\nbelow(p, root) if startswith(p, concat(\"\", [root, \"/\"]))")},
				"main.rego":      {Data: []byte("package wasmgate\n\nimport data.paths\n\nallow contains \"below\" if paths.below(input.arguments.path, \"/srv\")")},
				"notes.txt":      {Data: []byte("not read")},
				"main_test.rego": {Data: []byte("package wasmgate\n\nallow contains \"from a test file\" if true")},
			},
			tool: "a__b", args: `{"path":"/srv/x"}`,
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"below"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.args == "" {
				tt.args = "{}"
			}
			e := load(t, tt.files, policy.Options{Packs: tt.packs, Grants: someone})
			tt.want.Revision = e.Revision()
			got, err := e.Authorize(t.Context(), query(tt.tool, tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Labels) == 0 {
				got.Labels = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInput holds what policies see against the documented shape.
func TestInput(t *testing.T) {
	e := load(t, user(`deny contains json.marshal(input) if true`), policy.Options{})
	who := &gate.Principal{
		Owner: gate.Owner{ID: "alice"}, Auth: "local", Client: "verified",
		Roles: []string{"dev", "ops"}, Claims: gate.MustDoc(`{"sub":"a"}`),
	}
	tool := newTool("files__write_file")
	tool.Local = "write.file"
	tool.Annotations = gate.MustDoc(`{"readOnlyHint":false}`)
	tool.Sandboxed, tool.Capabilities = true, gate.MustDoc(`{"kv":true}`)
	tool.Findings = []string{"hidden text"}
	d, err := e.Authorize(t.Context(), gate.Query{
		Call: &gate.Call{
			Action: gate.CallTool, Who: who, Args: gate.MustDoc(`{"a":[1.50,true,null,{"b":"é"}],"n":12345678901234567890}`),
			Session: gate.SessionKey{ID: "s1"}, ClientName: "claimed", ClientVersion: "1",
		},
		Tool:    tool,
		Session: gate.Session{Labels: gate.NewLabels("untrusted")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"action":"tools/call",
 "principal":{"id":"alice","tenant":"","auth":"local","roles":["dev","ops"],"claims":{"sub":"a"},"client":{"id":"verified","name":"claimed","version":"1"}},
 "session":{"id":"s1","labels":["untrusted"]},
 "tool":{"name":"files__write_file","server":"files","local_name":"write.file","annotations":{"readOnlyHint":false},"labels":{},"groups":[],
         "sandboxed":true,"capabilities":{"kv":true},"origin":{},"relay":false,"pinned":false,"findings":["hidden text"]},
 "arguments":{"a":[1.50,true,null,{"b":"é"}],"n":12345678901234567890},
 "provenance":{"/a/0":[],"/a/1":[],"/a/2":[],"/a/3/b":[],"/n":[]},
 "carried":{},
 "values":{"/a/0":{"met":[],"kind":"","listed":false,"own":false,"copied":false,"private":false},"/a/1":{"met":[],"kind":"","listed":false,"own":false,"copied":false,"private":false},"/a/2":{"met":[],"kind":"","listed":false,"own":false,"copied":false,"private":false},"/a/3/b":{"met":[],"kind":"","listed":false,"own":false,"copied":false,"private":false},"/n":{"met":[],"kind":"","listed":false,"own":false,"copied":false,"private":false}}}`
	if diff := cmp.Diff(gate.MustDoc(want).Value(), gate.MustDoc(d.Reasons[0]).Value()); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestRemedyIsOneShellCommand(t *testing.T) {
	e := load(t, nil, policy.Options{})
	for who, want := range map[string]string{
		"local":             "wasmgate grant a__b",
		"alice":             "wasmgate grant a__b --to alice",
		"auth0|x; rm -rf /": "wasmgate grant a__b --to='auth0|x; rm -rf /'",
		"it's":              `wasmgate grant a__b --to='it'\''s'`,
		"-x":                "wasmgate grant a__b --to='-x'",
		"role:admin":        "", // would be granted to the role
		"*":                 "", // would be granted to everybody
	} {
		q := query("a__b", "{}")
		q.Call.Who = &gate.Principal{Owner: gate.Owner{ID: who}}
		d, err := e.Authorize(t.Context(), q)
		if err != nil || d.Remedy != want {
			t.Errorf("remedy for %q = %q, %v; want %q", who, d.Remedy, err, want)
		}
	}
}

// panicking is a context that breaks in the middle of a decision.
type panicking struct{ context.Context }

func (panicking) Err() error { panic("broken") }

func TestEverythingElseDenies(t *testing.T) {
	const anything = `allow contains "anything goes" if true
`
	tests := map[string]struct {
		rules string
		query func(*gate.Query)
		ctx   context.Context
		error string
	}{
		"an error in a built-in function":     {rules: `deny contains "x" if to_number(input.tool.name) > 3`, error: "to_number"},
		"two values for one rule":             {rules: "n := 1 if true\n\nn := 2 if input.tool.name\n\ndeny contains \"x\" if n == 3", error: "conflict"},
		"a reason that is not a string":       {rules: `allow contains 7 if true`, error: "reasons: expected strings"},
		"a reason that is empty":              {rules: `allow contains "" if true`, error: "reasons: expected strings"},
		"a label that is not a string":        {rules: `labels contains {"a": 1} if true`, error: "labels: expected strings"},
		"more labels than a session holds":    {rules: `labels contains sprintf("l%d", [i]) if some i in numbers.range(1, 65)`, error: "more than a session"},
		"an obligation of an unknown type":    {rules: `obligations contains {"type": "redact", "at": "/x"} if true`, error: "unknown type of obligation"},
		"an obligation with an unknown field": {rules: `obligations contains {"type": "timeout", "after": "1s", "x": 1} if true`, error: "obligations"},
		"an obligation with another field":    {rules: `obligations contains {"type": "timeout", "within": "1s"} if true`, error: "positive duration"},
		"an obligation that is not an object": {rules: `obligations contains "timeout" if true`, error: "obligations"},
		"a timeout that is not positive":      {rules: `obligations contains {"type": "timeout", "after": "-1s"} if true`, error: "positive duration"},
		"a timeout without a unit":            {rules: `obligations contains {"type": "timeout", "after": 5} if true`, error: "positive duration"},
		"a size that is not a whole number":   {rules: `obligations contains {"type": "max_result", "bytes": 1.5} if true`, error: "whole number"},
		"a size below zero":                   {rules: `obligations contains {"type": "max_result", "bytes": -1} if true`, error: "whole number"},
		"a profile that does not exist":       {rules: `obligations contains {"type": "sanitize", "profile": "lax"} if true`, error: "one of"},
		"a context that has ended":            {ctx: ended(), error: "context canceled"},
		"a panic":                             {ctx: panicking{context.Background()}, error: "panic: broken"},
		"an action that is not decided yet":   {query: func(q *gate.Query) { q.Call.Action = "admin/grant" }, error: "not decided"},
		"no call":                             {query: func(q *gate.Query) { q.Call = nil }, error: "names no call"},
		"no principal":                        {query: func(q *gate.Query) { q.Call.Who = nil }, error: "names no call"},
		"no tool":                             {query: func(q *gate.Query) { q.Tool = nil }, error: "names no call"},
		"an unknown session, computed labels": {rules: `labels contains lower("X") if true`, query: func(q *gate.Query) { q.Session.Top = true }, error: "computes the names of labels"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(anything+tt.rules), policy.Options{})
			q := query("a__b", "{}")
			if tt.query != nil {
				tt.query(&q)
			}
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			d, err := e.Authorize(ctx, q)
			if err == nil || !strings.Contains(err.Error(), tt.error) {
				t.Errorf("error = %v, want one with %q", err, tt.error)
			}
			if diff := cmp.Diff(gate.Decision{}, d); diff != "" {
				t.Errorf("a decision came with the error:\n%s", diff)
			}
		})
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestALoopEnds(t *testing.T) {
	for name, rules := range map[string]string{
		"in rules": `allow contains "x" if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i + j == input.arguments.n
}`,
		"within one built-in function": `allow contains "x" if count(numbers.range(1, 10000000000)) > input.arguments.n`,
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(rules), policy.Options{Packs: noPacks, Timeout: 20 * time.Millisecond})
			_, err := e.Authorize(t.Context(), query("a__b", `{"n":0}`))
			if err == nil || errors.Is(err, gate.ErrOverdue) || !strings.Contains(err.Error(), "no decision within the 20000 steps that policy.timeout (20ms) allows") {
				t.Errorf("error = %v, want that of too many steps", err)
			}
		})
	}
}

// TestASlowMachineDeniesNothing: what bounds a decision is how much work it is. One that
// takes far too long all the same is the gateway's fault, and says so.
func TestASlowMachineDeniesNothing(t *testing.T) {
	const work = `allow contains "x" if count([1 | some i in numbers.range(1, 2000); some j in input.arguments.list; j == i]) >= 0`
	q := query("a__b", `{"list":[1]}`)
	e := load(t, user(work), policy.Options{Packs: noPacks, Timeout: 50 * time.Millisecond})
	if d, err := e.Authorize(t.Context(), q); err != nil || d.Effect != gate.Allow {
		t.Errorf("%+v, %v: want a decision, however slow the machine is", d, err)
	}
	policy.Hurry(e, time.Nanosecond)
	if _, err := e.Authorize(t.Context(), q); !errors.Is(err, gate.ErrOverdue) {
		t.Errorf("error = %v, want that the gateway is too busy", err)
	}
}

func TestRevisionIsContentAlone(t *testing.T) {
	rules := `allow contains "x" if true`
	base := load(t, user(rules), policy.Options{Grants: someone}).Revision()
	if len(base) != 16 {
		t.Errorf("revision %q, want 16 hex digits", base)
	}
	moved := fstest.MapFS{"elsewhere/b.rego": user(rules)["user.rego"], "x_test.rego": {Data: []byte("package x")}}
	if got := load(t, moved, policy.Options{Grants: someone, Timeout: time.Second}).Revision(); got != base {
		t.Errorf("the same content elsewhere has revision %s, want %s", got, base)
	}
	for name, other := range map[string]*policy.Engine{
		"other rules":  load(t, user(rules+"\n"), policy.Options{Grants: someone}),
		"other grants": load(t, user(rules), policy.Options{}),
		"other packs":  load(t, user(rules), policy.Options{Grants: someone, Packs: noPacks}),
	} {
		if other.Revision() == base {
			t.Errorf("%s: the revision is the same", name)
		}
	}
}
