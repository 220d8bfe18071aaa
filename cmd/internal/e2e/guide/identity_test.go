//go:build unix

package guide

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/freeport"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// An idp is an identity provider of other make: .ci/node/idp.mjs.
type idp struct {
	t   *testing.T
	url string
}

// startIDP starts one whose access tokens hold for a time; env has more variables.
func startIDP(t *testing.T, pl *e2e.Place, dir string, life time.Duration, env ...string) *idp {
	t.Helper()
	port := freeport.Port(t)
	c := pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, "idp.mjs"), strconv.Itoa(port), strconv.Itoa(int(life.Seconds())))
	c.Env = append(c.Env, env...)
	p := e2e.Start(t, c)
	i := &idp{t, fmt.Sprintf("http://127.0.0.1:%d", port)}
	timelimit.Wait(t, "the identity provider listens", func() bool {
		select {
		case <-p.Ended:
			t.Fatal("the identity provider has ended")
		default:
		}
		return e2e.Listens(t, strings.TrimPrefix(i.url, "http://"))
	})
	return i
}

// seen is what an idp tells of itself.
type seen struct {
	Granted map[string]int // token requests, by grant type
	Revoked int
	Secrets []string
}

func (i *idp) seen() (s seen) {
	i.t.Helper()
	_, body := e2e.Get(i.t, i.url+"/test/seen")
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		i.t.Fatalf("%v: %s", err, body)
	}
	return s
}

// browse opens a page as the browser of a person does, up to the first address that begins with
// until, which it does not open, or to the end. It returns where it is then.
func (i *idp) browse(person, at, until string) (*url.URL, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if until != "" && strings.HasPrefix(r.URL.String(), until) || len(via) > 20 {
			return http.ErrUseLastResponse
		}
		r.Header.Set("X-Person", person)
		return nil
	}}
	r, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Person", person)
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if to, err := resp.Location(); err == nil {
		return to, nil
	}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, fmt.Errorf("the browser ends at %s with %s: %s", resp.Request.URL.Path, resp.Status, b)
	}
	return resp.Request.URL, nil
}

// An opener is a program's output, and gives the address that it asks its person to open.
type opener struct {
	mu   sync.Mutex
	b    bytes.Buffer
	addr *regexp.Regexp
	open func(string)
	once sync.Once
}

func (w *opener) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(b)
	if m := w.addr.FindSubmatch(w.b.Bytes()); m != nil {
		w.once.Do(func() { go w.open(string(m[1])) })
	}
	return len(b), nil
}

func (w *opener) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// watch has a person's browser open the address in what a program says, on a line of its own
// or after a word.
func (i *idp) watch(person string) *opener {
	w := &opener{addr: regexp.MustCompile(`(?m)(http://127\.0\.0\.1:\d+/auth\?\S+)\s*\n`)}
	w.open = func(at string) {
		if _, err := i.browse(person, at, ""); err != nil {
			i.t.Errorf("%s cannot sign in: %v", person, err)
		}
	}
	return w
}

