package host_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// behind returns the URL of a host in front of a server, and what is recorded.
func behind(t *testing.T, f *fleet.Fleet, hide func(*gate.Tool) bool) (string, *rig.Records) {
	t.Helper()
	r := new(rig.Records)
	g, err := gate.New(gate.Parts{
		Upstream: f, Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: r,
		Authorizer: rig.AuthorizerFunc(func(q gate.Query) gate.Decision {
			if hide(q.Tool) {
				return gate.Decision{Effect: gate.Deny, Hidden: true}
			}
			return gate.Decision{Effect: gate.Allow}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Config{
		Config: dispatch.Config{
			Do:           g.Do,
			Tools:        g.Tools,
			Features:     g.Features,
			Offering:     f.Offering,
			Lookup:       f.Lookup,
			Instructions: f.Instructions,
			Known: func(ctx context.Context, who *gate.Principal, one gate.Feature) ([]*gate.Tool, error) {
				return g.Visible(ctx, who, f.KnownFeatures(one))
			},
		},
		Terms: host.Terms{Version: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, r
}

// TestParamHeaders: the headers of a call say what its arguments say, or the call is
// refused before anybody else sees it.
func TestParamHeaders(t *testing.T) {
	schema := `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},
		"ok":{"type":"boolean","x-mcp-header":"ok"},"in":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}}}}`
	var tools []options.LocalTool
	called := 0
	for _, name := range []string{"q", "hidden"} {
		tools = append(tools, options.LocalTool{
			Definition: gate.MustDoc(`{"name":"` + name + `","inputSchema":` + schema + `}`),
			Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				called++
				return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, nil
			},
		})
	}
	functions, err := local.New("local", rig.Options(), tools...)
	if err != nil {
		t.Fatal(err)
	}
	url, r := behind(t, rig.NewFleet(t, fleet.Config{Locals: []*local.Server{functions}}), func(tool *gate.Tool) bool { return tool.Local == "hidden" })
	tests := map[string]struct {
		name, args string
		headers    map[string]string
		want       string // in the answer
	}{
		"nothing is there":                  {"q", `{}`, nil, `"content":[]`},
		"null is nothing":                   {"q", `{"in":{"deep":null}}`, nil, `/in/deep: expected string, found null`}, // the schema's to refuse
		"all are there":                     {"q", `{"region":"eu","n":42,"ok":true,"in":{"deep":"x y"}}`, map[string]string{"Region": "eu", "N": "42", "OK": "true", "Deep": "x y"}, `"content":[]`},
		"a number that is written in a way": {"q", `{"n":42}`, map[string]string{"N": "42.0"}, `"content":[]`},
		"encoded":                           {"q", `{"region":"Zürich"}`, map[string]string{"Region": "=?base64?WsO8cmljaA==?="}, `"content":[]`},
		"an empty text, encoded":            {"q", `{"region":""}`, map[string]string{"Region": "=?base64??="}, `"content":[]`},
		"an empty text":                     {"q", `{"region":""}`, map[string]string{"Region": ""}, `"content":[]`},
		"one is missing":                    {"q", `{"region":"eu"}`, nil, `-32020`},
		"one is for nothing":                {"q", `{}`, map[string]string{"Region": "eu"}, `-32020`},
		"one says something else":           {"q", `{"region":"eu"}`, map[string]string{"Region": "us"}, `-32020`},
		"a number says something else":      {"q", `{"n":1}`, map[string]string{"N": "1.5"}, `-32020`},
		"a truth says something else":       {"q", `{"ok":true}`, map[string]string{"OK": "True"}, `-32020`},
		"a deep one says something else":    {"q", `{"in":{"deep":"x"}}`, map[string]string{"Deep": "y"}, `-32020`},
		"no base64":                         {"q", `{"region":"eu"}`, map[string]string{"Region": "=?base64?!?="}, `-32020`},
		"characters that no header has":     {"q", `{"region":"Zürich"}`, map[string]string{"Region": "Zürich"}, `-32020`},
		"a name that was encoded":           {"=?base64?cQ==?=", `{}`, nil, `"content":[]`},
		"a name that says something else":   {"other", `{}`, nil, `-32020`},
		"a name in no base64":               {"=?base64?!?=", `{}`, nil, `-32020`},
		"a tool that is hidden":             {"hidden", `{"region":"eu"}`, nil, `-32602`},
		"a tool that is none":               {"none", `{"region":"eu"}`, nil, `-32602`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tool := "local__" + strings.NewReplacer("=?base64?cQ==?=", "q", "other", "q", "=?base64?!?=", "q").Replace(tt.name)
			msg := rig.Request(rig.Newest, "1", "tools/call", `"name":"`+tool+`","arguments":`+tt.args)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(msg))
			if err != nil {
				t.Fatal(err)
			}
			named := "local__" + tt.name
			if strings.HasPrefix(tt.name, "=?") {
				named = strings.Replace(tt.name, "cQ==", "bG9jYWxfX3E=", 1)
			}
			for k, v := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": rig.Newest, "Mcp-Method": "tools/call", "Mcp-Name": named,
			} {
				req.Header.Set(k, v)
			}
			for k, v := range tt.headers {
				req.Header.Set("Mcp-Param-"+k, v)
			}
			before, recorded := called, len(r.Done())
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got := rig.AnswerOf(t, resp)
			if !strings.Contains(got, tt.want) {
				t.Errorf("answer %s, want %s", got, tt.want)
			}
			if ok := tt.want == `"content":[]`; ok != (called == before+1) {
				t.Errorf("called: %v", called > before)
			}
			if tt.want == "-32020" && resp.StatusCode != http.StatusBadRequest {
				t.Errorf("status %d", resp.StatusCode)
			}
			if tt.want == "-32020" && !strings.Contains(name, "name") && len(r.Done()) != recorded+1 {
				t.Error("the refusal is not recorded")
			}
		})
	}
}

// TestBadParamHeaders: a definition whose headers cannot be sent is known for one.
func TestBadParamHeaders(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		ok     bool
	}{
		"none":                       {`{"type":"object"}`, true},
		"a property of that name":    {`{"properties":{"x-mcp-header":{"type":"string"}}}`, true},
		"in data":                    {`{"properties":{"a":{"const":{"x-mcp-header":"A"},"default":{"x-mcp-header":1}}}}`, true},
		"within items, as a name":    {`{"properties":{"a":{"items":{"properties":{"x-mcp-header":{}}}}}}`, true},
		"two":                        {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"B"}}}`, true},
		"two of one name":            {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, false},
		"a number":                   {`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, false},
		"no type":                    {`{"properties":{"a":{"x-mcp-header":"A"}}}`, false},
		"an empty name":              {`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, false},
		"a name with a line break":   {`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB: c"}}}`, false},
		"a name with a colon":        {`{"properties":{"a":{"type":"string","x-mcp-header":"A:"}}}`, false},
		"a name in other letters":    {`{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}`, false},
		"a name that is not text":    {`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, false},
		"at the root":                {`{"x-mcp-header":"A"}`, false},
		"within items":               {`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, false},
		"within items of properties": {`{"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`, false},
		"within allOf":               {`{"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, false},
		"within $defs":               {`{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, false},
		"within a pattern":           {`{"patternProperties":{"a":{"type":"string","x-mcp-header":"A"}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := rig.NewModern(map[string]string{"tools/list": `{"tools":[{"name":"a","inputSchema":` + strings.Replace(tt.schema, "{", `{"type":"object",`, 1) + `},` + rig.EchoTool + `]}`})
			if strings.HasPrefix(tt.schema, `{"type"`) {
				m.Answers["tools/list"] = `{"tools":[{"name":"a","inputSchema":` + tt.schema + `},` + rig.EchoTool + `]}`
			}
			e, _ := rig.Dialled(t, m)
			want := 1
			if tt.ok {
				want = 2
			}
			if tools := e.Tools(t.Context()); len(tools) != want {
				t.Errorf("%d tools, want %d; notes: %v", len(tools), want, e.Status().Notes)
			}
		})
	}
}

// TestInstructions: clients get the approved instructions of the servers that offer them something.
func TestInstructions(t *testing.T) {
	says := func(server, text string) options.Endpoint {
		s := rig.NewScript(map[string]string{"initialize": strings.Replace(rig.Initialized, `"capabilities"`, `"instructions":"`+text+`","capabilities"`, 1)})
		return s.Config(server)
	}
	all := func(*gate.Tool) bool { return false }
	tests := map[string]struct {
		servers []options.Endpoint
		hide    func(*gate.Tool) bool
		pins    fleet.Pins
		want    string
	}{
		"one server":            {[]options.Endpoint{says("a", "be kind")}, all, nil, "be kind"},
		"a server that is mute": {[]options.Endpoint{rig.NewScript(nil).Config("a")}, all, nil, ""},
		"two servers":           {[]options.Endpoint{says("a", "be kind"), says("b", "be quick")}, all, nil, "## a\n\nbe kind\n\n## b\n\nbe quick"},
		"one of two says a thing": {
			[]options.Endpoint{says("a", "be kind"), rig.NewScript(nil).Config("b")}, all, nil, "## a\n\nbe kind"},
		"nothing of one is offered": {
			[]options.Endpoint{says("a", "be kind"), says("b", "be quick")},
			func(tool *gate.Tool) bool { return tool.Name.Server == "a" }, nil, "be quick"},
		"one is not approved": {
			[]options.Endpoint{says("a", "be kind"), says("b", "be quick")}, all,
			&rig.Pins{Approved: []string{"echo", "b instructions"}}, "## b\n\nbe quick"},
		"one that is long": {[]options.Endpoint{says("a", strings.Repeat("ä", 10_000))}, all, nil, strings.Repeat("ä", 4096)},
		"many that are long": {
			[]options.Endpoint{says("a", strings.Repeat("a", 9000)), says("b", strings.Repeat("b", 9000)), says("c", strings.Repeat("c", 9000)), says("d", strings.Repeat("d", 9000))}, all, nil,
			"## a\n\n" + strings.Repeat("a", 8192) + "\n\n## b\n\n" + strings.Repeat("b", 8192) + "\n\n## c\n\n" + strings.Repeat("c", 8192)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := rig.NewFleet(t, fleet.Config{Servers: tt.servers, Pins: tt.pins})
			if err := f.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			url, _ := behind(t, f, tt.hide)
			resp, err := rig.Post(t.Context(), url, rig.Old, "", rig.Hello)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, gate.MustDoc(rig.AnswerOf(t, resp)).At("/result/instructions").Text()); diff != "" {
				t.Errorf("initialize (-want +got):\n%s", diff)
			}
			if resp, err = rig.Post(t.Context(), url, rig.Newest, "", rig.Request(rig.Newest, "1", "server/discover", "")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, gate.MustDoc(rig.AnswerOf(t, resp)).At("/result/instructions").Text()); diff != "" {
				t.Errorf("server/discover (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInstructionsAreSanitized: what is in them goes the way of all texts of servers.
func TestInstructionsAreSanitized(t *testing.T) {
	s := rig.NewScript(map[string]string{"initialize": strings.Replace(rig.Initialized, `"capabilities"`, `"instructions":"be EVIL","capabilities"`, 1)})
	cfg := s.Config("a")
	cfg.Tools.Sanitizer = rig.SanitizerFunc(func(text string) (string, []gate.Finding) { return strings.ReplaceAll(text, "EVIL", "kind"), nil })
	f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}})
	if err := f.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.Instructions(); len(got) != 1 || got[0].Text != "be kind" {
		t.Errorf("%v", got)
	}
}

// TestCacheHints: how long a resource may be kept is the server's to say, and who may
// keep it is not.
func TestCacheHints(t *testing.T) {
	for hints, want := range map[string]string{
		``:                                  `0`,
		`,"ttlMs":5000`:                     `5000`,
		`,"ttlMs":1,"cacheScope":"public"`:  `1`,
		`,"ttlMs":-1`:                       `0`,
		`,"ttlMs":1.5`:                      `0`,
		`,"ttlMs":"x","cacheScope":"group"`: `0`,
	} {
		m := rig.NewModern(map[string]string{"resources/read": `{"contents":[]` + hints + `}`})
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{{Server: "s", URL: rig.URLOf(t, m), Tools: rig.Options()}}})
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		url, _ := behind(t, f, func(*gate.Tool) bool { return false })
		msg := rig.Request(rig.Newest, "1", "resources/read", `"uri":"file:///ä"`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(msg))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": rig.Newest, "Mcp-Method": "resources/read", "Mcp-Name": "=?base64?ZmlsZTovLy/DpA==?=",
		} {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res := gate.MustDoc(rig.AnswerOf(t, resp)).Get("result")
		if res.Get("ttlMs").String() != want || res.Get("cacheScope").Text() != "private" {
			t.Errorf("%s: %s", hints, res)
		}
	}
}

// TestCustomMethods: a method that MCP does not have gets the JSON-RPC error that says so, over
// each transport and in both protocol revisions.
func TestCustomMethods(t *testing.T) {
	for name, w := range rig.Wires {
		t.Run(name, func(t *testing.T) {
			got := gate.MustDoc(w.Dial(t, rig.NewFixture(t))(rig.Request(w.Era, "7", "example.com/own", `"x":1`)))
			if got.Get("id").String() != "7" || got.At("/error/code").String() != "-32601" {
				t.Errorf("answer %s", got)
			}
		})
	}
}
