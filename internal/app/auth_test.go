package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/console"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A site is a gateway that listens for a team, with a server behind it.
type site struct {
	*app.App
	t       *testing.T
	cfg     *config.Config
	url     string // of the MCP endpoint
	log     *lockedBuffer
	waits   chan struct{} // has something when a call of files__wait has begun
	asks    atomic.Bool   // whether files__wait asks its client, and ends with the question
	ended   chan struct{} // has something when such a call has ended
	headers chan http.Header
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const siteGrants = `- {to: ["role:dev"], tools: ["files__*"]}
- {to: ["*"], tools: [files__read]}
- {to: [builder], tools: [files__write]}
`

// newSite starts a gateway with a configuration, in which %[1]s is a free port of the
// loopback, and clients reach the gateway there.
func newSite(t *testing.T, yaml string) *site {
	t.Helper()
	s := &site{t: t, log: new(lockedBuffer), waits: make(chan struct{}, 10), ended: make(chan struct{}, 10), headers: make(chan http.Header, 1000)}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"read", "write", "wait"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if name == "wait" {
				asks := s.asks.Load() // a test may change it once the call has begun
				s.waits <- struct{}{}
				if asks {
					_, _ = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Go on?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
				} else {
					<-ctx.Done()
				}
				s.ended <- struct{}{}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return server }, nil)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.headers <- r.Header.Clone():
		default:
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	yaml = strings.ReplaceAll(yaml, "%ADDR%", freeport.Address(t))
	// The server may take longer than the tests wait: what ends is ended.
	yaml += fmt.Sprintf("groups: {docs: [files__read], both: [files__read, files__write]}\nservers: {files: {url: %q, private: true, timeout: 5m}}\n", upstream.URL)
	s.cfg = load(t, yaml)
	write(t, s.cfg.Policy.Grants, siteGrants)
	var err error
	if s.App, err = app.New(t.Context(), s.cfg, slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.App.Close(context.Background()) })
	url, _, _ := run(t, s.App, app.Front{Listen: s.cfg.Listen, Console: "127.0.0.1:0", Desk: func(a *app.App) desks.Desk { return console.New(a) }})
	s.url = url
	return s
}

// send sends a request of a client without a session; headers are pairs.
func (s *site) send(client *http.Client, url, method, params string, headers ...string) (int, http.Header, gate.Doc) {
	s.t.Helper()
	resp := s.open(client, url, method, params, headers...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			b = []byte(data)
		}
	}
	doc, _ := gate.ParseDoc(bytes.TrimSpace(b))
	return resp.StatusCode, resp.Header, doc
}

func (s *site) open(client *http.Client, url, method, params string, headers ...string) *http.Response {
	s.t.Helper()
	if params != "" {
		params += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		r.Header.Set(name, value)
	}
	if doc, err := gate.ParseDoc([]byte(body)); err == nil {
		r.Header.Set("Mcp-Name", doc.At("/params/name").Text())
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

// tools are what a request with these headers is offered of the server, sorted.
func (s *site) tools(client *http.Client, url string, headers ...string) (int, string) {
	s.t.Helper()
	status, _, doc := s.send(client, url, "tools/list", "", headers...)
	var names []string
	for t := range doc.At("/result/tools").Elements() {
		if name, ok := strings.CutPrefix(t.Get("name").Text(), "files__"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return status, strings.Join(names, " ")
}

const teamConfig = `version: 1
listen: %ADDR%
public_url: http://%ADDR%
principals: {builder: {roles: [ci, dev]}, carol: {roles: [ops]}}
auth:
  keys: true
  issuers:
    corp: {issuer: ISSUER, scopes: [mcp], claims: {roles: groups, keep: [sub]}, roles: {"eng-*": dev, all: everybody}}
`

func newTeam(t *testing.T) (*site, *authtest.Provider) {
	p := authtest.New(t)
	return newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)), p
}

func (s *site) token(p *authtest.Provider, changes map[string]any) string {
	all := map[string]any{"aud": s.url}
	for k, v := range changes {
		all[k] = v
	}
	return "Bearer " + p.Sign(s.t, p.Claims(all), nil)
}

// TestTwoTeams: over one endpoint two people are offered different tools, by the roles in their tokens.
// A client that sends no token, or a bad one, learns where to get one.
func TestTwoTeams(t *testing.T) {
	s, p := newTeam(t)
	c := http.DefaultClient
	for name, tt := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"engineering":                      {nil, "read wait write"},
		"others":                           {map[string]any{"sub": "bob", "groups": []string{"sales"}}, "read"},
		"listed: the token narrows":        {map[string]any{"sub": "builder", "groups": []string{"sales"}}, "read write"},
		"listed: the token never widens":   {map[string]any{"sub": "carol"}, "read"},
		"roles of the configuration's own": {map[string]any{"sub": "bob", "groups": []string{"dev"}}, "read"},
	} {
		if status, got := s.tools(c, s.url, "Authorization", s.token(p, tt.claims)); status != 200 || got != tt.want {
			t.Errorf("%s: %d %q, want %q", name, status, got, tt.want)
		}
	}
	status, _, _ := s.send(c, s.url, "tools/call", `"name":"files__read","arguments":{}`, "Authorization", s.token(p, nil))
	if status != 200 {
		t.Errorf("a call: %d", status)
	}
	status, header, _ := s.send(c, s.url, "tools/list", "")
	want := fmt.Sprintf(`Bearer scope="mcp", resource_metadata="%s"`, strings.TrimSuffix(s.url, "/mcp")+"/.well-known/oauth-protected-resource/mcp")
	if status != 401 || header.Get("WWW-Authenticate") != want || header.Get("Cache-Control") != "no-store" {
		t.Errorf("nobody: %d %v, want %s", status, header, want)
	}
	for range len(s.headers) { // more may come
		if h := <-s.headers; h.Get("Authorization") != "" {
			t.Error("a token goes to the server")
		}
	}
}

// TestKeysOfAURL: the keys of an issuer can be named, for one that has no metadata.
func TestKeysOfAURL(t *testing.T) {
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL+", jwks: "+p.URL+"/keys"))
	if status, got := s.tools(http.DefaultClient, s.url, "Authorization", s.token(p, nil)); status != 200 || got != "read wait write" {
		t.Errorf("%d %q", status, got)
	}
}

