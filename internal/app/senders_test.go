package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/zalando/go-keyring"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/auth"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestRereadSenders: each setting that says which callers are let in, and as whom, takes effect once
// the configuration is read again, even if nothing else has changed. A stream ends if its credential
// would by now be another principal's.
func TestRereadSenders(t *testing.T) {
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+"tls: {terminated_by: [10.1.2.0/24]}\n")
	first, err := os.ReadFile(s.cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	reread := func(old, new string) {
		t.Helper()
		text := strings.Replace(string(first), old, new, 1)
		if text == string(first) && old != new {
			t.Fatalf("%q is not in the configuration", old)
		}
		write(t, s.cfg.File, text)
		if err := s.Reread(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	builder, alice := s.token(p, map[string]any{"sub": "builder"}), s.token(p, nil)
	offered := func(authorization string) string {
		t.Helper()
		status, tools := s.tools(http.DefaultClient, s.url, "Authorization", authorization)
		return fmt.Sprint(status, " ", tools)
	}
	near := func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, s.url, strings.NewReader(""))
		r.RemoteAddr = "10.1.2.3:5"
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	metadata := func() string {
		_, header, _ := s.send(http.DefaultClient, s.url, "tools/list", "")
		return header.Get("WWW-Authenticate")
	}
	usual := func() {
		t.Helper()
		if got := []string{offered(builder), offered(alice), fmt.Sprint(near())}; strings.Join(got, ", ") != "200 read wait write, 200 read wait write, 401" || !strings.Contains(metadata(), strings.TrimSuffix(s.url, "mcp")) {
			t.Errorf("as it was: %q, %s", got, metadata())
		}
	}
	for _, tt := range []struct {
		old, new string
		seen     func() string
		want     string
	}{
		{"builder: {roles: [ci, dev]}", "builder: {roles: [ci]}", func() string { return offered(builder) }, "200 read write"},
		{`"eng-*": dev, `, "", func() string { return offered(alice) }, "200 read"},
		{"10.1.2.0/24", "10.1.3.0/24", func() string { return fmt.Sprint(near()) }, "403"},
		{"public_url: http://127.0.0.1", "public_url: http://localhost", metadata, "http://localhost:"},
	} {
		usual()
		reread(tt.old, tt.new)
		if got := tt.seen(); !strings.Contains(got, tt.want) || strings.Contains(got, "wait") {
			t.Errorf("%s in the place of %s: %s, want %s", tt.new, tt.old, got, tt.want)
		}
		reread("", "")
	}
	usual()
	call, stream := make2(s, alice)
	reread("claims: {roles: groups", "claims: {id: client_id, roles: groups")
	ends(t, "the stream of whom the token does not name any more", stream)
	if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{TokenID: "t1"}); err != nil {
		t.Fatal(err)
	}
	ends(t, "the call, which was begun before", call)
}

// TestApproversWithoutPrincipals: no one approves their own call, even if the configuration lists no
// principal. The approver's token has to be a bearer token: one that is bound to a certificate is
// refused.
func TestApproversWithoutPrincipals(t *testing.T) {
	p := authtest.New(t)
	yaml := strings.Replace(teamConfig, "principals: {builder: {roles: [ci, dev]}, carol: {roles: [ops]}}\n", "", 1) + "policy: {packs: [grants, approve]}\napprovals: {not_self: true, hold: 0s}\n"
	s := newSite(t, strings.ReplaceAll(yaml, "ISSUER", p.URL))
	alice := s.token(p, nil)
	if _, _, doc := s.send(http.DefaultClient, s.url, "tools/call", `"name":"files__write","arguments":{}`, "Authorization", alice); !strings.Contains(doc.String(), "refused_approve") {
		t.Fatalf("not asked: %s", doc)
	}
	all, err := s.Approvals.List(t.Context())
	if err != nil || len(all) != 1 || !all[0].NotSelf || all[0].MayAnswer() != "not alice" {
		t.Fatalf("%+v, %v", all, err)
	}
	answer := func(token string) error {
		_, err := s.Approvals.Decide(t.Context(), approvals.DecideRequest{ID: all[0].ID, Verdict: gate.Approved, Token: strings.TrimPrefix(token, "Bearer ")})
		return err
	}
	if err := answer(alice); err == nil || !strings.Contains(err.Error(), "alice has made the call") {
		t.Errorf("her own: %v", err)
	}
	if err := answer(s.token(p, map[string]any{"sub": "bob", "cnf": map[string]string{"x5t#S256": "x"}})); err == nil || !strings.Contains(err.Error(), "bound to a client certificate") {
		t.Errorf("a token that is bound to a certificate: %v", err)
	}
	if err := answer(s.token(p, map[string]any{"sub": "bob"})); err != nil {
		t.Error(err)
	}
}

// TestApproversByName: where people are distinguished only by the names that the operator gives, no one
// approves their own call.
func TestApproversByName(t *testing.T) {
	s := newSite(t, "version: 1\nlisten: %ADDR%\nprincipals: {ann: {roles: [dev]}, bob: {}}\npolicy: {packs: [grants, approve]}\napprovals: {not_self: true, hold: 0s}\n")
	ask := func() error {
		_, err := s.Calls.Call(t.Context(), calls.Request{Tool: "files__write", Args: "{}", As: "ann"})
		return err
	}
	if e, ok := errors.AsType[*calls.Error](ask()); !ok || e.Code != "refused_approve" {
		t.Fatal("not asked: ", e)
	}
	all, err := s.Approvals.List(t.Context())
	if err != nil || len(all) != 1 || all[0].MayAnswer() != "not ann" || all[0].Arguments != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, tt := range []struct {
		as string
		ok bool
	}{{"ann", false}, {"bob", true}} {
		if _, err := s.Approvals.Decide(t.Context(), approvals.DecideRequest{ID: all[0].ID, Verdict: gate.Approved, As: tt.as}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.as, err)
		}
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
}

