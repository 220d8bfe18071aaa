package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/console"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// An office is a gateway in front of a server whose people log in. The tool whoami answers with
// whose token the request has, and echo with the header itself.
type office struct {
	*app.App
	as    *authtest.OAuth
	log   *lockedBuffer
	state string
	audit string

	traces lockedBuffer // as they are sent
}

var hrefs = regexp.MustCompile(`href="(/ui/[^"#]*)`)

// told returns what the console shows the operator, on each page that another links to and by its API,
// with the metrics and the traces, once these have a span of a tool.
func told(t *testing.T, a *app.App, traces *lockedBuffer, tool string) string {
	t.Helper()
	link, err := a.Desk.SignIn()
	if err != nil {
		t.Fatal(err)
	}
	first, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	over := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // its name is the console's own
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+first.Port())
	}}
	defer over.CloseIdleConnections()
	c := &http.Client{Jar: jar, Timeout: time.Minute, Transport: over}
	signed, err := c.PostForm(first.Scheme+"://"+first.Host+"/ui/signin", url.Values{"code": {link.Code}})
	if err != nil {
		t.Fatal(err)
	}
	signed.Body.Close()
	next := []string{"/ui/"}
	for _, of := range strings.Fields("status servers tools calls approvals pins sessions grants policy findings modules") {
		next = append(next, "/api/v1/"+of)
	}
	var all strings.Builder
	pages := 0
	for at := 0; at < len(next) && at < 200; at++ {
		resp, err := c.Get(first.Scheme + "://" + first.Host + next[at])
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			pages++
		}
		fmt.Fprintf(&all, "%s %v %s\n", next[at], resp.Header, raw)
		for _, m := range hrefs.FindAllStringSubmatch(string(raw), -1) {
			if to := html.UnescapeString(m[1]); !slices.Contains(next, to) {
				next = append(next, to)
			}
		}
	}
	if pages < 25 {
		t.Errorf("%d pages were found, in %s", pages, next)
	}
	timelimit.Wait(t, "the metrics are served", func() bool { return a.Overview.Status().Metrics != "" })
	_, metrics := get(t, a.Overview.Status().Metrics)
	timelimit.Wait(t, "the traces are sent", func() bool { return strings.Contains(traces.String(), tool) })
	return all.String() + metrics + traces.String()
}

// collected is the configuration of a gateway that exports all its measurements, which are kept in to.
func collected(t *testing.T, to *lockedBuffer) string {
	t.Helper()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		fmt.Fprintf(to, "%v %s\n", r.Header, raw)
	}))
	t.Cleanup(collector.Close)
	return fmt.Sprintf("telemetry: {metrics: {listen: \"127.0.0.1:0\"}, otlp: {endpoint: %q, compression: none, every: 1s}, traces: {ratio: 1}}\n", collector.URL)
}

func newOffice(t *testing.T, auth string, rules ...string) *office {
	t.Helper()
	o := &office{as: authtest.NewOAuth(t), log: new(lockedBuffer)}
	var at *httptest.Server
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "jira", Version: "1"}, nil)
		for _, name := range []string{"whoami", "echo"} {
			mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, q *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				header := q.Extra.Header.Get("Authorization")
				user, scope, _, _ := o.as.Whose(strings.TrimPrefix(header, "Bearer "), at.URL+"/mcp")
				text := "user " + user + " scope " + scope
				if name == "echo" {
					text = header
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
			})
		}
		return server
	}, nil)
	at = httptest.NewServer(o.as.Protect(func() string { return at.URL }, "/mcp", "", func(w http.ResponseWriter, r *http.Request, _ string) { handler.ServeHTTP(w, r) }))
	t.Cleanup(func() { at.CloseClientConnections(); at.Close() })
	cfg := load(t, collected(t, &o.traces)+fmt.Sprintf("principals: {alice: {}, bob: {}}\nservers: {jira: {url: %q, private: true, auth: %s}}\n", at.URL+"/mcp", auth))
	for _, text := range rules {
		cfg.Policy.Paths = append(cfg.Policy.Paths, filepath.Join(t.TempDir(), "rules.rego"))
		write(t, cfg.Policy.Paths[len(cfg.Policy.Paths)-1], text)
	}
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"jira__*\"]}\n")
	var err error
	if o.App, err = app.New(t.Context(), cfg, slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug})), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.App.Close(context.Background()) })
	run(t, o.App, app.Front{Listen: []string{"127.0.0.1:0"}, Console: "127.0.0.1:0", Desk: func(a *app.App) desks.Desk { return console.New(a) }})
	o.state, o.audit = cfg.State, cfg.Audit.Path
	return o
}