// TestWithoutIssuers: where no issuer is configured, no client is sent to ask for a token.
func TestWithoutIssuers(t *testing.T) {
	s := newSite(t, "version: 1\nlisten: %ADDR%\nauth: {keys: true}\n")
	if status, header, _ := s.send(http.DefaultClient, s.url, "tools/list", ""); status != 401 || strings.Contains(header.Get("WWW-Authenticate"), "resource_metadata") {
		t.Errorf("%d %v", status, header)
	}
	for _, path := range []string{"", "/mcp", "/mcp/docs"} {
		resp, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("metadata at %q: %d", path, resp.StatusCode)
		}
	}
}

// TestStepUp: a caller that lacks scopes for a call learns which ones, over HTTP in the form in which
// clients ask for them, and the tool stays in the list. A caller without a token to widen gets only the
// reason.
func TestStepUp(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "scopes.rego")
	write(t, rules, `package wasmgate

deny contains {"reason": "files are written with the scope files:write", "scopes": ["files:write"]} if {
	input.tool.local_name == "write"
	not "files:write" in split(object.get(input.principal.claims, "scope", ""), " ")
}
`)
	p := authtest.New(t)
	yaml := strings.NewReplacer("ISSUER", p.URL, "keep: [sub]", "keep: [scope]").Replace(teamConfig)
	s := newSite(t, yaml+fmt.Sprintf("policy: {packs: [grants], paths: [%q], data: {grants: grants.yaml}}\n", rules))
	key, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	some, all := s.token(p, nil), s.token(p, map[string]any{"scope": "mcp files:write"})
	if _, offered := s.tools(http.DefaultClient, s.url, "Authorization", some); offered != "read wait write" {
		t.Errorf("offered: %s", offered)
	}
	metadata := strings.TrimSuffix(s.url, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	for name, tt := range map[string]struct {
		url, tool, authorization string
		challenge                string
		code                     string
	}{
		"without the scope":            {s.url, "write", some, metadata, "refused_authorize"},
		"without the scope, at a path": {s.url + "/both", "write", some, metadata + "/both", "refused_authorize"},
		"with the scope":               {s.url, "write", all, "", ""},
		"another tool":                 {s.url, "read", some, "", ""},
		"by an API key":                {s.url, "write", "Bearer " + key.Secret, "", "refused_authorize"},
	} {
		status, header, doc := s.send(http.DefaultClient, tt.url, "tools/call", fmt.Sprintf(`"name":"files__%s","arguments":{}`, tt.tool), "Authorization", tt.authorization)
		should, want := 200, ""
		if tt.challenge != "" {
			should, want = 403, fmt.Sprintf(`Bearer error="insufficient_scope", error_description="the token lacks a scope", scope="files:write mcp", resource_metadata="%s"`, tt.challenge)
		}
		if got := header.Get("WWW-Authenticate"); status != should || got != want {
			t.Errorf("%s: %d %q, want %d %q", name, status, got, should, want)
		}
		refusal := doc.At("/result/_meta/" + strings.ReplaceAll(gate.MetaRefusal, "/", "~1"))
		if got := refusal.Get("code").Text(); got != tt.code || tt.code != "" && !strings.Contains(doc.At("/result/content/0/text").Text(), "files:write") {
			t.Errorf("%s: %s, want %q", name, doc.Raw(), tt.code)
		}
	}

	// In a session of revision 2025-11-25 the challenge is the same.
	of := front{http.DefaultClient, s.url, []string{"Authorization", some}}
	write := way{"a session's call", "POST", strings.Replace(oldCall, "files__read", "files__write", 1), []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", s.session(some)}}
	status, header, body := of.send(t, write)
	if got, want := header.Get("WWW-Authenticate"), `error="insufficient_scope"`; status != 403 || !strings.Contains(got, want) || !strings.Contains(got, `scope="files:write mcp", resource_metadata="`+metadata+`"`) || !strings.Contains(body, "files:write") {
		t.Errorf("in a session: %d %q %s", status, got, body)
	}
	of.headers[1] = all
	if status, _, body := of.send(t, write); status != 200 || !strings.Contains(body, `"write"`) {
		t.Errorf("in the session, with the next token: %d %s", status, body)
	}
	// Over the control socket there is no token: the reason names the scope.
	_, err = s.Calls.Call(t.Context(), calls.Request{Tool: "files__write", Args: "{}", As: "builder"})
	if e, ok := errors.AsType[*calls.Error](err); !ok || e.Code != "refused_authorize" || !strings.Contains(e.Reason, "files:write") {
		t.Errorf("without HTTP: %v", err)
	}
}

// TestNobodyToAskInLines: a client over stdio has no token to widen, and its person may not answer: the answer says which scope is
// lacking, or who has to approve, the client is asked nothing, and its connection goes on.
func TestNobodyToAskInLines(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.rego")
	write(t, rules, `package wasmgate

deny contains {"reason": "files are written with the scope files:write", "scopes": ["files:write"]} if input.tool.local_name == "write"

ask contains "somebody else has to look" if input.tool.local_name == "wait"
`)
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+fmt.Sprintf("policy: {packs: [grants], paths: [%q], data: {grants: grants.yaml}}\napprovals: {by: [carol], hold: 0s}\n", rules))
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		in, toGateway := io.Pipe()
		fromGateway, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() {
			if err := app.Follow(ctx, s.cfg, quiet, dial(t, s.cfg), app.Front{Stdio: true, As: "builder", In: in, Out: out, Ready: func(context.Context, *app.App, string) {}}); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", revision, err)
			}
		})
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			t.Errorf("%s: the client is asked %q", revision, r.Params.Message)
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
		session, err := client.Connect(ctx, &mcp.IOTransport{Reader: fromGateway, Writer: toGateway}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ tool, code, says string }{
			{"write", "refused_authorize", "files:write"}, {"wait", "refused_approve", "waits for approval"}, {"read", "", "read"},
		} {
			res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "files__" + tt.tool, Arguments: map[string]any{}})
			if err != nil {
				t.Fatalf("%s, %s: %v", revision, tt.tool, err)
			}
			said, _ := json.Marshal(res)
			if res.IsError != (tt.code != "") || !strings.Contains(string(said), tt.says) || !strings.Contains(string(said), tt.code) {
				t.Errorf("%s, %s: %s", revision, tt.tool, said)
			}
		}
		session.Close()
		cancel()
		toGateway.Close()
		following.Wait()
	}
	if all, err := s.Approvals.List(t.Context()); err != nil || len(all) == 0 || all[0].MayAnswer() != "carol" {
		t.Errorf("approvals: %+v, %v", all, err)
	}
}

