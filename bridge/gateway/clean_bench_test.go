package gateway_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// BenchmarkClean is a whole call whose result is 64 KiB of text in which nothing
// is found, with all that looks for something on: bytes are those of the text.
func BenchmarkClean(b *testing.B) {
	for name, unit := range map[string]string{
		"prose": "Plain prose with numbers 12345 and punctuation; nothing else is here, and nothing is found. ",
		"code":  "if a < b && c > d { x[i] = y<z; return &q } // see https://example.com/a_b for the key of the map\n",
	} {
		const size = 64 << 10
		doc := gate.MustDoc(`{"content":[{"type":"text","text":` + strconv.Quote(strings.Repeat(unit, size/len(unit)+1)[:size]) + `}]}`)
		b.Run(name, func(b *testing.B) {
			g, err := gateway.New(b.Context(), gateway.Config{
				Recorder: new(nothing), Policy: granting("up__say"),
				Functions: map[string][]options.LocalTool{"up": {tool("say", func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
					return gate.Result{Doc: doc}, nil
				})}},
			})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close(context.Background())
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(g, "up__say", `{"text":"x"}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// nothing keeps no record, and says that it does.
type nothing struct{}

func (*nothing) Record(context.Context, *gate.Record) error { return nil }
