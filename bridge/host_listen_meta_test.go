package bridge_test

import (
	"strings"
	"testing"
)

// TestListenWithoutAcceptableMeta: what a client listens to is kept in _meta while the SDK
// has the request. One line must not end the gateway.
func TestListenWithoutAcceptableMeta(t *testing.T) {
	for _, meta := range []string{"5", "null", `"x"`, "[]", "true"} {
		x := newFixture(t)
		w, _ := dialStdio(t, x)
		msg := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":` + meta + `,"notifications":{"taskIds":["a"]}}}`
		if got := w(msg); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "_meta is no object") {
			t.Errorf("stdio, _meta %s: %s", meta, got)
		}
		if got := w(request(newest, "2", "tools/list", "")); !strings.Contains(got, `"tools"`) {
			t.Errorf("stdio, _meta %s: after that %s", meta, got)
		}
		if got := dialHTTP(t, x, newest)(msg); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("HTTP, _meta %s: %s", meta, got)
		}
	}
}
