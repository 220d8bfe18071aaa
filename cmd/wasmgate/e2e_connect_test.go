//go:build unix

package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agreeAt opens a page of the gateway as a person's browser does, signs in, and agrees. It
// returns the last page.
func agreeAt(ctx context.Context, person, link string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	c := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		r.Header.Set("X-Person", person)
		return nil
	}}
	do := func(method, at, body string) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
		if err != nil {
			return nil, "", err
		}
		r.Header.Set("X-Person", person)
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		resp, err := c.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		return resp, string(raw), err
	}
	_, page, err := do(http.MethodGet, link, "")
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(page)
	if err != nil || form == nil {
		return page, err
	}
	resp, page, err := do(http.MethodPost, link, url.Values{"form": {form[1]}}.Encode())
	if err != nil {
		return page, err
	}
	_, next, ok := strings.Cut(resp.Header.Get("Refresh"), "url=")
	if !ok {
		return page, nil
	}
	_, page, err = do(http.MethodGet, next, "")
	return page, err
}

// testConnect: callers over the network whose server needs a login are asked to visit a page of
// the gateway, by clients of both revisions, and their call goes on once they have logged in there;
// who cannot be asked reads where it is. Somebody else at the page gets nothing. The identity
// provider, and the authorization server of the server, are of other make.
func testConnect(t *testing.T, p *program) {
	dir := node(t)
	pl := p.place(t, "")
	people, provider := startIDP(t, pl, dir, time.Hour), startIDP(t, pl, dir, time.Hour)
	port := freePort(t)
	start(t, pl.command(context.WithoutCancel(t.Context()), "node", dir+"/protected.mjs", fmt.Sprint(port), provider.url))
	eventually(t, "the protected server listens", func() bool { return listens(t, fmt.Sprintf("127.0.0.1:%d", port)) })
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	pl.write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy: {timeout: 5s}
audit: {record: full}
listen: %s
public_url: http://%s
auth: {issuers: {corp: {issuer: %q}}}
servers: {jira: {url: 'http://127.0.0.1:%d/mcp', private: true, auth: oauth}}
`, addr, addr, people.url, port))
	pl.write("grants.yaml", "- {to: [\"*\"], tools: [\"*\"]}\n")
	gw := serving(t, pl.command(context.WithoutCancel(t.Context()), p.path, pl.args("--json", "serve")...))
	eventually(t, "the gateway listens", func() bool { return listens(t, addr) })
	type visit struct {
		page string
		err  error
	}
	call := func(t *testing.T, who, revision, at string) (answer string, visited visit) {
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
					page, err := agreeAt(context.WithoutCancel(ctx), at, r.Params.URL)
					pages <- visit{page, err}
				}()
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o).Connect(ctx,
			&mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp", OAuthHandler: signsIn(t, people, who)}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatalf("%v\n%s", err, gw.stderr)
		}
		defer session.Close()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "jira__whoami", Arguments: map[string]any{}})
		if err != nil {
			t.Fatalf("%s over %s: %v", who, revision, err)
		}
		if at != "" {
			select {
			case visited = <-pages:
			case <-ctx.Done():
				t.Errorf("nobody was asked; the answer is %s", firstText(res))
			}
		}
		return firstText(res), visited
	}
	answer, _ := call(t, "alice", "2025-11-25", "")
	holds(t, answer, "open http://"+addr+"/connect/")
	answer, v := call(t, "alice", "2025-11-25", "bob")
	holds(t, v.page, "This is for somebody else")
	holds(t, answer, "a login is needed")
	for who, revision := range map[string]string{"alice": "2025-11-25", "bob": "2026-07-28"} {
		answer, v := call(t, who, revision, who)
		if v.err != nil {
			t.Error(v.err)
		}
		holds(t, v.page, "You are logged in to jira")
		holds(t, answer, "user "+who+", scopes")
		answer, _ = call(t, who, revision, "")
		holds(t, answer, "user "+who+", scopes")
	}
	states := make(map[string]int)
	for _, e := range pl.log() {
		if e.Event == "connect" {
			states[strings.Join(e.Reasons, " ")]++
		}
	}
	if states["done"] != 2 || states["refused"] != 1 || states["asked"] < 4 {
		t.Errorf("the log has %v", states)
	}
	secrets := append(people.seen().Secrets, provider.seen().Secrets...)
	pl.clean(secrets)
	pl.silent("stderr", gw.stderr.String(), secrets)
}
