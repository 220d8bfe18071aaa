//go:build unix

package guide

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testSingleSignOn does what docs/how-to/sso-to-servers.md says, with an identity provider, an
// authorization server and an MCP server of other make. Then calls meet the end of the server's
// token, a person without access is refused by the identity provider, and the login is ended.
func testSingleSignOn(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	here, there := rand.Text(), rand.Text()
	const life = 8 * time.Second // a token is due two seconds before
	provider := startIDP(t, pl, dir, time.Hour, "CLIENT=wasmgate", "CLIENT_SECRET="+here, "JAG_CLIENT=wasmgate-tickets")
	tokens := startIDP(t, pl, dir, life, "CLIENT=wasmgate-tickets", "CLIENT_SECRET="+there, "JAG_ISSUER="+provider.url)
	port := freeport.Port(t)
	e2e.Start(t, pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, "protected.mjs"), strconv.Itoa(port), tokens.url))
	timelimit.Wait(t, "the protected server listens", func() bool { return e2e.Listens(t, fmt.Sprintf("127.0.0.1:%d", port)) })

	pl.Write("idp.secret", here)
	pl.Write("tickets.secret", there)
	pl.Write("bin/xdg-open", "#!/bin/sh\nexit 1\n") // no browser
	if err := os.Chmod(pl.File("bin/xdg-open"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.Plain, pl.File("bin/wasmgate")); err != nil {
		t.Fatal(err)
	}
	pl.Env = append(pl.Env, "PATH="+pl.File("bin")+":"+os.Getenv("PATH"), "IDP_SECRET="+here, "TICKETS_SECRET="+there)
	raw, err := os.ReadFile("../../../../docs/how-to/sso-to-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.NewReplacer(
		"https://tickets.example.com/mcp", fmt.Sprintf("http://127.0.0.1:%d/mcp\n    private: true", port), "https://login.example.com", provider.url, "https://auth.example.com", tokens.url,
		"version: 1\n", "version: 1\nprincipals: {bob: {}}\npolicy: {timeout: 5s}\nstate: "+pl.File("state")+"\n",
	).Replace(string(raw))
	var said strings.Builder
	printed := ""
	for _, b := range regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if b[1] != "sh" {
			if !strings.Contains(printed, strings.TrimSpace(b[2])) {
				t.Fatalf("the page says that %q is printed; it is %s", b[2], printed)
			}
			continue
		}
		printed = sh(t, pl, provider, "alice", b[2])
		said.WriteString(printed)
	}

	config := pl.File(".config/wasmgate/wasmgate.yaml")
	gw := e2e.Serving(t, pl.Command(context.WithoutCancel(t.Context()), p.Path, "--config", config, "--json", "serve", "--listen", "127.0.0.1:0"))
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: gw.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	call := func() string {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tickets__whoami"})
		if err != nil {
			return err.Error()
		}
		return e2e.FirstText(res)
	}
	timelimit.Wait(t, "the tool is there", func() bool { return call() == "user alice, scopes mcp" })
	before, ends := tokens.seen().Granted["urn:ietf:params:oauth:grant-type:jwt-bearer"], time.Now().Add(life)
	time.Sleep(time.Until(ends)) // the token has ended
	var calls sync.WaitGroup
	for range 30 { // a caller has half of the places if another one has called in the last minute
		calls.Go(func() {
			if got := call(); got != "user alice, scopes mcp" {
				t.Errorf("a call when the token has ended: %s", got)
			}
		})
	}
	calls.Wait()
	// The calls may take longer than a token holds.
	if n := tokens.seen().Granted["urn:ietf:params:oauth:grant-type:jwt-bearer"] - before; n < 1 || n > 1+int(time.Since(ends)/(life-2*time.Second)) {
		t.Errorf("%d tokens for 30 calls in %v", n, time.Since(ends))
	}

	said.WriteString(sh(t, pl, provider, "bob", "wasmgate login tickets --as bob\nwasmgate grant tickets__whoami --to bob --yes"))
	refused := sh(t, pl, provider, "bob", "wasmgate call tickets__whoami --as bob --json || true")
	e2e.Holds(t, refused, "the identity provider "+provider.url+" does not let this principal use server tickets")
	said.WriteString(refused)
	said.WriteString(sh(t, pl, provider, "alice", "wasmgate logins\nwasmgate logout tickets"))
	refused = call()
	e2e.Holds(t, refused, "needs a login at "+provider.url)
	if n := provider.seen().Revoked; n != 1 {
		t.Errorf("%d logins are revoked after the logout", n)
	}
	gw.Signal(os.Interrupt)
	gw.Wait()
	secrets := append(provider.seen().Secrets, tokens.seen().Secrets...)
	silent(pl, "what is said", said.String()+refused+gw.Stderr.String(), append(secrets, here, there))
	clean(pl, secrets)
}

// sh runs commands as pasted, with a person at the browser, and returns what they print.
func sh(t *testing.T, pl *e2e.Place, provider *idp, person, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	out := provider.watch(person)
	c := pl.Command(ctx, "sh", "-e", "-c", commands)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return out.addr.ReplaceAllString(out.String(), "") // the address is for the person
}