// TestApprovers: where another person has to approve, neither the caller's own token nor that of a
// person without the role counts. The record names the approver, and how they were verified.
func TestApprovers(t *testing.T) {
	p := authtest.New(t)
	yaml := strings.ReplaceAll(teamConfig, "all: everybody", "leads: lead") + "policy: {packs: [grants, approve]}\napprovals: {by: [\"role:lead\"], not_self: true, hold: 0s}\n"
	s := newSite(t, strings.ReplaceAll(yaml, "ISSUER", p.URL))
	lead := func(sub string) string {
		return s.token(p, map[string]any{"sub": sub, "groups": []string{"eng-a", "leads"}})
	}
	call := func() (status int, said string) {
		status, _, doc := s.send(http.DefaultClient, s.url, "tools/call", `"name":"files__write","arguments":{}`, "Authorization", lead("alice"))
		return status, doc.String()
	}
	if status, said := call(); status != 200 || !strings.Contains(said, "refused_approve") {
		t.Fatalf("%d %s", status, said)
	}
	all, err := s.Approvals.List(t.Context())
	if err != nil || len(all) != 1 || all[0].MayAnswer() != "role:lead; not alice" {
		t.Fatalf("%+v %v", all, err)
	}
	answer := func(as, token string) error {
		_, err := s.Approvals.Decide(t.Context(), approvals.DecideRequest{ID: all[0].ID, Verdict: gate.Approved, As: as, Token: strings.TrimPrefix(token, "Bearer ")})
		return err
	}
	for name, tt := range map[string]struct{ as, token, want string }{
		"the caller":                   {"", lead("alice"), "alice has made the call"},
		"without the role":             {"", s.token(p, map[string]any{"sub": "bob"}), "bob may not approve it"},
		"the operator":                 {"", "", "local may not approve it"},
		"a listed one, by the name":    {"carol", "", "carol may not approve it"},
		"somebody else's token":        {"carol", lead("dora"), "the token belongs to dora"},
		"a token of another's issuer":  {"", authtest.New(t).Sign(t, p.Claims(map[string]any{"aud": s.url, "groups": []string{"leads"}}), nil), "is refused"},
		"somebody who is not listed":   {"nobody", "", "no principal"},
		"a token for somebody's tools": {"", s.token(p, map[string]any{"sub": "dora", "aud": "https://elsewhere.example"}), "is refused"},
	} {
		if err := answer(tt.as, tt.token); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, said := call(); !strings.Contains(said, "refused_approve") {
		t.Fatalf("passes: %s", said)
	}
	if err := answer("", lead("dora")); err != nil {
		t.Fatal(err)
	}
	if _, said := call(); !strings.Contains(said, `"write"`) {
		t.Errorf("does not pass: %s", said)
	}
	var seen []audit.Approval
	for e, err := range audit.Read(t.Context(), s.AuditPath(), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == gate.EventApproval && e.Approval.State == approval.StateApproved || e.Event == gate.Granted && e.Approval.ID != "" {
			seen = append(seen, e.Approval)
		}
	}
	if len(seen) != 2 || seen[0].By != "cli:dora" || seen[0].Auth != "bearer" || seen[1].By != "cli:dora" || seen[1].Auth != "bearer" {
		t.Errorf("recorded %+v", seen)
	}
}

// TestBadInputs: the table of what else a request can bring instead of a good token.
func TestBadInputs(t *testing.T) {
	s, p := newTeam(t)
	good := s.token(p, nil)
	c := http.DefaultClient
	invalid := `error="invalid_token", error_description="the token is not valid here"`
	for name, tt := range map[string]struct {
		url     string // "": the endpoint
		headers []string
		status  int
		says    string
	}{
		"none":                          {"", nil, 401, "Bearer scope="},
		"no token":                      {"", []string{"Authorization", "Bearer x"}, 401, invalid},
		"another audience":              {"", []string{"Authorization", s.token(p, map[string]any{"aud": "https://other.example.com/mcp"})}, 401, invalid},
		"the audience with a slash":     {"", []string{"Authorization", s.token(p, map[string]any{"aud": s.url + "/"})}, 401, invalid},
		"expired":                       {"", []string{"Authorization", s.token(p, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})}, 401, "the token has expired"},
		"an ID token":                   {"", []string{"Authorization", s.token(p, map[string]any{"nonce": "n"})}, 401, invalid},
		"bound by DPoP":                 {"", []string{"Authorization", s.token(p, map[string]any{"cnf": map[string]any{"jkt": "x"}})}, 401, invalid},
		"bound to a certificate":        {"", []string{"Authorization", s.token(p, map[string]any{"cnf": map[string]any{"x5t#S256": "x"}})}, 401, invalid},
		"without the scope":             {"", []string{"Authorization", s.token(p, map[string]any{"scope": "other"})}, 403, `error="insufficient_scope"`},
		"the id of nobody":              {"", []string{"Authorization", s.token(p, map[string]any{"sub": "local"})}, 403, ""},
		"two credentials":               {"", []string{"Authorization", good, "X-API-Key", "wgk_x"}, 400, ""},
		"two tokens":                    {"", []string{"Authorization", good, "Authorization", good}, 400, ""},
		"in the URL":                    {s.url + "?access_token=x", nil, 400, ""},
		"another Host":                  {"", []string{"Authorization", good, "Host", "evil.example.com"}, 403, ""},
		"another Origin":                {"", []string{"Authorization", good, "Origin", "https://evil.example.com"}, 403, ""},
		"a child's token at the parent": {"", []string{"Authorization", s.token(p, map[string]any{"aud": s.url + "/docs"})}, 401, invalid},
		"the parent's at a child":       {s.url + "/docs", []string{"Authorization", good}, 200, ""},
		"a child's at the child":        {s.url + "/docs", []string{"Authorization", s.token(p, map[string]any{"aud": s.url + "/docs"})}, 200, ""},
		"a list of audiences":           {"", []string{"Authorization", s.token(p, map[string]any{"aud": []string{"x", s.url}})}, 200, ""},
	} {
		url := tt.url
		if url == "" {
			url = s.url
		}
		status, header, _ := s.send(c, url, "tools/list", "", tt.headers...)
		if status != tt.status || !strings.Contains(header.Get("WWW-Authenticate"), tt.says) {
			t.Errorf("%s: %d %s", name, status, header.Get("WWW-Authenticate"))
		}
		if status == 403 && tt.says == "" && header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: it is challenged to get another token", name)
		}
	}
	if _, tools := s.tools(c, s.url+"/docs", "Authorization", good); tools != "read" {
		t.Errorf("at the group's endpoint: %q", tools)
	}
	for path, resource := range map[string]string{"": s.url, "/mcp": s.url, "/mcp/docs": s.url + "/docs", "/mcp/none": s.url + "/none"} {
		status, body := get(t, strings.TrimSuffix(s.url, "/mcp")+"/.well-known/oauth-protected-resource"+path)
		doc, _ := gate.ParseDoc([]byte(body))
		if status != 200 || doc.Get("resource").Text() != resource || doc.At("/authorization_servers/0").Text() != p.URL || doc.At("/scopes_supported/0").Text() != "mcp" {
			t.Errorf("metadata at %q: %d %s", path, status, body)
		}
	}
	p.Down.Store(true)
	away := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL))
	if status, header, _ := away.send(c, away.url, "tools/list", "", "Authorization", away.token(p, nil)); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("with the issuer away: %d %v", status, header)
	}
}

