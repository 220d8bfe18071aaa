package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

const stamped = `,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"wasmgate","version":"1"}}}`

// TestLossless compares results byte for byte, in every way to speak with a host.
func TestLossless(t *testing.T) {
	tests := map[string]struct{ result, want string }{ // want "": the result
		"unknown content, fields, numbers and order": {rig.Odd, ""},
		"no content at all":                          {`{"z":null,"a":[{}]}`, ""},
		"characters that HTML would escape":          {`{"content":[{"type":"text","text":"<b>&amp;</b> \u003c ` + "\u2028 \U0001f600" + ` \/ \u00e9"}]}`, ""},
		"numbers in every shape":                     {`{"structuredContent":[-0,1E5,1e+5,0.10,100000000000000000000000000,9007199254740993,-1.50e-7]}`, ""},
		"white space between values may go":          {"{ \"a\" : [ 1 ,\n2 ] }", `{"a":[1,2]}`},
	}
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			send := w.Dial(t, x)
			for name, tt := range tests {
				x.Mu.Lock()
				x.Results["echo"] = tt.result
				x.Mu.Unlock()
				want := tt.want
				if want == "" {
					want = tt.result
				}
				if w.Era == rig.Newest {
					want = strings.TrimSuffix(want, "}") + stamped
				}
				got := send(rig.Request(w.Era, "7", "tools/call", `"name":"local__echo","arguments":{}`))
				if tt.want != "" {
					got = compact(t, got)
				}
				if diff := cmp.Diff(`{"jsonrpc":"2.0","id":7,"result":`+want+`}`, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func compact(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLosslessArguments: the gate sees the arguments as the client wrote them.
func TestLosslessArguments(t *testing.T) {
	const args = `{"z":12345678901234567890,"a":1.0,"e":1e5,"s":"\u003c<&>\/","é":[]}`
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			x.Results["echo"] = "args"
			got := gate.MustDoc(w.Dial(t, x)(rig.Request(w.Era, "1", "tools/call", `"name":"local__echo","arguments":`+args)))
			if diff := cmp.Diff(args, got.At("/result/args").String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMeta: what a result has in _meta is kept next to what a stateless answer adds. No server can
// ask a client for more in the gateway's place, not even one that speaks an older revision, because
// clients act on inputRequests alone.
func TestMeta(t *testing.T) {
	x := rig.NewFixture(t)
	x.Results["echo"] = `{"_meta":{"k":1.0},"inputRequests":{"a":{}},"content":[],"resultType":"input_required","requestState":"s","x":1.0}`
	got := rig.DialHTTP(t, x, rig.Newest)(rig.Request(rig.Newest, "1", "tools/call", `"name":"local__echo"`))
	want := `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":1.0,"io.modelcontextprotocol/serverInfo":{"name":"wasmgate","version":"1"}},"content":[],"resultType":"complete","x":1.0}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = rig.DialHTTP(t, x, rig.Old)(rig.Request(rig.Old, "1", "tools/call", `"name":"local__echo"`))
	want = `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":1.0},"content":[],"resultType":"input_required","x":1.0}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, one := range []string{`"inputRequests":{"a":{}}`, `"requestState":"s"`} {
		x.Results["echo"] = `{"content":[],` + one + `}`
		for _, era := range []string{rig.Newest, rig.Old} {
			if got := rig.DialHTTP(t, x, era)(rig.Request(era, "1", "tools/call", `"name":"local__echo"`)); strings.Contains(got, "inputRequests") || strings.Contains(got, "requestState") {
				t.Errorf("%s: a client gets %s", era, got)
			}
		}
	}
}

// TestList: the whole listing, the definitions as they are; a stateless one may only be cached for
// its own client.
func TestList(t *testing.T) {
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			got := w.Dial(t, x)(rig.Request(w.Era, `"a"`, "tools/list", ""))
			var defs []string
			for _, n := range []string{"echo", "denied", "fails", "block"} {
				defs = append(defs, rig.Tool("local__"+n))
			}
			want := `{"jsonrpc":"2.0","id":"a","result":{"tools":[` + strings.Join(defs, ",") + `]`
			if w.Era == rig.Newest {
				want += `,"ttlMs":0,"cacheScope":"private"` + stamped + "}"
			} else {
				want += "}}"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// header matches names that can also be sent in a header, as those of tools are in stateless HTTP.
var header = regexp.MustCompile(`^[a-z_]+$`)

// TestRefusals: what a client reads of each way in which a call is not carried
// out, alike in every way to ask.
func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		name   string
		code   int    // of a JSON-RPC error
		says   string // its message, or the text of the result
		refuse string // code in _meta
	}{
		"unknown":       {"nobody__x", -32602, `unknown tool "nobody__x"`, ""},
		"hidden":        {"local__hidden", -32602, `unknown tool "local__hidden"`, ""},
		"denied":        {"local__denied", 0, "refused: not <yours>", "refused_authorize"},
		"a fault":       {"local__fails", 0, "the connection to the server broke; call again", "transport"},
		"a panic":       {"panic", -32603, "internal error", ""},
		"empty name":    {"", -32602, `unknown tool ""`, ""},
		"a hidden name": {"x\\u200b\\n", -32602, `unknown tool "x\u200b\n"`, ""},
	}
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			send := w.Dial(t, x)
			for name, tt := range tests {
				if front == "HTTP, stateless" && !header.MatchString(tt.name) {
					continue
				}
				got := gate.MustDoc(send(rig.Request(w.Era, "1", "tools/call", `"name":"`+tt.name+`"`)))
				if tt.code != 0 {
					want := gate.MustDoc(fmt.Sprintf(`{"code":%d,"message":%s}`, tt.code, rig.Quote(tt.says)))
					if got.Get("error").Digest() != want.Digest() || !got.Get("result").IsZero() {
						t.Errorf("%s: %s, want error %s", name, got, want)
					}
					continue
				}
				res := got.Get("result")
				meta := res.Get("_meta").Get("io.github.wasmgate/refusal")
				if !res.Get("isError").True() || res.At("/content/0/text").Text() != tt.says || meta.Get("code").Text() != tt.refuse ||
					len(meta.Get("record_id").Text()) != 36 {
					t.Errorf("%s: %s", name, got)
				}
			}
			if got := send(rig.Request(w.Era, "1", "tools/call", `"name":"local__echo"`)); !strings.Contains(got, `"content"`) {
				t.Errorf("after a panic: %s", got)
			}
		})
	}
}

// TestMalformed: what is no acceptable message is refused before anything reads
// it, and recorded if it is a call.
func TestMalformed(t *testing.T) {
	deep := strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000)
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"local__echo","arguments":`
	tests := map[string]struct {
		msg    string
		code   int
		id     string
		record string
	}{
		"no JSON":                    {`hello`, -32700, "null", ""},
		"two documents":              {rig.Hello + rig.Hello, -32602, "0", ""},
		"duplicate keys":             {call + `{"a":1,"a":2}}}`, -32602, "5", "local__echo refused_parse"},
		"duplicate names of tools":   {`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","name":"local__echo"}}`, -32602, "5", "local__echo refused_parse"},
		"invalid UTF-8":              {call + "{\"a\":\"\xff\"}}}", -32602, "5", "local__echo refused_parse"},
		"half of a surrogate pair":   {call + `{"a":"\ud800"}}}`, -32602, "5", "local__echo refused_parse"},
		"1 MB of nesting":            {call + deep + `}}`, -32602, "5", "local__echo refused_parse"},
		"an endless number":          {call + `{"n":1` + strings.Repeat("0", 5000) + `}}}`, -32602, "5", "local__echo refused_parse"},
		"arguments that are none":    {call + `[1]}}`, -32602, "5", "local__echo refused_parse"},
		"a name that is none":        {`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":5}}`, -32602, "5", " refused_parse"},
		"no parameters":              {`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, -32602, "5", " refused_parse"},
		"null parameters":            {`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":null}`, -32602, "5", " refused_parse"},
		"_meta that is none":         {`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"local__echo","_meta":5}}`, -32602, "5", "local__echo refused_parse"},
		"a batch":                    {`[` + rig.Hello + `]`, -32600, "null", ""},
		"an empty batch":             {`[]`, -32600, "null", ""},
		"a string":                   {`"x"`, -32600, "null", ""},
		"another JSON-RPC":           {`{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600, "null", ""},
		"a method that is none":      {`{"jsonrpc":"2.0","id":5,"method":7}`, -32600, "null", ""},
		"nothing in it":              {`{"jsonrpc":"2.0"}`, -32600, "null", ""},
		"an id that is null":         {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "null", ""},
		"an id that is a fraction":   {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "null", ""},
		"an id beyond 64 bits":       {`{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}`, -32600, "null", ""},
		"an id that is an object":    {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "null", ""},
		"an unknown method":          {`{"jsonrpc":"2.0","id":"u","method":"tasks/get","params":{}}`, -32601, `"u"`, ""},
		"prompts, not advertised":    {`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`, -32601, "5", ""},
		"prompts without parameters": {`{"jsonrpc":"2.0","id":5,"method":"prompts/get"}`, -32601, "5", ""},
		"logging, not advertised":    {`{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"info"}}`, -32601, "5", ""},
	}
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			send := w.Dial(t, x)
			for name, tt := range tests {
				before := len(x.Records.Done())
				answer := send(tt.msg)
				got, err := gate.ParseDoc([]byte(answer))
				if err != nil {
					t.Errorf("%s: %q: %v", name, answer, err)
					continue
				}
				if got.Get("id").String() != tt.id || got.At("/error/code").String() != fmt.Sprint(tt.code) {
					t.Errorf("%s: %.300s, want code %d for id %s", name, got, tt.code, tt.id)
				}
				recorded := strings.Join(x.Records.Done()[before:], ",")
				if recorded != tt.record {
					t.Errorf("%s: recorded %q, want %q", name, recorded, tt.record)
				}
			}
			if x.Calls() != 0 {
				t.Errorf("%d calls came through", x.Calls())
			}
			if got := send(rig.Request(w.Era, "1", "tools/call", `"name":"local__echo"`)); !strings.Contains(got, `"content"`) {
				t.Errorf("the connection is of no use any more: %s", got)
			}
			if w.Era == rig.Old {
				send(`{"jsonrpc":"2.0","method":"notifications/nobody_knows"}`)
				if got := send(`{"jsonrpc":"2.0","id":6,"method":"ping"}`); got != `{"jsonrpc":"2.0","id":6,"result":{}}` {
					t.Errorf("after an unknown notification: %s", got)
				}
			}
		})
	}
}

// TestTooLarge: a message over the limit costs itself alone.
func TestTooLarge(t *testing.T) {
	x := rig.NewFixture(t)
	large := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"local__echo","arguments":{"a":"` + strings.Repeat("x", 3<<20) + `"}}}`
	resp, err := rig.Post(t.Context(), x.URL, rig.Old, "", large)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %s", resp.Status)
	}
	send := rig.Wires["stdio, sessions"].Dial(t, x)
	got := gate.MustDoc(send(large))
	if got.Get("id").String() != "5" || got.At("/error/code").String() != "-32602" {
		t.Errorf("over stdio: %s", got)
	}
	if got := send(rig.Request(rig.Old, "6", "tools/call", `"name":"local__echo"`)); !strings.Contains(got, `"id":6,"result"`) {
		t.Errorf("then: %s", got)
	}
	if diff := cmp.Diff([]string{"local__echo refused_parse", "local__echo ok"}, x.Records.Done()); diff != "" {
		t.Error(diff)
	}
}

