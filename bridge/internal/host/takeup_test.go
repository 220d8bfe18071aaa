package host_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// TestSessionIsTakenUp: a gateway that was started again goes on with the sessions of the one before,
// for the same principal. A session that it has ended itself is gone, and so is one with another secret.
func TestSessionIsTakenUp(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	secret := []byte(strings.Repeat("k", 32))
	begin := func(secret []byte) sender {
		var cfg host.Config
		cfg.Access, cfg.Seal = transport.Access{Principal: byHeader}, secret
		return sender{t, newDesk(t, cfg).url, "alice"}
	}
	before := begin(secret)
	session := before.openSession()
	if got := before.old("POST", session, ping); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	if strings.Trim(session, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(session) > 2000 {
		t.Errorf("the session is %q", session)
	}

	after := begin(secret)
	var all sync.WaitGroup
	for range 8 { // at once
		all.Go(func() {
			if got := after.old("POST", session, ping); !strings.HasPrefix(got, "200") {
				t.Errorf("taken up: %s", got)
			}
		})
	}
	all.Wait()
	for _, who := range strangers {
		stranger := sender{t, after.url, who}
		if got := stranger.old("POST", session, ping); !strings.HasPrefix(got, "404") {
			t.Errorf("%s: %s", who, got)
		}
		if got := (sender{t, begin(secret).url, who}).old("POST", session, ping); !strings.HasPrefix(got, "404") {
			t.Errorf("%s, first after the start: %s", who, got)
		}
	}
	if got := after.old("POST", session, rig.Hello); !strings.Contains(got, "duplicate") {
		t.Errorf("initialized again: %s", got)
	}
	if got := begin([]byte(strings.Repeat("x", 32))).old("POST", session, ping); !strings.HasPrefix(got, "404") {
		t.Errorf("another secret: %s", got)
	}
	altered := []byte(session)
	altered[20] ^= 1
	if got := after.old("POST", string(altered), ping); !strings.HasPrefix(got, "404") {
		t.Errorf("altered: %s", got)
	}

	for _, ended := range []string{session, after.openSession()} {
		if resp := after.open("DELETE", "", "Mcp-Session-Id", ended); resp.StatusCode != http.StatusNoContent {
			t.Errorf("ended: %d", resp.StatusCode)
		}
		if got := after.old("POST", ended, ping); !strings.HasPrefix(got, "404") {
			t.Errorf("one that has ended: %s", got)
		}
	}
	for range 50 { // at the beginning of a gateway, too, by a clock that is too coarse to tell
		young := begin(secret)
		ended := young.openSession()
		young.old("DELETE", ended, "")
		if got := young.old("POST", ended, ping); !strings.HasPrefix(got, "404") {
			t.Fatalf("one that has ended with its gateway just started: %s", got)
		}
	}
	long := strings.Replace(rig.Hello, `"capabilities":{}`, `"capabilities":{"experimental":{"x":{"y":"`+strings.Repeat("y", 4000)+`"}}}`, 1)
	resp := before.open("POST", long)
	rig.AnswerOf(t, resp)
	if id := resp.Header.Get("Mcp-Session-Id"); len(id) > 100 {
		t.Errorf("an id of %d bytes", len(id))
	}
}
