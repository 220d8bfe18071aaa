//go:build unix

package guide

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// inChromium does what [e2e.Agree] does with a real browser, and returns the heading of the last page; what is wrong with the
// pages comes before it.
func inChromium(pl *e2e.Place, dir, person, link string) (string, error) {
	out, err := pl.Command(context.WithoutCancel(pl.T.Context()), "node", dir+"/connect.mjs", link, person).CombinedOutput()
	if err == nil && strings.Count(string(out), "\n") != 1 {
		err = errors.New("the browser has found something wrong")
	}
	return string(out), err
}

// testConnect: callers over the network whose server needs a login are asked to visit a page of
// the gateway, by clients of both revisions, for tools, prompts and resources, and go on once they
// have logged in there; who cannot be asked reads where it is. Somebody else at the page gets nothing.
// The identity provider, and the authorization server of the server, are of other make.
func testConnect(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	people, provider := startIDP(t, pl, dir, time.Hour), startIDP(t, pl, dir, time.Hour)
	port := freeport.Port(t)
	e2e.Start(t, pl.Command(context.WithoutCancel(t.Context()), "node", dir+"/protected.mjs", fmt.Sprint(port), provider.url))
	timelimit.Wait(t, "the protected server listens", func() bool { return e2e.Listens(t, fmt.Sprintf("127.0.0.1:%d", port)) })
	addr := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t))
	pl.Write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy: {timeout: 5s}
audit: {record: full}
listen: %s
public_url: http://%s
principals: {carol: {}}
auth: {keys: true, issuers: {corp: {issuer: %q}}}
servers: {jira: {url: 'http://127.0.0.1:%d/mcp', private: true, auth: oauth}}
`, addr, addr, people.url, port))
	pl.Write("grants.yaml", "- {to: [\"*\"], tools: [\"*\"], prompts: [\"*\"], resources: [\"*\"]}\n")
	gw := e2e.Serving(t, pl.Command(context.WithoutCancel(t.Context()), p.Path, pl.Args("--json", "serve")...))
	timelimit.Wait(t, "the gateway listens", func() bool { return e2e.Listens(t, addr) })
	type visit struct {
		page string
		err  error
	}
	key := strings.TrimSpace(pl.Must("key", "create", "e2e", "--as", "carol"))
	chromium := toolchain.Works(t, "chromium")
	call := func(t *testing.T, who, revision, at, use string) (answer string, visited visit) {
		t.Helper()
		pages := make(chan visit, 4)
		o := &mcp.ClientOptions{}
		if at != "" { // who sits at the browser
			o.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}
			o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if r.Params.Mode != "url" || !strings.HasPrefix(r.Params.URL, "http://"+addr+"/connect/") || strings.Contains(r.Params.URL, who) {
					t.Errorf("%s is asked %+v", who, r.Params)
				}
				go func() { // the person takes their time, and the client has answered before
					if who == "alice" && at == who && chromium {
						page, err := inChromium(pl, dir, at, r.Params.URL)
						pages <- visit{page, err}
						return
					}
					page, err := e2e.Agree(context.WithoutCancel(ctx), at, r.Params.URL)
					pages <- visit{page, err}
				}()
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
		defer cancel()
		over := &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp", OAuthHandler: signsIn(t, people, who)}
		if who == "carol" {
			over.OAuthHandler, over.HTTPClient = nil, &http.Client{Transport: bringsKey{key}}
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o).Connect(ctx, over, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatalf("%v\n%s", err, gw.Stderr)
		}
		defer session.Close()
		switch use {
		case "prompt":
			var res *mcp.GetPromptResult
			if res, err = session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "jira__greet"}); err == nil {
				answer = res.Messages[0].Content.(*mcp.TextContent).Text
			}
		case "resource":
			var res *mcp.ReadResourceResult
			if res, err = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "jira://me"}); err == nil {
				answer = res.Contents[0].Text
			}
		default:
			var res *mcp.CallToolResult
			if res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "jira__whoami", Arguments: map[string]any{}}); err == nil {
				answer = e2e.FirstText(res)
			}
		}
		if err != nil && use != "" && at == "" {
			return err.Error(), visited
		}
		if err != nil {
			t.Fatalf("%s over %s: %v", who, revision, err)
		}
		if at != "" {
			select {
			case visited = <-pages:
			case <-ctx.Done():
				t.Errorf("no one was asked; the answer is %s", answer)
			}
		}
		return answer, visited
	}
	answer, _ := call(t, "alice", "2025-11-25", "", "")
	e2e.Holds(t, answer, "open http://"+addr+"/connect/")
	answer, v := call(t, "alice", "2025-11-25", "bob", "")
	e2e.Holds(t, v.page, "This is for somebody else")
	e2e.Holds(t, answer, "a login is needed")
	for _, c := range []struct{ who, revision, use string }{
		{"alice", "2025-11-25", ""}, {"bob", "2026-07-28", ""}, {"dora", "2026-07-28", "prompt"}, {"eve", "2026-07-28", "resource"}, {"frank", "2025-11-25", "prompt"}, {"carol", "2025-11-25", "resource"},
	} {
		if c.use != "" { // the server was listed by the first login
			answer, _ = call(t, c.who, c.revision, "", c.use)
			e2e.Holds(t, answer, "open http://"+addr+"/connect/")
		}
		answer, v := call(t, c.who, c.revision, c.who, c.use)
		if v.err != nil {
			t.Error(v.err, v.page)
		}
		e2e.Holds(t, v.page, "You are logged in to jira")
		e2e.Holds(t, answer, "user "+c.who)
		answer, _ = call(t, c.who, c.revision, "", "")
		e2e.Holds(t, answer, "user "+c.who+", scopes")
	}
	if table := pl.Must("audit"); !regexp.MustCompile(`jira__whoami: connect\s+ok\s+asked`).MatchString(table) {
		t.Errorf("a login that a call asked for is shown as a call:\n%s", table)
	}
	states := make(map[string]int)
	for _, e := range pl.Log() {
		if e.Event == "connect" {
			states[strings.Join(e.Reasons, " ")]++
		}
	}
	if states["done"] != 6 || states["refused"] != 1 || states["asked"] < 8 {
		t.Errorf("the log has %v", states)
	}
	secrets := append(people.seen().Secrets, provider.seen().Secrets...)
	clean(pl, append(secrets, key))
	silent(pl, "stderr", gw.Stderr.String(), secrets)
}
