package host_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// TestListenWithoutAcceptableMeta: one line must not end the gateway.
func TestListenWithoutAcceptableMeta(t *testing.T) {
	for _, meta := range []string{"5", "null", `"x"`, "[]", "true"} {
		x := rig.NewFixture(t)
		w, _ := rig.DialStdio(t, x)
		msg := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":` + meta + `,"notifications":{"taskIds":["a"]}}}`
		if got := w(msg); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, "_meta is not an object") {
			t.Errorf("stdio, _meta %s: %s", meta, got)
		}
		if got := w(rig.Request(rig.Newest, "2", "tools/list", "")); !strings.Contains(got, `"tools"`) {
			t.Errorf("stdio, _meta %s: after that %s", meta, got)
		}
		if got := rig.DialHTTP(t, x, rig.Newest)(msg); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("HTTP, _meta %s: %s", meta, got)
		}
	}
}