// teamsBlock is the block of docs/how-to/team.md that has some words.
func teamsBlock(t *testing.T, lang, words string) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/how-to/team.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```"+lang+"\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("the page has no %s with %q", lang, words)
	return ""
}

// testTwoTeams does what docs/how-to/team.md says, at an identity provider of other make,
// with clients of other make: each finds out by itself where to sign in.
func testTwoTeams(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	provider := startIDP(t, pl, dir, time.Hour)
	addr := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t))
	settings := strings.NewReplacer("https://gw.example.com", "http://"+addr, "https://login.example.com", provider.url).Replace(teamsBlock(t, "yaml", "issuers"))
	server := filepath.Join(dir, "node_modules/@modelcontextprotocol/server-memory/dist/index.js")
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nlisten: %s\n%sservers:\n", addr, settings)+
		fmt.Sprintf("  tickets: {command: node, args: [%q], env: {MEMORY_FILE_PATH: %q}}\n", server, pl.File("tickets.json"))+
		fmt.Sprintf("  crm: {command: node, args: [%q], env: {MEMORY_FILE_PATH: %q}}\n", server, pl.File("crm.json")))
	gw := e2e.Serving(t, pl.Command(context.WithoutCancel(t.Context()), p.Path, pl.Args("--json", "serve")...))
	pl.Ready()
	for line := range strings.Lines(teamsBlock(t, "sh", "--to role:sales")) {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(strings.ReplaceAll(line, "'", ""))
		if args[1] == "grant" { // a person is asked at a terminal; here is none
			args = append(args, "--yes")
		}
		pl.Must(args[1:]...)
	}
	at := "http://" + addr + "/mcp"
	for who, want := range map[string]struct{ list, call, refused string }{
		"alice": {"tickets__add_observations tickets__create_entities tickets__create_relations tickets__delete_entities tickets__delete_observations " +
			"tickets__delete_relations tickets__open_nodes tickets__read_graph tickets__search_nodes", "tickets__read_graph", "crm__read_graph"},
		"bob": {"crm__read_graph", "crm__read_graph", "tickets__read_graph"},
	} {
		for name, client := range map[string]func(t *testing.T, tool string) (list []string, answer string){
			"the TypeScript client": func(t *testing.T, tool string) ([]string, string) {
				return typeScriptOAuth(t, pl, dir, provider, who, at, tool)
			},
			"mcp-remote": func(t *testing.T, tool string) ([]string, string) {
				return mcpRemote(t, pl, dir, provider, who, at, tool)
			},
			"the Go client": func(t *testing.T, tool string) ([]string, string) { return goOAuth(t, provider, who, at, tool) },
			"the inspector": func(t *testing.T, tool string) ([]string, string) {
				return inspects(t, pl, dir, provider, who, at, tool)
			},
		} {
			t.Run(who+" with "+name, func(t *testing.T) {
				list, answer := client(t, want.call)
				slices.Sort(list)
				list = slices.DeleteFunc(list, func(tool string) bool { return strings.HasPrefix(tool, "local__") })
				if got := strings.Join(list, " "); got != want.list {
					t.Errorf("is offered %s; want %s", got, want.list)
				}
				e2e.Holds(t, answer, "entities")
			})
		}
		t.Run(who+" calls what is another's", func(t *testing.T) {
			if _, answer := goOAuth(t, provider, who, at, want.refused); !strings.Contains(answer, "unknown tool") {
				t.Errorf("the answer is %s", answer)
			}
		})
	}
	for _, e := range pl.Log() {
		if e.Event == "done" && e.Code == "ok" && (e.Principal == "alice") != strings.HasPrefix(e.Tool, "tickets__") {
			t.Errorf("%s has called %s", e.Principal, e.Tool)
		}
	}
	secrets := provider.seen().Secrets
	clean(pl, secrets)
	silent(pl, "stderr", gw.Stderr.String(), secrets)
}

func typeScriptOAuth(t *testing.T, pl *e2e.Place, dir string, provider *idp, who, at, tool string) (list []string, answer string) {
	t.Helper()
	out := provider.watch(who)
	c := pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, "tsoauth.mjs"), at, tool)
	c.Stdout = out
	if code := e2e.Start(t, c).Wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	_, last, _ := strings.Cut(out.String(), "\n")
	var said struct {
		Tools  []string
		Result json.RawMessage
	}
	if err := json.Unmarshal([]byte(last), &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return said.Tools, string(said.Result)
}

func mcpRemote(t *testing.T, pl *e2e.Place, dir string, provider *idp, who, at, tool string) ([]string, string) {
	t.Helper()
	said := provider.watch(who)
	c := pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, "node_modules/mcp-remote/dist/proxy.js"), at, strconv.Itoa(freeport.Port(t)), "--host", "127.0.0.1", "--allow-http")
	c.Env = append(c.Env, "MCP_REMOTE_CONFIG_DIR="+t.TempDir(), "BROWSER=true")
	c.Stderr = said
	return uses(t, &mcp.CommandTransport{Command: c}, tool, said)
}

func goOAuth(t *testing.T, provider *idp, who, at, tool string) ([]string, string) {
	t.Helper()
	return uses(t, &mcp.StreamableClientTransport{Endpoint: at, OAuthHandler: signsIn(t, provider, who)}, tool, new(e2e.Tail))
}

// inspects has the inspector's command line bring a token, which another client has got.
func inspects(t *testing.T, pl *e2e.Place, dir string, provider *idp, who, at, tool string) (list []string, answer string) {
	t.Helper()
	signed := signsIn(t, provider, who)
	uses(t, &mcp.StreamableClientTransport{Endpoint: at, OAuthHandler: signed}, tool, new(e2e.Tail))
	tokens, err := signed.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, err := tokens.Token()
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(args ...string) e2e.Outcome {
		return pl.Finish(filepath.Join(dir, "node_modules", ".bin", "mcp-inspector"), append([]string{"--cli", at, "--transport", "http", "--method"}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		o := inspect(append(args, "--header", "Authorization: Bearer "+token.AccessToken)...)
		if o.Code != 0 {
			t.Fatalf("exit %d\n%s%s", o.Code, o.Stdout, o.Stderr)
		}
		return o.Stdout
	}
	var said struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(must("tools/list")), &said); err != nil {
		t.Fatal(err)
	}
	for _, tool := range said.Tools {
		list = append(list, tool.Name)
	}
	if o := inspect("tools/list"); o.Code == 0 {
		t.Errorf("without a token: %s", o.Stdout)
	}
	return list, must("tools/call", "--tool-name", tool)
}

// signsIn has a Go client sign somebody in.
func signsIn(t *testing.T, provider *idp, who string) *auth.AuthorizationCodeHandler {
	t.Helper()
	const back = "http://127.0.0.1:1/callback"
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "e2e", RedirectURIs: []string{back}, ApplicationType: "native", TokenEndpointAuthMethod: "none", GrantTypes: []string{"authorization_code"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			to, err := provider.browse(who, args.URL, back)
			if err != nil {
				return nil, err
			}
			q := to.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// uses lists the tools and calls one, without arguments.
func uses(t *testing.T, over mcp.Transport, tool string, said fmt.Stringer) (list []string, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(ctx, over, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	defer session.Close()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		list = append(list, tool.Name)
	}
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
	if err != nil {
		return list, err.Error()
	}
	return list, e2e.FirstText(res)
}

// clean fails if a file of the place other than the vault contains a secret.
func clean(pl *e2e.Place, secrets []string) {
	pl.T.Helper()
	if len(secrets) < 4 {
		pl.T.Errorf("%d secrets to look for", len(secrets))
	}
	err := filepath.WalkDir(pl.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "vault.key" {
			return err
		}
		raw, err := os.ReadFile(path)
		silent(pl, path, string(raw), secrets)
		return err
	})
	if err != nil {
		pl.T.Fatal(err)
	}
}

// silent fails if a text has a secret.
func silent(pl *e2e.Place, what, text string, secrets []string) {
	pl.T.Helper()
	for _, secret := range secrets {
		if len(secret) >= 16 && strings.Contains(text, secret) {
			pl.T.Errorf("%s has a secret: %s", what, around(text, secret))
		}
	}
}

// around is the text before a secret.
func around(text, secret string) string {
	before, _, _ := strings.Cut(text, secret)
	return before[max(0, len(before)-100):] + "..."
}

// testLoginServer logs in to a server of other make behind the identity provider, with a browser
// that comes back to the command's own listener, and follows the login through its life: its
// refresh tokens are good once, and none is used twice however many calls meet its end, also over a
// kill; a stolen one ends it; it is made again, and revoked. No file contains a secret.
func testLoginServer(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, "")
	robot := rand.Text()
	key := newClientKey(t, pl)
	provider := startIDP(t, pl, dir, 62*time.Second, "ROBOT_SECRET="+robot, "SIGNER_JWK="+key) // due after two seconds
	port := freeport.Port(t)
	e2e.Start(t, pl.Command(context.WithoutCancel(t.Context()), "node", filepath.Join(dir, "protected.mjs"), strconv.Itoa(port), provider.url))
	timelimit.Wait(t, "the protected server listens", func() bool { return e2e.Listens(t, fmt.Sprintf("127.0.0.1:%d", port)) })
	metrics := fmt.Sprintf("127.0.0.1:%d", freeport.Port(t))
	pl.Write("wasmgate.yaml", fmt.Sprintf(`version: 1
