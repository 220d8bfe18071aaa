package mcp_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// TestPeerCapabilities: what servers may ask a client by is left, and costs nothing to find
// again in each call.
func TestPeerCapabilities(t *testing.T) {
	for all, want := range map[string]string{
		`{"roots":{"listChanged":true},"experimental":{},"elicitation":{}}`: `{"elicitation":{},"roots":{"listChanged":true}}`,
		`{"roots":{},"sampling":[]}`:                                        `{"roots":{}}`,
		`{"sampling":true}`:                                                 ``,
		`{"experimental":{}}`:                                               ``,
		`{}`:                                                                ``,
		`[{"roots":{}}]`:                                                    ``,
	} {
		some := mcp.PeerCapabilities(gate.MustDoc(all))
		if string(some.Raw()) != want {
			t.Errorf("of %s %s is left, want %s", all, some.Raw(), want)
		}
		if n := testing.AllocsPerRun(10, func() { some = mcp.PeerCapabilities(some) }); n > 0 || string(some.Raw()) != want {
			t.Errorf("of what was left of %s, %s is left after %v allocations", all, some.Raw(), n)
		}
	}
	if some := mcp.PeerCapabilities(gate.Doc{}); !some.IsZero() {
		t.Errorf("of nothing %s is left", some.Raw())
	}
}