func TestOriginAndHost(t *testing.T) {
	h, err := host.New(host.Config{
		Config: dispatch.Config{Do: func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, nil }, Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil }},
		Terms:  host.Terms{Hosts: []string{"mcp.example.com"}, Origins: []string{"https://app.example.com"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		host, origin string
		ok           bool
	}{
		{"127.0.0.1:7420", "", true},
		{"127.0.0.1", "", true},
		{"127.8.9.1:1", "", true},
		{"localhost:7420", "", true},
		{"LOCALHOST", "", true},
		{"[::1]:7420", "", true},
		{"[::1]", "", true},
		{"mcp.example.com", "", true},
		{"mcp.example.com:443", "", false},
		{"example.com", "", false},
		{"localhost.example.com", "", false},
		{"127.0.0.1.example.com", "", false},
		{"127.0.0.1.nip.io:7420", "", false},
		{"192.168.1.1:7420", "", false},
		{"0.0.0.0:7420", "", false},
		{"[::]:7420", "", false},
		{"[2001:db8::1]:7420", "", false},
		{"[fe80::1%25lo]:7420", "", false},
		{"xn--localhst-s8a:7420", "", false},
		{"", "", false},
		{"[127.0.0.1", "", false},
		{"[localhost]", "", false},
		{"[localhost]:7420", "", false},
		{"localhost", "http://localhost:3000", true},
		{"localhost", "https://127.0.0.1", true},
		{"localhost", "http://[::1]:5173", true},
		{"localhost", "https://app.example.com", true},
		{"localhost", "http://app.example.com", false},
		{"localhost", "https://app.example.com:444", false},
		{"localhost", "https://evil.example", false},
		{"localhost", "https://app.example.com.evil.example", false},
		{"localhost", "http://127.0.0.1:80@evil.example", false},
		{"localhost", "http://xn--lcalhost-j4a", false},
		{"localhost", "null", false},
		{"localhost", "file://", false},
		{"localhost", "chrome-extension://localhost", false},
		{"localhost", "localhost", false},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(rig.Hello))
		r.Host = tt.host
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if ok := w.Code != http.StatusForbidden; ok != tt.ok {
			t.Errorf("Host %q, Origin %q: %d", tt.host, tt.origin, w.Code)
		}
		if !tt.ok && !strings.Contains(w.Body.String(), "configuration") {
			t.Errorf("%q does not say what to do", w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(rig.Hello))
	r.Host, r.Header = "localhost", http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Origin": {"http://localhost:3000", "https://evil.example"}}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("two Origins: %d", w.Code)
	}
}

// TestCORS: pages of the origins that are configured may read answers, and no other page; none
// may with cookies.
func TestCORS(t *testing.T) {
	const named = "https://app.example.com"
	h, err := host.New(host.Config{
		Config: dispatch.Config{Do: func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, nil }, Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil }},
		Terms:  host.Terms{Origins: []string{named}},
		Access: transport.Access{Principal: func(r *http.Request) (*gate.Principal, error) {
			if r.Header.Get("Authorization") == "" {
				return nil, errors.New("no token")
			}
			return gate.Local(), nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, origin string, header ...string) *http.Response {
		r := httptest.NewRequest(method, "/mcp", strings.NewReader(rig.Hello))
		r.Host = "localhost"
		r.Header.Set("Origin", origin)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type,mcp-session-id, Mcp-Param-City, cookie, x-other"}
	post := []string{"Authorization", "Bearer t", "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}

	asked := ask("OPTIONS", named, preflight...)
	if asked.StatusCode != http.StatusNoContent || asked.Header.Get("Access-Control-Allow-Origin") != named || !strings.Contains(asked.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("the question of a page: %d %v", asked.StatusCode, asked.Header)
	}
	if got := asked.Header.Get("Access-Control-Allow-Headers"); got != "authorization, content-type, mcp-session-id, mcp-param-city" {
		t.Errorf("headers %q", got)
	}
	for name, resp := range map[string]*http.Response{"an answer": ask("POST", named, post...), "a refusal": ask("POST", named)} {
		if resp.Header.Get("Access-Control-Allow-Origin") != named || !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") || resp.Header.Get("Vary") != "Origin" {
			t.Errorf("%s: %d %v", name, resp.StatusCode, resp.Header)
		}
	}
	for _, origin := range []string{"http://localhost:3000", "https://evil.example", "null", named + ":8443", named + ".evil.example"} {
		for _, resp := range []*http.Response{ask("OPTIONS", origin, preflight...), ask("POST", origin, post...)} {
			if resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s may read answers: %v", origin, resp.Header)
			}
		}
	}
	for _, resp := range []*http.Response{asked, ask("POST", named, post...)} {
		if resp.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("cookies are allowed")
		}
	}
}
