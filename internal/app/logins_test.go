package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// An office is a gateway in front of a server whose people log in. The tool whoami answers with
// whose token the request has, and echo with the header itself.
type office struct {
	*app.App
	as    *authtest.OAuth
	log   *lockedBuffer
	state string
	audit string
}

func newOffice(t *testing.T, auth string) *office {
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
	cfg := load(t, fmt.Sprintf("principals: {alice: {}, bob: {}}\nservers: {jira: {url: %q, private: true, auth: %s}}\n", at.URL+"/mcp", auth))
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"jira__*\"]}\n")
	var err error
	if o.App, err = app.New(t.Context(), cfg, slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug})), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.App.Close(context.Background()) })
	run(t, o.App, app.Front{})
	o.state, o.audit = cfg.State, cfg.Audit.Path
	return o
}

// logIn logs somebody in, who sits at the browser under the same name.
func (o *office) logIn(t *testing.T, as string) {
	t.Helper()
	const back = "http://127.0.0.1:1/callback"
	begun, err := o.BeginLogin(t.Context(), app.LoginRequest{Server: "jira", As: as, Redirect: back})
	if err != nil {
		t.Fatal(err)
	}
	o.as.Person(as)
	if _, err := o.EndLogin(t.Context(), app.LoginRequest{As: as, Query: authtest.Browse(t, begun.URL, back).RawQuery}); err != nil {
		t.Fatal(err)
	}
}

func (o *office) call(t *testing.T, as, tool string) (text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := o.Call(ctx, app.CallRequest{Tool: "jira__" + tool, Args: "{}", As: as})
	if err != nil {
		return "", err
	}
	return string(res.Doc.Raw()), nil
}

// refused fails unless a call is refused for want of a login, with what to do.
func (o *office) refused(t *testing.T, as, command string) {
	t.Helper()
	text, err := o.call(t, as, "whoami")
	e, ok := errors.AsType[*app.CallError](err)
	for end := time.Now().Add(30 * time.Second); ok && e.Code == "not_connected" && time.Now().Before(end); { // the server is just found to want a login
		time.Sleep(50 * time.Millisecond)
		text, err = o.call(t, as, "whoami")
		e, ok = errors.AsType[*app.CallError](err)
	}
	if !ok || e.Code != "refused_credential" || !strings.Contains(e.Reason, command) {
		t.Errorf("%s: %s, %v; want refused_credential with %q", as, text, err, command)
	}
}

// becomes waits until a call of somebody has an answer with some words.
func (o *office) becomes(t *testing.T, as, want string) {
	t.Helper()
	var text string
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // the server is listed after the first login
		if text, err = o.call(t, as, "whoami"); err == nil && strings.Contains(text, want) {
			return
		}
	}
	t.Fatalf("%s: %s, %v; want %q", as, text, err, want)
}

// Each calls the server by their own login, and is told how to log in without one. Nothing that
// is written has a token.
func TestLogins(t *testing.T) {
	o := newOffice(t, "oauth")
	o.refused(t, "alice", "with --as for somebody else")
	o.logIn(t, "alice")
	o.becomes(t, "alice", "user alice")
	o.refused(t, "bob", "wasmgate login jira --as bob")
	o.logIn(t, "bob")
	o.becomes(t, "bob", "user bob")
	o.becomes(t, "alice", "user alice")

	o.as.End("alice")
	o.refused(t, "alice", "wasmgate login jira --as alice")
	o.becomes(t, "bob", "user bob")
	all, err := o.Logins(t.Context())
	if err != nil || len(all) != 1 || all[0].Principal != "bob" {
		t.Errorf("logins: %+v, %v", all, err)
	}
	if _, err := o.Logout(t.Context(), app.LoginRequest{Server: "jira", As: "bob"}); err != nil {
		t.Error(err)
	}
	o.refused(t, "bob", "wasmgate login jira")

	said, _ := json.Marshal([]any{all, o.Status()})
	said = append(said, o.log.String()...)
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

// One login is everybody's where the configuration says so.
func TestSharedLogin(t *testing.T) {
	o := newOffice(t, "{mode: oauth, identity: shared}")
	o.refused(t, "alice", "wasmgate login jira`")
	o.logIn(t, "bob")
	o.becomes(t, "alice", "user bob")
}
