package app_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A front is a way into a gateway by which one principal comes.
type front struct {
	client  *http.Client
	url     string
	headers []string
}

// do sends a request as it is written, and returns the status of its answer and the session that it names.
func (f front) do(t *testing.T, w way) (status int, session string) {
	t.Helper()
	resp := f.open(t, w)
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Mcp-Session-Id")
}

// send does so, and returns the whole answer.
func (f front) send(t *testing.T, w way) (status int, header http.Header, body string) {
	t.Helper()
	resp := f.open(t, w)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(raw)
}

func (f front) open(t *testing.T, w way) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, w.method, f.url, strings.NewReader(w.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, pairs := range [][]string{w.headers, f.headers} {
		for i := 0; i+1 < len(pairs); i += 2 {
			r.Header.Set(pairs[i], pairs[i+1])
		}
	}
	resp, err := f.client.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	return resp
}

// TestTakeoverOverEveryFront: a session belongs to its principal, whichever front the principal came
// by. Callers that come by another front, or by the same front with another name, get the same answer
// to each verb as for a session that does not exist.
func TestTakeoverOverEveryFront(t *testing.T) {
	unraced.Long(t)
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not name the peers of a socket")
	}
	ca, p := newAuthority(t), authtest.New(t)
	cert, _ := ca.issue("gateway", nil)
	socket, secret := filepath.Join(t.TempDir(), "s"), rand.Text()
	s := newSite(t, fmt.Sprintf(`version: 1
listen: ["%%ADDR%%", "unix:%s"]
public_url: https://%%ADDR%%
tls: {%s}
principals: {key: {roles: [dev]}, unix: {roles: [dev]}}
auth:
  keys: true
  mtls: {id: cn}
  unix: {%d: unix}
  proxy: {from: [127.0.0.1], secret: {header: X-Proxy-Secret, value: %q}, user: X-Forwarded-User}
  issuers: {corp: {issuer: %q}}
`, socket, ca.files(t.TempDir(), cert), os.Getuid(), secret, p.URL))
	url := "https://" + strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://")
	key, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: "k", As: "key"})
	if err != nil {
		t.Fatal(err)
	}
	over := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	t.Cleanup(over.CloseIdleConnections)
	token := func(sub string) []string {
		return []string{"Authorization", "Bearer " + p.Sign(t, p.Claims(map[string]any{"sub": sub, "aud": url}), nil)}
	}
	named := func(user string) []string { return []string{"X-Forwarded-User", user, "X-Proxy-Secret", secret} }
	fronts := map[string]front{
		"token": {ca.client(), url, token("token")}, "another token": {ca.client(), url, token("token2")},
		"certificate": {ca.named("cert"), url, nil}, "another certificate": {ca.named("cert2"), url, nil},
		"proxy": {ca.client(), url, named("proxied")}, "another name of the proxy": {ca.client(), url, named("proxied2")},
		"API key": {ca.client(), url, []string{"X-API-Key", key.Secret}}, "Unix socket": {over, "http://localhost/mcp", nil},
	}
	granted := 0
	for owner, own := range fronts {
		status, session := own.do(t, way{"a session's beginning", "POST", oldHello, nil})
		if status != 200 || session == "" {
			t.Fatalf("%s: %d, session %q", owner, status, session)
		}
		unknown := ways(rand.Text())
		for who, other := range fronts {
			if who == owner {
				continue
			}
			for i, w := range ways(session)[3:] {
				got, _ := other.do(t, w)
				want, _ := other.do(t, unknown[3+i])
				if got != want || got != http.StatusNotFound {
					t.Errorf("%s, in a session of %s: %s: %d; of an unknown session %d", who, owner, w.name, got, want)
				}
			}
		}
		if status, _ := own.do(t, ways(session)[3]); status != 200 {
			t.Errorf("%s in their own session, after all of them: %d", owner, status)
		}
		granted++
	}
	// A caller that proves to be the principal is let in, also by another front.
	_, session := fronts["proxy"].do(t, way{"a session's beginning", "POST", oldHello, nil})
	if status, _ := (front{ca.named("proxied"), url, nil}).do(t, ways(session)[3]); status != 200 {
		t.Errorf("the principal by their certificate: %d", status)
	}
	if n := s.calls(); n != granted+1 {
		t.Errorf("%d calls were granted, want %d", n, granted+1)
	}
}
