package app_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/desks"
	"github.com/wasmgate/wasmgate/internal/console"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestHalfBody: half a body and silence holds no connection longer than a body may take, also on
// the paths that are not the gateway's (which has a test of its own), and at the console.
func TestHalfBody(t *testing.T) {
	a := start(t, load(t, "version: 1\n"))
	a.SetBodyTime(300 * time.Millisecond)
	at, _, _ := run(t, a, app.Front{
		Listen: []string{"127.0.0.1:0"}, Console: "127.0.0.1:0",
		Desk: func(a *app.App) desks.Desk { return console.New(a) },
	})
	link, err := a.Desk.SignIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ at, method, path string }{
		{at, "GET", "/.well-known/oauth-protected-resource"},
		{at, "GET", "/oauth/client.json"},
		{at, "GET", "/connect/x"},
		{at, "POST", "/connect/x"},
		{link.URL, "POST", "/ui/signin"},
		{link.URL, "POST", "/api/v1/pause"},
		{link.URL, "GET", "/ui/"},
	} {
		t.Run(one.method+one.path, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(one.at)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", u.Port()))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000\r\n\r\nhalf=", one.method, one.path, u.Host)
			if err := c.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			said := "no answer"
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, nil)
			if err == nil {
				said = resp.Status
				resp.Body.Close()
				_, err = r.Discard(1 << 20)
			}
			if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
				t.Errorf("%s, and the connection stays open", said)
			}
		})
	}
}

// TestRevokedHalfway: a request whose body is on the way when its credential is revoked is refused, and no call is made, in either
// revision.
func TestRevokedHalfway(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	credential := s.token(p, map[string]any{"jti": "t1"})
	for _, w := range []way{ways("")[0], ways(s.session(credential))[3]} {
		token := s.token(p, map[string]any{"jti": w.name})
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nAuthorization: %s\r\nContent-Length: %d\r\n", u.Path, u.Host, token, len(w.body))
		for i := 0; i+1 < len(w.headers); i += 2 {
			fmt.Fprintf(c, "%s: %s\r\n", w.headers[i], w.headers[i+1])
		}
		fmt.Fprintf(c, "\r\n%s", w.body[:10])
		time.Sleep(200 * time.Millisecond) // it is with the gateway
		if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{TokenID: w.name}); err != nil {
			t.Fatal(err)
		}
		before := s.calls()
		fmt.Fprint(c, w.body[10:])
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" || s.calls() != before {
			t.Errorf("%s: %s, %d calls", w.name, resp.Status, s.calls()-before)
		}
	}
}