// TestPagesCheckHost: pages that are not MCP answer to no name but the gateway's own, either.
func TestPagesCheckHost(t *testing.T) {
	s, _ := newTeam(t)
	root := strings.TrimSuffix(s.url, "/mcp")
	for _, path := range []string{"/connect/style.css", "/connect/unknown", "/connect/callback", "/connect/signin", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/oauth/client.json"} {
		const no = "this Host is not allowed"
		if _, own := get(t, root+path); strings.Contains(own, no) {
			t.Errorf("%s by the gateway's own name: %s", path, own)
		}
		for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7420", "10.0.0.1"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, root+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(string(said), no) {
				t.Errorf("%s by the name %s: %d %s, %v", path, host, resp.StatusCode, said, err)
			}
		}
	}
}

// TestKeysAtTheEndpoint: a key identifies its principal, with narrowed rights, until it is revoked.
// Then everything that is under way with it ends.
func TestKeysAtTheEndpoint(t *testing.T) {
	s, _ := newTeam(t)
	c := http.DefaultClient
	make := func(r callers.KeyRequest) *callers.Key {
		t.Helper()
		k, err := s.Callers.CreateKey(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	whole := make(callers.KeyRequest{Name: "whole", As: "builder"})
	for name, tt := range map[string]struct {
		key  *callers.Key
		want string
	}{
		"whole":                 {whole, "read wait write"},
		"of a role":             {make(callers.KeyRequest{Name: "ci", As: "builder", Roles: []string{"ci"}}), "read write"},
		"of a group":            {make(callers.KeyRequest{Name: "docs", As: "builder", Groups: []string{"docs"}}), "read"},
		"of a server":           {make(callers.KeyRequest{Name: "files", As: "builder", Servers: []string{"files"}}), "read wait write"},
		"of a server, not this": {make(callers.KeyRequest{Name: "local", As: "builder", Servers: []string{"local"}}), ""},
	} {
		if status, got := s.tools(c, s.url, "Authorization", "Bearer "+tt.key.Secret); status != 200 || got != tt.want {
			t.Errorf("%s: %d %q, want %q", name, status, got, tt.want)
		}
	}
	if status, got := s.tools(c, s.url, "X-Api-Key", whole.Secret); status != 200 || got != "read wait write" {
		t.Errorf("in X-API-Key: %d %q", status, got)
	}
	for name, r := range map[string]callers.KeyRequest{
		"nobody":       {Name: "k", As: "nobody"},
		"local":        {Name: "k", As: "local"},
		"another role": {Name: "k", As: "builder", Roles: []string{"ops"}},
		"no group":     {Name: "k", As: "builder", Groups: []string{"none"}},
		"no server":    {Name: "k", As: "builder", Servers: []string{"none"}},
	} {
		if k, err := s.Callers.CreateKey(t.Context(), r); err == nil {
			t.Errorf("a key for %s: %v", name, k.ID)
		}
	}
	bearer := "Bearer " + whole.Secret
	call, stream := make2(s, bearer)
	if _, err := s.Callers.RevokeKey(t.Context(), whole.ID); err != nil {
		t.Fatal(err)
	}
	ends(t, "the call", call)
	ends(t, "the stream", stream)
	if status, _ := s.tools(c, s.url, "Authorization", bearer); status != 401 {
		t.Errorf("a revoked key: %d", status)
	}
}

// TestBreakGlass: for a time the operator, and no one else, answers questions that others have to
// answer. It lets no further callers in, and allows nothing that was denied.
func TestBreakGlass(t *testing.T) {
	p := authtest.New(t)
	yaml := strings.ReplaceAll(teamConfig, "all: everybody", "leads: lead") + "policy: {packs: [grants, approve]}\napprovals: {by: [\"role:lead\"], not_self: true, hold: 0s}\n"
	s := newSite(t, strings.ReplaceAll(yaml, "ISSUER", p.URL))
	alice := s.token(p, map[string]any{"groups": []string{"eng-a"}})
	asked := func() string {
		t.Helper()
		_, _, doc := s.send(http.DefaultClient, s.url, "tools/call", `"name":"files__write","arguments":{}`, "Authorization", alice)
		if !strings.Contains(doc.String(), "refused_approve") {
			t.Fatalf("not asked: %s", doc)
		}
		all, err := s.Approvals.List(t.Context())
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		return all[len(all)-1].ID
	}
	id := asked()
	approve := approvals.DecideRequest{ID: id, Verdict: gate.Approved}
	if _, err := s.Approvals.Decide(t.Context(), approve); err == nil {
		t.Fatal("the operator answers for the leads")
	}
	if _, err := s.Approvals.BreakGlass(t.Context(), approvals.GlassRequest{For: time.Hour, Reason: "the leads are away"}); err != nil {
		t.Fatal(err)
	}
	if st := s.Overview.Status(); st.BreakGlass.IsZero() || !strings.Contains(strings.Join(st.Problems, " "), "break-glass") {
		t.Errorf("status: %+v", st.Problems)
	}
	for who, r := range map[string]approvals.DecideRequest{
		"the caller":       {ID: id, Verdict: gate.Approved, Token: strings.TrimPrefix(alice, "Bearer ")},
		"somebody by name": {ID: id, Verdict: gate.Approved, As: "builder"},
	} {
		if _, err := s.Approvals.Decide(t.Context(), r); err == nil {
			t.Errorf("%s answers", who)
		}
	}
	if status, _ := s.tools(http.DefaultClient, s.url); status != 401 {
		t.Errorf("nobody is let in: %d", status)
	}
	if _, _, doc := s.send(http.DefaultClient, s.url, "tools/call", `"name":"files__write","arguments":{}`, "Authorization", s.token(p, map[string]any{"sub": "bob", "groups": []string{"sales"}})); !strings.Contains(doc.String(), "unknown tool") {
		t.Errorf("what is granted to nobody: %s", doc)
	}
	done, err := s.Approvals.Decide(t.Context(), approve)
	if err != nil || done.Approval.By != "break-glass:local" {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, _, doc := s.send(http.DefaultClient, s.url, "tools/call", `"name":"files__write","arguments":{}`, "Authorization", alice); !strings.Contains(doc.String(), `"text":"write"`) {
		t.Errorf("the approved call: %s", doc)
	}
	if _, err := s.Approvals.BreakGlass(t.Context(), approvals.GlassRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approvals.Decide(t.Context(), approvals.DecideRequest{ID: asked(), Verdict: gate.Approved}); err == nil {
		t.Error("the operator answers after the end")
	}
	raw, err := os.ReadFile(s.cfg.Audit.Path)
	if err != nil || strings.Count(string(raw), `"event":"admin"`) != 2 || !strings.Contains(string(raw), "the leads are away") || !strings.Contains(string(raw), `"by":"break-glass:local"`) {
		t.Errorf("the log: %v", err)
	}
}

// TestRevokedPrincipal: revoking the tokens of a principal ends its API keys, and no one else's.
func TestRevokedPrincipal(t *testing.T) {
	s, _ := newTeam(t)
	keys := make(map[string]*callers.Key)
	for _, as := range []string{"builder", "carol"} {
		k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: as})
		if err != nil {
			t.Fatal(err)
		}
		keys[as] = k
	}
	done, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "builder"})
	if err != nil || !slices.Equal(done.Keys, []string{keys["builder"].ID}) {
		t.Fatalf("%+v, %v", done, err)
	}
	for as, want := range map[string]int{"builder": 401, "carol": 200} {
		if status, _ := s.tools(http.DefaultClient, s.url, "Authorization", "Bearer "+keys[as].Secret); status != want {
			t.Errorf("%s: %d, want %d", as, status, want)
		}
	}
}

