package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// largeResult returns a result of about 64 KB: rows, and the text that mirrors
// them.
func largeResult() []byte {
	var rows []string
	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"row number %d","path":"/srv/docs/%d.md","size":%d.5,"ok":true}`, i, i, i, i*31))
	}
	structured := `{"rows":[` + strings.Join(rows, ",") + `]}`
	text, err := json.Marshal(structured)
	if err != nil {
		panic(err)
	}
	prose, err := json.Marshal(strings.Repeat("It was a bright cold day, and the clocks were striking. ", 400))
	if err != nil {
		panic(err)
	}
	return []byte(`{"content":[{"type":"text","text":` + string(text) + `},{"type":"text","text":` + string(prose) + `}],"structuredContent":` + structured + `}`)
}

// BenchmarkDo measures what the gate itself adds to a call: every collaborator
// answers at once.
func BenchmarkDo(b *testing.B) {
	var mixed atomic.Int64
	for name, result := range map[string]string{
		"small": `{"content":[{"type":"text","text":"hello"}]}`,
		"64KB":  string(largeResult()),
	} {
		b.Run(name, func(b *testing.B) {
			x := newInstant("v", &mixed)
			x.tool.Output = nil
			x.result = answer(result)
			g, err := gate.New(x.parts())
			if err != nil {
				b.Fatal(err)
			}
			call := newCall()
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Do(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDoParallel is BenchmarkDo from all cores at once.
func BenchmarkDoParallel(b *testing.B) {
	var mixed atomic.Int64
	x := newInstant("v", &mixed)
	x.tool.Output = nil
	x.result = answer(`{"content":[{"type":"text","text":"hello"}]}`)
	g, err := gate.New(x.parts())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Do(b.Context(), newCall()); err != nil {
				b.Error(err)
			}
		}
	})
}
