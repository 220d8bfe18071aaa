package gateway_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// TestToolOfAServerThatWasNeverReady: a caller that is granted the tool learns that its server is
// away. Others do not learn that there is such a server.
func TestToolOfAServerThatWasNeverReady(t *testing.T) {
	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("down__*"),
		Servers: []options.Endpoint{{Server: "down", Command: "/does/not/exist"}, {Server: "hidden", Command: "/does/not/exist"}},
	})
	_ = g.Connect(t.Context())
	for name, want := range map[string]string{"down__x": "not_connected", "hidden__x": "refused_lookup", "nowhere__x": "refused_lookup"} {
		_, err := call(g, name, `{}`)
		if gate.Code(err) != want || gate.Retryable(err) != (want == "not_connected") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