// make2 begins a call that waits, and a stream of notifications, and returns what is closed
// when each has ended, once the call has reached its server.
func make2(s *site, authorization string) (call, stream chan struct{}) {
	s.t.Helper()
	call, stream = make(chan struct{}), make(chan struct{})
	said := make(chan string, 1)
	go func() {
		defer close(call)
		resp := s.open(http.DefaultClient, s.url, "tools/call", `"name":"files__wait","arguments":{}`, "Authorization", authorization)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		said <- fmt.Sprintf("%s %s", resp.Status, b)
	}()
	listens := s.open(http.DefaultClient, s.url, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`, "Authorization", authorization)
	go func() {
		defer close(stream)
		_, _ = io.Copy(io.Discard, listens.Body)
		listens.Body.Close()
	}()
	select {
	case <-s.waits:
	case got := <-said:
		s.t.Fatalf("the call ended before it reached its server: %s\n%s", got, s.log)
	}
	return call, stream
}

func ends(t *testing.T, what string, c chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Errorf("%s goes on", what)
	}
}

// TestRevokedTokens end at once, with what is under way, and stay revoked over a restart;
// others hold.
func TestRevokedTokens(t *testing.T) {
	s, p := newTeam(t)
	c := http.DefaultClient
	for name, tt := range map[string]struct {
		claims map[string]any
		r      callers.RevokeRequest
	}{
		"by id":        {map[string]any{"sub": "ann", "jti": "a1"}, callers.RevokeRequest{Issuer: "corp", TokenID: "a1"}},
		"by subject":   {map[string]any{"sub": "ben", "jti": "b1"}, callers.RevokeRequest{Subject: "ben"}},
		"by principal": {map[string]any{"sub": "cleo", "jti": "c1"}, callers.RevokeRequest{Principal: "cleo"}},
	} {
		token := s.token(p, tt.claims)
		call, stream := make2(s, token)
		done, err := s.Callers.Revoke(t.Context(), tt.r)
		if err != nil || done.Seen != 1 {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		ends(t, name+": the call", call)
		ends(t, name+": the stream", stream)
		if status, _ := s.tools(c, s.url, "Authorization", token); status != 401 {
			t.Errorf("%s: %d afterwards", name, status)
		}
	}
	if status, _ := s.tools(c, s.url, "Authorization", s.token(p, map[string]any{"sub": "dora", "jti": "d1"})); status != 200 {
		t.Errorf("another token: %d", status)
	}
	if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Issuer: "corp"}); err == nil {
		t.Error("a revocation of nothing is taken")
	}
	var kept []map[string]any
	b, err := os.ReadFile(filepath.Join(s.cfg.State, "revoked.json"))
	if err != nil || json.Unmarshal(b, &kept) != nil || len(kept) != 3 {
		t.Errorf("kept: %s, %v", b, err)
	}
}

// TestStrangersLeaveNoTrace: nothing that the gateway writes, prints and keeps contains tokens and
// keys, good or bad. The audit log names verified callers, and how they were verified, and summarizes
// refused requests.
func TestStrangersLeaveNoTrace(t *testing.T) {
	unraced.Long(t)
	var traces lockedBuffer
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+collected(t, &traces))
	c := http.DefaultClient
	k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "whole", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	token := s.token(p, map[string]any{"jti": "canary-id"})
	bad := s.token(p, map[string]any{"aud": "https://other.example.com"})
	canaries := []string{"canary-id", k.Secret[len(k.Secret)-30:]}
	for _, full := range []string{token, bad} {
		parts := strings.Split(full, ".")
		canaries = append(canaries, parts[1][:40], parts[2][:40])
	}
	var said strings.Builder
	for _, credential := range []string{token, bad, "Bearer " + k.Secret, "Bearer " + k.Secret + "x", bad} {
		_, header, doc := s.send(c, s.url, "tools/call", `"name":"files__read","arguments":{}`, "Authorization", credential)
		fmt.Fprintln(&said, header, doc)
		who, err := s.Callers.WhoAmI(t.Context(), callers.WhoRequest{Token: strings.TrimPrefix(credential, "Bearer ")})
		fmt.Fprintf(&said, "%+v %v\n", who, err)
	}
	for name, url := range map[string]string{"a token": "?access_token=", "a key": "?x=1&api_key=", "at a group": "/docs?access_token="} {
		inURL := rand.Text()
		canaries = append(canaries, inURL)
		status, header, doc := s.send(c, s.url+url+inURL, "tools/call", `"name":"files__read","arguments":{}`, "Authorization", token)
		if fmt.Fprintln(&said, header, doc); status != 400 {
			t.Errorf("%s in the URL: %d", name, status)
		}
	}
	list, err := s.Callers.Keys(t.Context())
	fmt.Fprintf(&said, "%+v %v %+v\n", list, err, s.Overview.Status())
	if _, err := s.Callers.RevokeKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "alice"}); err != nil {
		t.Fatal(err)
	}
	s.RecordDenials()
	said.WriteString(told(t, s.App, &traces, "files__read") + s.log.String())
	dir := filepath.Dir(s.cfg.File)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 || d.Type()&fs.ModeSocket != 0 {
			return err
		}
		b, err := os.ReadFile(path)
		said.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range canaries {
		if strings.Contains(said.String(), canary) {
			t.Errorf("%.12s... stands in what the gateway writes or tells", canary)
		}
	}
	events := make(map[gate.Event]int)
	for e, err := range audit.Read(t.Context(), s.cfg.Audit.Path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		events[e.Event]++
		switch {
		case e.Event == gate.Done && e.Principal == "alice":
			if e.Auth != "bearer" || e.Issuer != "corp" || e.Client.ID != "agent" || len(e.Credential) != 16 {
				t.Errorf("a call of Alice: %s", e.Raw)
			}
		case e.Event == gate.Done && e.Principal == "builder":
			if e.Auth != "apikey" || e.Credential != k.ID {
				t.Errorf("a call with the key: %s", e.Raw)
			}
		case e.Event == audit.Denied:
			if e.Network != "127.0.0.0/24" || e.Count != 3 || e.Reasons[0] != "invalid" && e.Reasons[0] != "malformed" {
				t.Errorf("refused requests: %s", e.Raw)
			}
		}
	}
	if events[audit.Key] != 2 || events[audit.Revoke] != 1 || events[audit.Denied] != 2 {
		t.Errorf("events %v", events)
	}
}

// TestProxy: the headers of a proxy count if it proves itself, and are ignored in all other requests.
func TestProxy(t *testing.T) {
	unraced.Long(t)
	dir := t.TempDir()
	socket := filepath.Join(dir, "proxy.sock")
	secret := fmt.Sprintf("%032x", time.Now().UnixNano())
	const more = "user: X-Forwarded-User, groups: X-Forwarded-Groups, email: X-Forwarded-Email, roles: {eng: dev}}}\n"
	named := []string{"X-Forwarded-User", "ann", "X-Forwarded-Groups", "eng, all", "X-Forwarded-Email", "ann@example.com"}
	over := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer over.CloseIdleConnections()

	bySecret := newSite(t, "version: 1\nlisten: %ADDR%\nprincipals: {builder: {roles: [ci]}}\nauth: {keys: true, proxy: {from: [127.0.0.1], secret: {header: X-Proxy-Secret, value: \""+secret+"\"}, "+more)
	proven := append(slices.Clone(named), "X-Proxy-Secret", secret)
	for name, tt := range map[string]struct {
		headers []string
		status  int
		tools   string
	}{
		"proven":               {proven, 200, "read wait write"},
		"no user":              {[]string{"X-Proxy-Secret", secret}, 401, ""},
		"two users":            {append(slices.Clone(proven), "X-Forwarded-User", "eve"), 401, ""},
		"a token beside":       {append(slices.Clone(proven), "Authorization", "Bearer x"), 400, ""},
		"no secret":            {named, 401, ""},
		"another secret":       {append(slices.Clone(named), "X-Proxy-Secret", secret[1:]+"0"), 401, ""},
		"two secrets":          {append(slices.Clone(proven), "X-Proxy-Secret", secret), 401, ""},
		"local, by the header": {[]string{"X-Forwarded-User", "local", "X-Proxy-Secret", secret}, 403, ""},
	} {
		if status, got := bySecret.tools(http.DefaultClient, bySecret.url, tt.headers...); status != tt.status || got != tt.tools {
			t.Errorf("%s: %d %q", name, status, got)
		}
	}
	key, err := bySecret.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	for who, headers := range map[string][]string{"ann": proven, "": {"Authorization", "Bearer " + key.Secret}} { // who opens a page
		r := httptest.NewRequest(http.MethodGet, "/connect/x", nil)
		r.RemoteAddr = "127.0.0.1:5"
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		if got, err := bySecret.Proxied(r); (err == nil) != (who != "") || err == nil && got.ID != who {
			t.Errorf("a page: %+v, %v, want %q", got, err, who)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	bySocket := newSite(t, "version: 1\nlisten: %ADDR%\nauth: {local: allow, proxy: {unix: "+socket+", "+more)
	if status, got := bySocket.tools(over, "http://localhost/mcp", named...); status != 200 || got != "read wait write" {
		t.Errorf("over the socket: %d %q", status, got)
	}
	if status, got := bySocket.tools(http.DefaultClient, bySocket.url, named...); status != 200 || got != "read" {
		t.Errorf("past the socket the headers count: %d %q", status, got)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
}

// TestUnixPeers: the callers of a Unix socket are distinguished by their users.
func TestUnixPeers(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not name the peers of a socket")
	}
	socket := filepath.Join(t.TempDir(), "gateway.sock")
	for name, tt := range map[string]struct {
		uid    int
		status int
		tools  string
	}{"listed": {os.Getuid(), 200, "read wait write"}, "another": {os.Getuid() + 1, 403, ""}} {
		s := newSite(t, fmt.Sprintf("version: 1\nlisten: [\"%%ADDR%%\", \"unix:%s\"]\nprincipals: {ann: {roles: [dev]}}\nauth: {unix: {%d: ann}}\n", socket, tt.uid))
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
		if status, got := s.tools(c, "http://localhost/mcp"); status != tt.status || got != tt.tools {
			t.Errorf("%s: %d %q", name, status, got)
		}
		if status, _ := s.tools(http.DefaultClient, s.url); status != 401 {
			t.Errorf("over TCP: %d", status)
		}
		os.Remove(socket)
		s.App.Close(context.Background())
	}
}
