package app_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/logins"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestOthersGoOn: the end of a credential does not end anything that is under way with another one,
// whether of the same person or of a different one.
func TestOthersGoOn(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	key := func(as string) *callers.Key {
		k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: as, Expires: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first, second := key("builder"), key("builder")
	credentials := map[string]string{
		"alice's token":         s.token(p, map[string]any{"jti": "a1"}),
		"alice's other token":   s.token(p, map[string]any{"jti": "a2"}),
		"bob's token":           s.token(p, map[string]any{"sub": "bob", "jti": "b1"}),
		"builder's token":       s.token(p, map[string]any{"sub": "builder", "jti": "c1", "groups": []string{"eng-a"}}),
		"builder's key":         "Bearer " + first.Secret,
		"another builder's key": "Bearer " + second.Secret,
	}
	type underWay struct{ call, stream chan struct{} }
	all := make(map[string]underWay)
	for name, credential := range credentials {
		call, stream := make2(s, credential)
		all[name] = underWay{call, stream}
	}
	for _, step := range []struct {
		do   func() error
		ends []string
	}{
		{func() error {
			_, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{TokenID: "a1"})
			return err
		}, []string{"alice's token"}},
		{func() error { _, err := s.Callers.RevokeKey(t.Context(), first.ID); return err }, []string{"builder's key"}},
		{func() error {
			_, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "builder", Issuer: "corp"})
			return err
		}, []string{"builder's token"}},
		{func() error {
			_, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "bob", Issuer: "other"})
			return err
		}, nil},
		{func() error {
			_, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Subject: "bob"})
			return err
		}, []string{"bob's token"}},
		{func() error { _, err := s.Callers.RevokeKey(t.Context(), second.ID); return err }, []string{"another builder's key"}},
		{func() error {
			_, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{Principal: "alice"})
			return err
		}, []string{"alice's other token"}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		for _, name := range step.ends {
			ends(t, name+": the call", all[name].call)
			ends(t, name+": the stream", all[name].stream)
			delete(all, name)
		}
		time.Sleep(50 * time.Millisecond)
		for name, w := range all {
			select {
			case <-w.call:
				t.Errorf("after %q the call with %s has ended", step.ends, name)
			case <-w.stream:
				t.Errorf("after %q the stream with %s has ended", step.ends, name)
			default:
			}
		}
	}
}

// TestKeysOfNobody: a key belongs to a listed principal of exactly that tenant, and never to the local
// principal, as which unidentified callers are served.
func TestKeysOfNobody(t *testing.T) {
	s := newSite(t, "version: 1\nlisten: %ADDR%\nprincipals: {builder: {roles: [dev]}, local: {roles: [dev]}}\nauth: {keys: true}\n")
	for _, as := range []string{"acme/builder", "local", "nobody", ""} {
		if k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: as}); err == nil {
			t.Errorf("a key for %q: %+v", as, k)
		}
	}
	for as, nobody := range map[string]bool{"acme/builder": true, "nobody": true, "acme/local": true, "builder": false, "local": false, "": false} {
		if _, err := s.Logins.Begin(t.Context(), logins.Request{Server: "files", As: as}); err == nil || strings.Contains(err.Error(), "no principal") != nobody {
			t.Errorf("a login of %q: %v", as, err)
		}
	}
	none := newSite(t, "version: 1\nlisten: %ADDR%\nprincipals: {builder: {}}\n")
	if _, err := none.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"}); err == nil {
		t.Error("a key where none is taken")
	}
}

// TestHolders: programs bring one API key, and browsers a token that is bound to nothing.
func TestHolders(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	key := "Bearer " + k.Secret
	for name, tt := range map[string]struct {
		header http.Header
		ok     bool
	}{
		"a key":          {http.Header{"Authorization": {key}}, true},
		"two keys":       {http.Header{"Authorization": {key, key}}, false},
		"half and half":  {http.Header{"Authorization": {key[:20], key[20:]}}, false},
		"another scheme": {http.Header{"Authorization": {"Basic " + k.Secret}}, false},
		"no scheme":      {http.Header{"Authorization": {k.Secret}}, false},
		"a token":        {http.Header{"Authorization": {s.token(p, nil)}}, false},
		"nothing":        {http.Header{}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = tt.header
		if who, err := s.Callers.KeyHolder(r); (err == nil) != tt.ok || err == nil && who.ID != "builder" {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	token := func(changes map[string]any) string { return strings.TrimPrefix(s.token(p, changes), "Bearer ") }
	if who, err := s.Logins.TokenHolder(t.Context(), token(nil)); err != nil || who.ID != "alice" {
		t.Errorf("a browser's token: %+v, %v", who, err)
	}
	if who, err := s.Logins.TokenHolder(t.Context(), token(map[string]any{"cnf": map[string]string{"x5t#S256": "x"}})); err == nil {
		t.Errorf("one that is bound to a certificate: %+v", who)
	}
	if who, err := s.Logins.TokenHolder(t.Context(), token(map[string]any{"aud": s.url + "/docs"})); err == nil {
		t.Errorf("one for a group: %+v", who)
	}
}

// TestPastTheProxy: where a proxy speaks TLS, requests that do not come through it are not served, and
// get no page.
func TestPastTheProxy(t *testing.T) {
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+"tls: {terminated_by: [10.1.2.0/24]}\n")
	good := s.token(p, nil)
	for from, want := range map[string]int{"10.1.2.3:5": 200, "[::ffff:10.1.2.3]:5": 200, "127.0.0.1:5": 200, "10.1.3.3:5": 403, "198.51.100.7:5": 403} {
		r := httptest.NewRequest(http.MethodPost, s.url, strings.NewReader(ways("")[0].body))
		r.RemoteAddr = from
		for i := 0; i+1 < len(ways("")[0].headers); i += 2 {
			r.Header.Set(ways("")[0].headers[i], ways("")[0].headers[i+1])
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", good)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		page, shown := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, strings.TrimSuffix(s.url, "mcp")+"connect/x", nil)
		shown.RemoteAddr = from
		s.Handler().ServeHTTP(page, shown)
		if w.Code != want || (page.Code == 403) != (want == 403) {
			t.Errorf("from %s: %d, and a page with %d", from, w.Code, page.Code)
		}
	}
}

// TestOtherSocket: of two Unix sockets only the proxy's is the proxy.
func TestOtherSocket(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not name the peers of a socket")
	}
	dir := t.TempDir()
	s := newSite(t, fmt.Sprintf("version: 1\nlisten: [\"%%ADDR%%\", \"unix:%s\"]\nprincipals: {bob: {}}\nauth: {unix: {%d: bob}, proxy: {unix: %s, user: X-User, groups: X-Groups, roles: {eng: dev}}}\n",
		filepath.Join(dir, "gateway.sock"), os.Getuid(), filepath.Join(dir, "proxy.sock")))
	for name, tt := range map[string]struct {
		socket, user string
		status       int
		tools        string
	}{
		"the proxy's":          {"proxy.sock", "ann", 200, "read wait write"},
		"the proxy's, nobody":  {"proxy.sock", "", 401, ""},
		"the other, with both": {"gateway.sock", "ann", 200, "read"}, // as bob
	} {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, tt.socket))
		}}}
		if status, got := s.tools(c, "http://localhost/mcp", "X-User", tt.user, "X-Groups", "eng"); status != tt.status || got != tt.tools {
			t.Errorf("%s: %d %q, want %d %q", name, status, got, tt.status, tt.tools)
		}
	}
}