policy: {timeout: 5s}
telemetry: {metrics: {listen: %q}}
principals: {alice: {}, bob: {}}
auth: {keys: true}
audit: {record: full}
servers:
  jira: {url: 'http://127.0.0.1:%d/mcp', private: true, auth: oauth, sanitize: off}
  batch:
    url: 'http://127.0.0.1:%d/mcp'
    private: true
    auth: {mode: client_credentials, client_id: robot, client_secret: "${ROBOT_SECRET}", issuer: %q, scopes: [mcp]}
  signed:
    url: 'http://127.0.0.1:%d/mcp'
    private: true
    auth: {mode: client_credentials, client_id: signer, private_key: signer.pem, key_id: k1, scopes: [mcp]}
  people:
    url: 'http://127.0.0.1:%d/mcp'
    private: true
    auth: {mode: oauth, client_id: signer, private_key: signer.pem, key_id: k1}
`, metrics, port, port, provider.url, port, port))
	pl.Write("grants.yaml", "- {to: [\"*\"], tools: [\"*\"]}\n")
	pl.Env = append(pl.Env, "ROBOT_SECRET="+robot)
	var said strings.Builder // by commands and gateways
	apiKey := strings.TrimSpace(pl.Must("key", "create", "e2e", "--as", "alice"))
	call := func(as, tool string) string {
		o := pl.Run("call", tool, "{}", "--as", as, "--json")
		fmt.Fprintln(&said, o.Stdout, o.Stderr)
		return o.Stdout + o.Stderr
	}
	becomes := func(as, tool, want string) {
		t.Helper()
		var last string
		for end := time.Now().Add(timelimit.Patience(t)); !strings.Contains(last, want); time.Sleep(50 * time.Millisecond) { // the server is listed after the first login
			if time.Now().After(end) {
				t.Fatalf("%s as %s: want %q; the last answer is %s", tool, as, want, last)
			}
			last = call(as, tool)
		}
	}
	logIn := func(server, as string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), timelimit.Patience(t))
		defer cancel()
		out := provider.watch(as)
		c := pl.Command(ctx, p.Plain, pl.Args("login", server, "--as", as, "--json")...)
		c.Stdout, c.Stderr, c.Env = out, out, append(c.Env, "PATH=/nonexistent") // no browser
		if err := c.Run(); err != nil {
			t.Fatalf("wasmgate login: %v\n%s", err, out)
		}
		said.WriteString(out.addr.ReplaceAllString(out.String(), "")) // the address is for the person
	}
	given := rand.Text() + rand.Text()
	brings := func(token string, code int, args ...string) {
		t.Helper()
		var out strings.Builder
		c := pl.Command(t.Context(), p.Plain, pl.Args(append(args, "--token", "-", "--json")...)...)
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(token+"\n"), &out, &out
		if _ = c.Run(); c.ProcessState.ExitCode() != code {
			t.Errorf("wasmgate %q: exit %d\n%s", args, c.ProcessState.ExitCode(), &out)
		}
		said.WriteString(out.String())
	}
	burst := func(gw *e2e.Process) {
		t.Helper()
		time.Sleep(3 * time.Second) // the token is due
		client := &http.Client{Transport: bringsKey{apiKey}}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: gw.URL, HTTPClient: client}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		var all sync.WaitGroup
		for range 30 { // a caller has half of the places if another one has called in the last minute
			all.Go(func() {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "jira__whoami"})
				if err != nil || e2e.FirstText(res) != "user alice, scopes offline_access,mcp" && e2e.FirstText(res) != "user alice, scopes mcp" {
					t.Errorf("a call when the token is due: %v, %v", res, err)
				}
			})
		}
		all.Wait()
	}
	gw := pl.Serve()
	pl.Must("status")
	if got := call("alice", "jira__whoami"); strings.Contains(got, "user alice") {
		t.Errorf("without a login: %s", got)
	}
	logIn("jira", "alice")
	becomes("alice", "jira__whoami", "user alice")
	becomes("bob", "jira__whoami", "wasmgate login jira --as bob")
	logIn("jira", "bob")
	becomes("bob", "jira__whoami", "user bob")
	becomes("alice", "batch__whoami", "user robot, scopes mcp")
	becomes("alice", "signed__whoami", "user signer, scopes mcp")
	logIn("people", "bob")
	becomes("bob", "people__whoami", "user bob")
	becomes("alice", "jira__echo", "it was sent Bearer [redacted: credential]")

	burst(gw)
	gw.Signal(os.Kill)
	gw.Wait()
	said.WriteString(gw.Stderr.String())
	gw = pl.Serve()
	becomes("alice", "jira__whoami", "user alice")
	burst(gw)
	if n := provider.seen().Granted["refresh_token"]; n < 2 {
		t.Errorf("%d refreshes", n)
	}

	if _, stolen := e2e.Get(t, provider.url+"/test/steal?person=alice"); stolen != "400 invalid_grant" {
		t.Errorf("a refresh token that is used again: %s", stolen)
	}
	time.Sleep(3 * time.Second) // the token is due
	becomes("alice", "jira__whoami", "wasmgate login jira --as alice")
	becomes("bob", "jira__whoami", "user bob")
	logIn("jira", "alice")
	becomes("alice", "jira__whoami", "user alice")

	fmt.Fprint(&said, pl.Must("logins", "--json"), pl.Must("key", "list", "--json"), pl.Must("status", "--json"), pl.Must("auth", "check", "--json"))
	if before := provider.seen().Revoked; before != 0 {
		t.Errorf("%d grants were revoked", before)
	}
	fmt.Fprint(&said, pl.Must("logout", "jira", "--as", "alice", "--json"))
	if n := provider.seen().Revoked; n != 1 {
		t.Errorf("%d grants are revoked after the logout", n)
	}
	becomes("alice", "jira__whoami", "wasmgate login jira --as alice")
	becomes("bob", "jira__whoami", "user bob")
	if got := pl.Must("logins"); strings.Contains(got, "alice") || !strings.Contains(got, "bob") {
		t.Errorf("logins: %s", got)
	}
	brings(apiKey, 0, "whoami")
	brings(apiKey+"x", 3, "whoami")
	brings(given, 3, "whoami")
	brings(given, 0, "login", "jira", "--as", "bob")
	fmt.Fprint(&said, pl.Must("whoami", "--json"), pl.Must("logins", "--json"), pl.Must("logout", "jira", "--as", "bob", "--json"))
	var keys []struct{ ID string }
	if err := json.Unmarshal([]byte(pl.Must("key", "list", "--json")), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("keys: %+v, %v", keys, err)
	}
	fmt.Fprint(&said, pl.Must("key", "revoke", keys[0].ID, "--json"), pl.Must("auth", "revoke", "--principal", "alice", "--json"), pl.Must("key", "list", "--json"))
	_, page := e2e.Get(t, "http://"+metrics+"/metrics")
	e2e.Holds(t, page, "wasmgate_")
	fmt.Fprint(&said, page, pl.Must("audit", "--json"), pl.Must("sessions", "--json"))
	gw.Signal(os.Interrupt)
	gw.Wait()
	pl.Verify()
	secrets := append(provider.seen().Secrets, robot, given, apiKey[len(apiKey)-40:])
	silent(pl, "what is said", said.String()+gw.Stderr.String(), secrets)
	clean(pl, secrets)
}

// newClientKey makes the key by which a client proves itself, signer.pem, and returns its public half as a JWK.
func newClientKey(t *testing.T, pl *e2e.Place) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pl.Write("signer.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"k1","use":"sig","x":%q,"y":%q}`, enc(point[1:33]), enc(point[33:]))
}

// bringsKey brings an API key with each request.
type bringsKey struct{ key string }

func (k bringsKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-API-Key", k.key)
	return http.DefaultTransport.RoundTrip(r)
}
