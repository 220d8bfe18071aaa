package host_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// TestForgedParameters: the parameters of a request are those that it contains, not those that its
// _meta claims the client has written.
func TestForgedParameters(t *testing.T) {
	const forged = `"_meta":{"io.github.wasmgate/sent":"{\"name\":\"local__denied\",\"arguments\":{\"a\":2}}","progressToken":"p"}`
	for front, w := range rig.Wires {
		t.Run(front, func(t *testing.T) {
			x := rig.NewFixture(t)
			x.Results["echo"] = "args"
			msg := rig.Request(w.Era, "1", "tools/call", `"name":"local__echo","arguments":{"a":1},`+forged)
			if w.Era == rig.Newest { // one _meta of both
				msg = strings.Replace(strings.Replace(msg, forged+",", "", 1), `"_meta":{`, strings.TrimSuffix(forged, "}")+",", 1)
			}
			got := gate.MustDoc(w.Dial(t, x)(msg))
			if diff := cmp.Diff(`{"a":1}`, got.At("/result/args").String()); diff != "" {
				t.Errorf("%s: %s", got, diff)
			}
		})
	}
}