// logIn logs a person in, who uses the browser under the same name.
func (o *office) logIn(t *testing.T, as string) {
	t.Helper()
	const back = "http://127.0.0.1:1/callback"
	begun, err := o.Logins.Begin(t.Context(), logins.Request{Server: "jira", As: as, Redirect: back})
	if err != nil {
		t.Fatal(err)
	}
	o.as.Person(as)
	if _, err := o.Logins.End(t.Context(), logins.Request{As: as, Query: authtest.Browse(t, begun.URL, back).RawQuery}); err != nil {
		t.Fatal(err)
	}
}

func (o *office) call(t *testing.T, as, tool string) (text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := o.Calls.Call(ctx, calls.Request{Tool: "jira__" + tool, Args: "{}", As: as})
	if err != nil {
		return "", err
	}
	return string(res.Doc.Raw()), nil
}

// refused fails unless a call is refused because a login is missing, with a message that says what to
// do.
func (o *office) refused(t *testing.T, as, command string) {
	t.Helper()
	text, err := o.call(t, as, "whoami")
	e, ok := errors.AsType[*calls.Error](err)
	for end := time.Now().Add(2 * time.Minute); ok && e.Code == "not_connected" && time.Now().Before(end); { // the server is just found to want a login
		time.Sleep(50 * time.Millisecond)
		text, err = o.call(t, as, "whoami")
		e, ok = errors.AsType[*calls.Error](err)
	}
	if !ok || e.Code != "refused_credential" || !strings.Contains(e.Reason, command) {
		t.Errorf("%s: %s, %v; want refused_credential with %q", as, text, err, command)
	}
}

// becomes waits until a call of a person has an answer with some words.
func (o *office) becomes(t *testing.T, as, want string) {
	t.Helper()
	var text string
	var err error
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // the server is listed after the first login
		if text, err = o.call(t, as, "whoami"); err == nil && strings.Contains(text, want) {
			return
		}
	}
	t.Fatalf("%s: %s, %v; want %q", as, text, err, want)
}

