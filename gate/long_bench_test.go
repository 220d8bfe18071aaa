package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// BenchmarkLongSession is what looking up a call's arguments costs in a session of 10,000 values.
func BenchmarkLongSession(b *testing.B) {
	var p provenance.Provenance
	for i := range 100 {
		var all []string
		for j := range 100 {
			all = append(all, fmt.Sprintf(`"value-%d-%d"`, i, j))
		}
		p, _ = p.Join(p.Meet(gate.MustDoc(`[`+strings.Join(all, ",")+`]`), provenance.FromUntrusted, 1<<20), 1<<20)
	}
	said := provenance.ToolLabels{Effects: []provenance.ToolEffect{provenance.EffectExternal}, To: []string{"/to"}, Content: []string{"/text"}, Takes: map[string]string{"/to": "channel"}}
	definition := gate.MustDoc(`{"inputSchema":{"properties":{"to":{},"text":{},"when":{}}}}`)
	args := gate.MustDoc(`{"to":"value-3-4","text":"Please see the plan of value-7-7 and tell bob@corp.example","when":"2024-06-13 10:00"}`)
	b.ReportAllocs()
	for b.Loop() {
		known := provenance.For(p, "chat", said, nil, nil)
		for a := range known.Arguments(definition, args) {
			_ = known.Carried(a.Text)
		}
	}
}
