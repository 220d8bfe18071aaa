package app_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestStreamsEndWithTheirCredential: a stream of notifications ends when the credential does by which it was opened, in either
// revision; one whose credential holds goes on.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	s.SetLookAgain(20 * time.Millisecond)
	timelimit.Grow(t, 3*time.Second, func(life time.Duration) error { // in which all streams are opened
		return streamsEnd(t, s, p, time.Now().Add(life))
	})
}

// streamsEnd opens streams, some with a credential that ends soon.
func streamsEnd(t *testing.T, s *site, p *authtest.Provider, soon time.Time) error {
	t.Helper()
	key := func(name string, life time.Duration) string {
		k, err := s.Callers.CreateKey(t.Context(), callers.KeyRequest{Name: name + rand.Text(), As: "builder", Expires: life})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + k.Secret
	}
	type opened struct {
		name string
		ends bool
		done chan struct{}
	}
	var all []opened
	for name, tt := range map[string]struct {
		credential string
		ends       bool
	}{
		"a token that ends": {s.token(p, map[string]any{"exp": soon.Add(-time.Minute).Unix()}), true}, // clocks may differ by a minute
		"a token":           {s.token(p, map[string]any{"jti": "t2"}), false},
		"a key that ends":   {key("ends", time.Until(soon)), true},
		"a key":             {key("stays", time.Hour), false},
	} {
		for _, w := range []way{ways("")[1], ways(s.session(tt.credential))[4]} {
			resp := front{http.DefaultClient, s.url, []string{"Authorization", tt.credential}}.open(t, w)
			if resp.StatusCode != http.StatusOK {
				resp.Body.Close()
				return fmt.Errorf("%s, %s: %s", name, w.name, resp.Status)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}()
			all = append(all, opened{name + ", " + w.name, tt.ends, done})
		}
	}
	for _, o := range all {
		if o.ends {
			ends(t, o.name, o.done)
		}
	}
	if time.Now().Before(soon.Add(-time.Second)) {
		t.Error("streams end before their credentials")
	}
	time.Sleep(100 * time.Millisecond)
	for _, o := range all {
		select {
		case <-o.done:
			if !o.ends {
				t.Errorf("%s has ended", o.name)
			}
		default:
		}
	}
	return nil
}

// TestRevokedUnderWay: when a credential ends, so does everything that is under way with it, even if no
// connection waits for it: a call that is parked until its question is answered, a task, a job.
func TestRevokedUnderWay(t *testing.T) {
	p := authtest.New(t)
	s := newSite(t, strings.ReplaceAll(teamConfig, "ISSUER", p.URL)+"jobs: {offer: true}\n")
	const job = `"name":"jobs__start","arguments":{"tool":"files__wait","arguments":{}}`
	for name, tt := range map[string]struct {
		asks bool
		send func(f front) (status int, body string)
		says string
	}{
		"a parked call": {true, func(f front) (int, string) {
			return f.newest(t, "tools/call", `"name":"files__wait","arguments":{}`, `{"elicitation":{}}`)
		}, `"input_required"`},
		"a job": {false, func(f front) (int, string) { return f.newest(t, "tools/call", job, `{}`) }, `"running"`},
		"a task of a session": {false, func(f front) (int, string) {
			status, _, body := f.send(t, way{"a task", "POST", strings.Replace(strings.Replace(oldCall, "files__read", "files__wait", 1), `"arguments":{}`, `"arguments":{},"task":{}`, 1), []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Session-Id", s.session(f.headers[1])}})
			return status, body
		}, `"taskId"`},
	} {
		s.asks.Store(tt.asks)
		credential := s.token(p, map[string]any{"jti": name})
		status, body := tt.send(front{http.DefaultClient, s.url, []string{"Authorization", credential}})
		if status != 200 || !strings.Contains(body, tt.says) {
			t.Fatalf("%s: %d %s", name, status, body)
		}
		<-s.waits
		select {
		case <-s.ended:
			t.Fatalf("%s: it has ended by itself", name)
		case <-time.After(50 * time.Millisecond):
		}
		if _, err := s.Callers.Revoke(t.Context(), callers.RevokeRequest{TokenID: name}); err != nil {
			t.Fatal(err)
		}
		ends(t, name, s.ended)
	}
}

// TestNoOtherStreams: a session has the stream of its revision, whose end is seen to, and not that of the newest without the headers
// that say so.
func TestNoOtherStreams(t *testing.T) {
	s, p := newTeam(t)
	credential := s.token(p, nil)
	f := front{http.DefaultClient, s.url, []string{"Authorization", credential}}
	status, _, body := f.send(t, way{"", "POST", `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`, ways(s.session(credential))[3].headers})
	if !strings.Contains(body, "-32601") {
		t.Errorf("%d %s", status, body)
	}
}