// TestDiscoveryIsForLists: by the credential for lists a server is listed, and no call is made.
func TestDiscoveryIsForLists(t *testing.T) {
	unraced.Long(t)
	as := authtest.NewOAuth(t)
	var listed, called atomic.Int32
	const discovery = "Bearer for-lists-alone"
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "jira", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			called.Add(1)
			return &mcp.CallToolResult{}, nil, nil
		})
		return server
	}, nil)
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != discovery {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		listed.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { at.CloseClientConnections(); at.Close() })
	cfg := load(t, fmt.Sprintf("principals: {alice: {}}\nservers: {jira: {url: %q, private: true, auth: {mode: oauth, issuer: %q, discovery: %q}}}\n", at.URL, as.URL, discovery))
	write(t, cfg.Policy.Grants, "- {to: [\"*\"], tools: [\"jira__*\"]}\n")
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	run(t, a, app.Front{})
	o := &office{App: a}
	for _, as := range []string{"alice", ""} {
		o.refused(t, as, "wasmgate login jira")
	}
	if listed.Load() == 0 || called.Load() != 0 {
		t.Errorf("%d requests with the credential for lists, %d calls", listed.Load(), called.Load())
	}
}

// TestDenialsAreBounded: refused requests are counted by reason and network, and together once there are many networks.
func TestDenialsAreBounded(t *testing.T) {
	unraced.Long(t)
	s, _ := newTeam(t)
	const networks = 1100
	for i := range networks {
		for _, from := range []string{fmt.Sprintf("[2001:db8:%x::1]:5", i), "198.51.100.7:5"} {
			r := httptest.NewRequest(http.MethodPost, s.url, nil)
			r.RemoteAddr = from
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	s.RecordDenials()
	by := make(map[string]uint64)
	for e, err := range audit.Read(t.Context(), s.cfg.Audit.Path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == audit.Denied {
			by[e.Network] += max(1, e.Count)
		}
	}
	if len(by) > 1025 || by["198.51.100.0/24"] != networks || by["2001:db8:1::/48"] != 1 || by["others"] != networks-1023 {
		t.Errorf("%d networks, %d of one, %d of one that came once, %d of others", len(by), by["198.51.100.0/24"], by["2001:db8:1::/48"], by["others"])
	}
}

// TestRevokedElsewhere: requests under way also end if another process revokes their key, or if their
// token is revoked after a flood of others has made the gateway forget it.
func TestRevokedElsewhere(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	call, stream := make2(s, "Bearer "+k.Secret)
	other, err := auth.OpenKeys(t.Context(), state.File(filepath.Join(s.cfg.State, "keys.json")))
	if err == nil {
		err = other.Revoke(t.Context(), k.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "the call with the key", call)
	ends(t, "the stream with the key", stream)

	ends(t, "the call with the key, at its server", s.ended)

	issuers := map[string]string{"alice": "corp", "bob": ""}
	answered := make(map[string]chan struct{})
	var soon time.Time
	timelimit.Grow(t, 3*time.Second, func(life time.Duration) error { // in which both calls begin
		soon = time.Now().Add(life)
		for who := range issuers {
			token, done := s.token(p, map[string]any{"sub": who, "jti": who, "exp": soon.Add(-time.Minute).Unix()}), make(chan struct{}) // clocks may differ by a minute
			answered[who] = done
			go func() {
				defer close(done)
				resp := s.open(http.DefaultClient, s.url, "tools/call", `"name":"files__wait","arguments":{}`, "Authorization", token)
				resp.Body.Close()
			}()
			select {
			case <-s.waits:
			case <-done:
				return fmt.Errorf("the call of %s has ended", who)
			}
		}
		return nil
	})
	time.Sleep(time.Until(soon))
	carol := strings.TrimPrefix(s.token(p, map[string]any{"sub": "carol"}), "Bearer ")
	for i := range 10_001 { // which is more than is remembered: what has ended goes first
		if who, err := s.Callers.WhoAmI(t.Context(), callers.WhoRequest{Token: carol, Group: fmt.Sprint("g", i)}); err != nil || who.Refused != 0 {
			t.Fatal(who, err)
		}
	}
	for who, issuer := range issuers {
		done, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: who, Issuer: issuer})
		if err != nil || done.Seen != 0 {
			t.Fatalf("%+v, %v: the token is not forgotten", done, err)
		}
		ends(t, "the call with a forgotten token", answered[who])
		<-s.ended
	}
}

// TestVaultInKeyring: with the key of the vault in the keyring none is in the state folder, and without a keyring nothing is kept.
func TestVaultInKeyring(t *testing.T) {
	keyring.MockInit()
	keep := func() (string, error) {
		cfg := load(t, "vault: {key: keyring}\nservers: {jira: {url: \"http://127.0.0.1:1/mcp\", private: true, auth: oauth}}\n")
		a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close(context.Background())
		_, err = a.Logins.End(t.Context(), logins.Request{Server: "jira", Token: "a-token-that-is-given"})
		return cfg.State, err
	}
	state, err := keep()
	if err != nil {
		t.Fatal(err)
	}
	if key, err := keyring.Get("wasmgate", state); err != nil || len(key) < 32 {
		t.Errorf("the keyring has %d bytes, %v", len(key), err)
	}
	if _, err := os.Stat(filepath.Join(state, "vault.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key is in the state folder: %v", err)
	}
	keyring.MockInitWithError(errors.New("it is locked"))
	if _, err := keep(); err == nil || !strings.Contains(err.Error(), "it is locked") {
		t.Errorf("without a keyring: %v", err)
	}
}