// Each principal calls the server by their own login; without one, they learn how to log in. Nothing
// that is written contains a token.
func TestLogins(t *testing.T) {
	unraced.Long(t)
	o := newOffice(t, "oauth")
	o.refused(t, "alice", "with --as for somebody else")
	o.logIn(t, "alice")
	if text, err := o.call(t, "alice", "whoami"); err != nil || !strings.Contains(text, "user alice") {
		t.Errorf("the first call after the login: %s, %v", text, err)
	}
	o.refused(t, "bob", "wasmgate login jira --as bob")
	o.logIn(t, "bob")
	o.becomes(t, "bob", "user bob")
	o.becomes(t, "alice", "user alice")
	if text, err := o.call(t, "alice", "echo"); err != nil || !strings.Contains(text, "Bearer [redacted: credential]") {
		t.Errorf("what the server repeats of a token: %s, %v", text, err)
	}

	o.as.End("alice")
	o.refused(t, "alice", "wasmgate login jira --as alice")
	o.becomes(t, "bob", "user bob")
	all, err := o.Logins.Kept.List()
	if err != nil || len(all) != 1 || all[0].Principal != "bob" {
		t.Errorf("logins: %+v, %v", all, err)
	}
	if _, err := o.Logins.Logout(t.Context(), logins.Request{Server: "jira", As: "bob"}); err != nil {
		t.Error(err)
	}
	o.refused(t, "bob", "wasmgate login jira")

	said, _ := json.Marshal([]any{all, o.Overview.Status()})
	said = append(said, o.log.String()+told(t, o.App, &o.traces, "jira__whoami")...)
	err = filepath.WalkDir(filepath.Dir(o.state), func(path string, d fs.DirEntry, err error) error {
		if d.Type().IsRegular() {
			raw, _ := os.ReadFile(path)
			said = append(said, raw...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range o.as.Secrets() {
		if strings.Contains(string(said), canary) {
			t.Errorf("a secret is written down: ...%s", strings.SplitN(string(said), canary, 2)[0][max(0, strings.Index(string(said), canary)-200):])
		}
	}
	for _, event := range []string{`"event":"login"`, `"event":"logout"`, `"event":"refresh"`} {
		if !strings.Contains(string(said), event) {
			t.Errorf("the log has no %s", event)
		}
	}
}

// narrowing leaves sessions that have read something untrusted a token that can only read.
const narrowing = `package wasmgate

obligations contains {"credential": {"scopes": ["read"], "ttl": "60s"}} if {
	input.tool.server == "jira"
	"untrusted" in input.session.labels
}
`

// A session that has read what is not trusted calls with a token that can only read, and the
// record says so.
func TestNarrowedLogin(t *testing.T) {
	o := newOffice(t, "{mode: oauth, scopes: [read, write]}", narrowing)
	o.refused(t, "alice", "with --as for somebody else")
	o.logIn(t, "alice")
	o.becomes(t, "alice", "user alice scope")
	if text, err := o.call(t, "alice", "whoami"); err != nil || !strings.Contains(text, "scope read\"") {
		t.Fatalf("%s, %v; want a token for read alone", text, err)
	}
	raw, err := os.ReadFile(o.audit)
	if err != nil {
		t.Fatal(err)
	}
	var last audit.Entry
	for line := range strings.Lines(string(raw)) {
		var e audit.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == gate.Done && e.Code == codes.OK {
			last = e
		}
	}
	if u := last.Upstream; u == nil || u.Mode != "oauth" || u.Issuer != o.as.URL || u.Name == "" || strings.Join(u.Scopes, " ") != "read" || u.Expires.IsZero() || !u.Narrow {
		t.Errorf("the record says %+v", u)
	}
}

// A server with a fixed header has no credential that could be narrowed: the call is refused,
// and the server does not hear of it.
func TestFixedCredentialIsNotNarrowed(t *testing.T) {
	var asked atomic.Int32
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "jira", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			asked.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "somebody"}}}, nil, nil
		})
		return server
	}, nil)
	at := httptest.NewServer(handler)
	t.Cleanup(func() { at.CloseClientConnections(); at.Close() })
	rules := filepath.Join(t.TempDir(), "narrow.rego")
	write(t, rules, narrowing)
	cfg := load(t, fmt.Sprintf("servers: {jira: {url: %q, private: true, headers: {Authorization: Bearer fixed}}}\npolicy: {packs: [grants], paths: [%q], data: {grants: grants.yaml}}\n", at.URL, rules))
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"jira__*\"]}\n")
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	run(t, a, app.Front{})
	o := &office{App: a}
	o.becomes(t, "", "somebody")
	before := asked.Load()
	_, err = o.call(t, "", "whoami")
	if e, ok := errors.AsType[*calls.Error](err); !ok || e.Code != "refused_credential" || asked.Load() != before {
		t.Errorf("%v, with %d more requests; want refused_credential", err, asked.Load()-before)
	}
}

// All principals share one login if the configuration says so.
func TestSharedLogin(t *testing.T) {
	o := newOffice(t, "{mode: oauth, identity: shared}")
	o.refused(t, "alice", "wasmgate login jira`")
	o.logIn(t, "bob")
	o.becomes(t, "alice", "user bob")
}
