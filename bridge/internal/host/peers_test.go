package host_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// Clients that begin session after session and end none do not fill the memory: the one
// that was not used for the longest time makes room, and its client begins anew.
func TestSessionsOverHTTPAreBounded(t *testing.T) {
	d := newDesk(t, host.Config{})
	const room = 9
	d.host.Clients().Bound(room, 1024)
	send := func(session, msg string) *http.Response {
		t.Helper()
		resp, err := rig.Post(t.Context(), d.url, rig.Old, session, msg)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // who leaves before the answer has none
		resp.Body.Close()
		return resp
	}
	begin := func() string {
		t.Helper()
		resp := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+rig.Old+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		id := resp.Header.Get("Mcp-Session-Id")
		send(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return id
	}
	lives := func(session string) bool {
		return send(session, `{"jsonrpc":"2.0","id":2,"method":"ping"}`).StatusCode == http.StatusOK
	}
	first, second := begin(), begin()
	for range room - 2 {
		begin()
	}
	if !lives(first) { // it is the last used one now
		t.Fatalf("there is no room for %d", room)
	}
	last := begin()
	rig.Within(t, "the second has made room", func() bool { return !lives(second) })
	if !lives(first) || !lives(last) {
		t.Error("another session has ended than the one that was not used for the longest time")
	}
}

// A principal that begins sessions without end takes room only from itself.
func TestSessionsOfOneMakeRoom(t *testing.T) {
	d := newDesk(t, host.Config{Access: transport.Access{Principal: byHeader}})
	d.host.Clients().Bound(3, 1024)
	alice, bob := sender{t, d.url, "alice"}, sender{t, d.url, "bob"}
	hers := alice.openSession()
	for range 10 {
		bob.openSession()
	}
	if got := alice.old("POST", hers, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); !strings.HasPrefix(got, "200") {
		t.Errorf("alice, who was the first: %s", got)
	}
}
