package doc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
)

// arguments returns about 1 KB of the kind that tools are called with.
func arguments() []byte {
	return []byte(`{"path":"/srv/docs/report.md","recursive":true,"limit":250,"filter":{"owner":"alice","tags":["draft","2026","internal"],"since":"2026-03-01T00:00:00Z"},
"edits":[{"line":12,"old":"the quick brown fox","new":"a \"quicker\" brown fox\n"},{"line":99,"old":"jumps over the lazy dog","new":"jumps over two lazy dogs"}],
"message":"` + strings.Repeat("Change the wording in the second part, and keep the rest. ", 10) + `","weights":[0.25,1.5,3,-7e-3,1000000],"dryRun":false,"cursor":null}`)
}

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

// hostile are documents that are built to cost their reader much.
func hostile() map[string][]byte {
	return map[string][]byte{
		"1MB of ones":          []byte("[" + strings.Repeat("1,", 1<<19) + "1]"),
		"1MB of tiny numbers":  []byte("[" + strings.Repeat("1.2e-999,", 1<<20/9) + "1]"),
		"1MB of long numbers":  []byte("[" + strings.Repeat("0."+strings.Repeat("7", 1000)+"e-900,", 1<<20/1008) + "1]"),
		"1MB of empty objects": []byte("[" + strings.Repeat("{},", 1<<20/3) + "1]"),
		"1MB of names":         []byte(manyNames(1<<20/14, "")),
		"1MB of escapes":       []byte(`"` + strings.Repeat(`\u0041`, 1<<20/6) + `"`),
	}
}

func BenchmarkParse(b *testing.B) {
	inputs := map[string][]byte{"arguments": arguments(), "result": largeResult()}
	for name, in := range hostile() {
		inputs["hostile "+name] = in
	}
	for name, in := range inputs {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := doc.Parse(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	inputs := map[string][]byte{"arguments": arguments(), "result": largeResult()}
	for name, in := range hostile() {
		inputs["hostile "+name] = in
	}
	for name, in := range inputs {
		b.Run(name, func(b *testing.B) {
			d := doc.Must(string(in))
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				d.Canonical()
			}
		})
	}
}

func BenchmarkMapStrings(b *testing.B) {
	for name, in := range map[string][]byte{"arguments": arguments(), "result": largeResult()} {
		b.Run(name+" unchanged", func(b *testing.B) {
			d := doc.Must(string(in))
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := doc.MapStrings(d, func(_ doc.Leaf, s string) string { return s }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	d := doc.Must(string(largeResult()))
	b.ReportAllocs()
	for b.Loop() {
		if d.Get("structuredContent").IsZero() {
			b.Fatal("no member")
		}
	}
}
