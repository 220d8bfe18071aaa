package policy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

const capable = `{"http":[{"origin":"https://api.example.com","methods":["GET"],"path":"/"}],"kv":true}`

// hostCall is a host call of a sandboxed tool that alice has called.
func hostCall(action gate.Action, request string) gate.Query {
	tool := newTool("local__fetch")
	tool.Sandboxed, tool.Capabilities = true, gate.MustDoc(capable)
	return gate.Query{
		Call: &gate.Call{Parent: "c0", Action: action, Name: "local__fetch", Args: gate.MustDoc(request), Who: alice},
		Tool: tool,
	}
}

func TestAuthorizeHostCalls(t *testing.T) {
	unraced.Long(t)
	const get = `{"method":"GET","scheme":"https","host":"api.example.com","port":443,"path":"/a"}`
	tests := map[string]struct {
		rules   string
		packs   []string
		action  gate.Action
		request string
		tool    func(*gate.Tool)
		want    gate.Decision
	}{
		"what the module is granted": {
			action: actions.SandboxHTTP, request: get,
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"the module is granted the origin, the method and the path"}},
		},
		"what it is not granted has no remedy by command, and hides nothing": {
			action: actions.SandboxHTTP, request: `{"method":"GET","scheme":"https","host":"other.example.com","port":443,"path":"/"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows sandbox/http of local__fetch for alice"}},
		},
		"a request without its parts": {
			action: actions.SandboxHTTP, request: `{}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows sandbox/http of local__fetch for alice"}},
		},
		"a user's rule refuses a single one": {
			rules:  `deny contains "nothing of alice's" if { input.action == "sandbox/kv"; input.principal.id == "alice"; startswith(input.request.key, "a/") }`,
			action: actions.SandboxKV, request: `{"op":"get","key":"a/1"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"nothing of alice's"}},
		},
		"a user's rule on the method": {
			rules: `deny contains "fetch only reads" if {
	input.action == "sandbox/http"
	input.tool.name == "local__fetch"
	not input.request.method in {"GET", "HEAD"}
}`,
			action: actions.SandboxHTTP, request: `{"method":"POST","scheme":"https","host":"api.example.com","port":443,"path":"/a"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"fetch only reads"}},
		},
		"and lets the others through": {
			rules:  `deny contains "nothing of alice's" if { input.action == "sandbox/kv"; startswith(input.request.key, "a/") }`,
			action: actions.SandboxKV, request: `{"op":"get","key":"b/1"}`,
			want: gate.Decision{Effect: gate.Allow, Reasons: []string{"the module is granted a key-value store"}},
		},
		"a user's rule asks": {
			rules:  `ask contains "writes are asked" if input.request.op == "set"`,
			action: actions.SandboxKV, request: `{"op":"set","key":"b/1"}`,
			want: gate.Decision{Effect: gate.Ask, Reasons: []string{"writes are asked"}},
		},
		"a rule on arguments denies what has none": {
			rules:  `deny contains "not below /srv" if not startswith(input.arguments.path, "/srv/")`,
			action: actions.SandboxKV, request: `{"op":"get","key":"b/1"}`,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"not below /srv"}},
		},
		"without the pack nothing is granted": {
			packs: noPacks, action: actions.SandboxHTTP, request: get,
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows sandbox/http of local__fetch for alice"}},
		},
		"without a sandbox nothing is granted": {
			action: actions.SandboxHTTP, request: get, tool: func(tool *gate.Tool) { tool.Sandboxed = false },
			want: gate.Decision{Effect: gate.Deny, Reasons: []string{"no policy allows sandbox/http of local__fetch for alice"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{Packs: tt.packs, Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"*"}}}})
			q := hostCall(tt.action, tt.request)
			if tt.tool != nil {
				tt.tool(q.Tool)
			}
			got, err := e.Authorize(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Revision, tt.want.Labels = e.Revision(), got.Labels
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostCallInput holds what policies see of a host call against the
// documented shape.
func TestHostCallInput(t *testing.T) {
	e := load(t, user(`deny contains json.marshal(input) if true`), policy.Options{})
	q := hostCall(actions.SandboxSecret, `{"name":"API","origin":"https://api.example.com"}`)
	q.Session.Labels = gate.NewLabels("untrusted")
	q.Call.Session.ID = "s1"
	d, err := e.Authorize(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"action":"sandbox/secret",
 "principal":{"id":"alice","tenant":"","auth":"local","roles":["dev"],"claims":{},"client":{"id":"","name":"","version":""}},
 "session":{"id":"s1","labels":["untrusted"]},
 "tool":{"name":"local__fetch","server":"local","local_name":"fetch","annotations":{},"labels":{},"groups":[],
         "sandboxed":true,"capabilities":` + capable + `,"origin":{},"relay":false,"pinned":false,"findings":[]},
 "request":{"name":"API","origin":"https://api.example.com"}}`
	if diff := cmp.Diff(gate.MustDoc(want).Value(), gate.MustDoc(d.Reasons[0]).Value()); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestHostCallsFailClosed(t *testing.T) {
	unraced.Long(t)
	for name, tt := range map[string]struct {
		rules string
		ctx   context.Context
		query func(*gate.Query)
		want  string
	}{
		"an error in a rule":            {rules: `deny contains "x" if to_number(input.request.key) > 3`, want: "to_number"},
		"an obligation that is unknown": {rules: `obligations contains {"type": "redact"} if true`, want: "unknown type of obligation"},
		"a context that has ended":      {ctx: ended(), want: "context canceled"},
		"a panic":                       {ctx: panicking{context.Background()}, want: "panic: broken"},
		"another action of a sandbox":   {query: func(q *gate.Query) { q.Call.Action = "sandbox/exec" }, want: "not decided"},
		"no tool":                       {query: func(q *gate.Query) { q.Tool = nil }, want: "no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			e := load(t, user(tt.rules), policy.Options{})
			q := hostCall(actions.SandboxKV, `{"op":"get","key":"k"}`)
			if tt.query != nil {
				tt.query(&q)
			}
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			d, err := e.Authorize(ctx, q)
			if err == nil || !strings.Contains(err.Error(), tt.want) || d.Effect != "" {
				t.Errorf("Authorize = %v, %v; want an error with %q", d.Effect, err, tt.want)
			}
		})
	}
}

func TestNarrowing(t *testing.T) {
	tests := map[string]struct {
		rules string
		want  obligation.Narrowing
	}{
		"all its members": {
			`obligations contains {"sandbox": {"http": ["https://b.example.com:8443", "http://[::1]"], "dirs": ["/srv/docs/a", "C:/docs"], "secrets": ["API"], "kv": false, "fuel": 1000000, "timeout": "1s"}} if true`,
			obligation.Narrowing{
				HTTP: []string{"http://[::1]", "https://b.example.com:8443"}, Dirs: []string{"/srv/docs/a", "C:/docs"},
				Secrets: []string{"API"}, NoKV: true, Fuel: 1_000_000, Timeout: time.Second,
			},
		},
		"absent members narrow nothing, empty ones leave nothing": {
			`obligations contains {"sandbox": {"secrets": [], "kv": true}} if true`, obligation.Narrowing{Secrets: []string{}},
		},
		"a part of a login": {`obligations contains {"credential": {"scopes": ["b", "a"], "ttl": "60s"}} if true`, obligation.Narrowing{Scopes: []string{"a", "b"}, TTL: time.Minute}},
		"of two logins the stricter": {
			`obligations contains {"credential": {"scopes": ["b", "a"], "ttl": "60s"}} if true
obligations contains {"credential": {"scopes": ["b", "c"], "ttl": "30s"}} if true`, obligation.Narrowing{Scopes: []string{"b"}, TTL: 30 * time.Second},
		},
		"a set is as good as a list":   {`obligations contains {"sandbox": {"dirs": {"/b", "/a"}}} if true`, obligation.Narrowing{Dirs: []string{"/a", "/b"}}},
		"an empty one narrows nothing": {`obligations contains {"sandbox": {}} if true`, obligation.Narrowing{}},
		"several leave what all of them leave": {
			`obligations contains {"sandbox": {"http": ["https://a", "https://b"], "fuel": 10}} if true

obligations contains {"sandbox": {"http": ["https://b", "https://c"], "timeout": "1s"}} if true

obligations contains {"sandbox": {"dirs": ["/srv"], "timeout": "2s", "fuel": 5}} if true

obligations contains {"sandbox": {"dirs": ["/srv/a", "/var"], "kv": false}} if true`,
			obligation.Narrowing{HTTP: []string{"https://b"}, Dirs: []string{"/srv/a"}, NoKV: true, Fuel: 5, Timeout: time.Second},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user("allow contains \"x\" if true\n\nobligations contains {\"type\": \"max_result\", \"bytes\": 9} if true\n\n"+tt.rules), policy.Options{})
			d, err := e.Authorize(t.Context(), query("a__b", "{}"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]obligation.Obligation{obligation.MaxResult{Bytes: 9}, tt.want}, d.Obligations); diff != "" {
				t.Errorf("obligations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNarrowingIsStrict(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct{ obligation, want string }{
		"no scopes of a credential":       {`{"credential": {"ttl": "1s"}}`, "credential.scopes: missing"},
		"two scopes in one":               {`{"credential": {"scopes": ["a b"]}}`, "expected a scope"},
		"a credential for no time":        {`{"credential": {"scopes": ["a"], "ttl": "0s"}}`, "credential.ttl: expected a positive duration"},
		"an unknown member of it":         {`{"credential": {"scopes": ["a"], "audience": "x"}}`, "credential.audience: unknown member of the obligation; check its spelling"},
		"no object":                       {`{"sandbox": true}`, "expected sandbox, an object"},
		"another member beside it":        {`{"sandbox": {}, "type": "sandbox"}`, "unknown type of obligation"},
		"a type of its name":              {`{"type": "sandbox", "kv": false}`, "unknown type of obligation"},
		"an unknown member":               {`{"sandbox": {"env": []}}`, "sandbox.env: unknown member of the obligation; check its spelling"},
		"a member that is not a name":     {`{"sandbox": {1: []}}`, "unknown member of the obligation"},
		"one origin for a list":           {`{"sandbox": {"http": "https://a"}}`, "sandbox.http: expected a list"},
		"an origin with a path":           {`{"sandbox": {"http": ["https://a/"]}}`, "expected an origin"},
		"an origin in capitals":           {`{"sandbox": {"http": ["https://A"]}}`, "expected an origin"},
		"an origin with its own port":     {`{"sandbox": {"http": ["https://a:443"]}}`, "without the scheme's own port"},
		"an origin of another scheme":     {`{"sandbox": {"http": ["ftp://a"]}}`, "expected an origin"},
		"an origin that is any":           {`{"sandbox": {"http": ["*"]}}`, "expected an origin"},
		"an origin that is not a string":  {`{"sandbox": {"http": [1]}}`, "expected strings"},
		"null for a list":                 {`{"sandbox": {"http": null}}`, "expected a list"},
		"a directory that is relative":    {`{"sandbox": {"dirs": ["docs"]}}`, "absolute"},
		"a directory with ..":             {`{"sandbox": {"dirs": ["/srv/../etc"]}}`, "expected a directory"},
		"a directory with a slash behind": {`{"sandbox": {"dirs": ["/srv/"]}}`, "expected a directory"},
		"a directory that is empty":       {`{"sandbox": {"dirs": [""]}}`, "expected a directory"},
		"a directory as in a grant":       {`{"sandbox": {"dirs": [{"path": "/srv"}]}}`, "expected strings"},
		"a secret without a name":         {`{"sandbox": {"secrets": [""]}}`, "expected the name"},
		"a store in words":                {`{"sandbox": {"kv": "no"}}`, "sandbox.kv: expected true or false"},
		"no fuel":                         {`{"sandbox": {"fuel": 0}}`, "sandbox.fuel: expected a whole number"},
		"fuel below nothing":              {`{"sandbox": {"fuel": -1}}`, "expected a whole number"},
		"half an instruction":             {`{"sandbox": {"fuel": 1.5}}`, "expected a whole number"},
		"fuel in words":                   {`{"sandbox": {"fuel": "1"}}`, "expected a whole number"},
		"fuel beyond 64 bits":             {`{"sandbox": {"fuel": 99999999999999999999}}`, "expected a whole number"},
		"no time":                         {`{"sandbox": {"timeout": "0s"}}`, "sandbox.timeout: expected a positive duration"},
		"time without a unit":             {`{"sandbox": {"timeout": 1}}`, "expected a positive duration"},
		"too many names":                  {`{"sandbox": {"secrets": [s | some i in numbers.range(1, 257); s := sprintf("%d", [i])]}}`, "257 names are more than 256"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := load(t, user("allow contains \"x\" if true\n\nobligations contains "+tt.obligation+" if true"), policy.Options{})
			d, err := e.Authorize(t.Context(), query("a__b", "{}"))
			if err == nil || !strings.Contains(err.Error(), tt.want) || d.Effect != "" {
				t.Errorf("Authorize = %v, %v; want an error with %q", d.Effect, err, tt.want)
			}
		})
	}
}

// A rule that narrows a tool, whatever the action, narrows the call, and blocks none of its host
// calls.
func TestNarrowingOfCallAndHostCallsAlike(t *testing.T) {
	e := load(t, user(`obligations contains {"sandbox": {"http": ["https://api.example.com"]}} if input.tool.name == "local__fetch"`), policy.Options{
		Grants: []policy.Grant{{To: []string{"alice"}, Tools: []string{"local__*"}}},
	})
	call := hostCall(gate.CallTool, `{}`)
	host := hostCall(actions.SandboxKV, `{"op":"get","key":"k"}`)
	for _, q := range []gate.Query{call, host} {
		d, err := e.Authorize(t.Context(), q)
		if err != nil || d.Effect != gate.Allow {
			t.Fatalf("%s: %v, %v", q.Call.Action, d.Effect, err)
		}
		if diff := cmp.Diff([]obligation.Obligation{obligation.Narrowing{HTTP: []string{"https://api.example.com"}}}, d.Obligations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", q.Call.Action, diff)
		}
	}
}
