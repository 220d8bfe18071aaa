package mcp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// FuzzReadLines: lines are no longer than allowed, and all that came.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\r\n\nend"))
	f.Add(bytes.Repeat([]byte("x"), 100))
	f.Add([]byte(strings.Repeat("y", 20) + "\n" + strings.Repeat("z", 21) + "\n" + strings.Repeat("z", 22) + "\nok\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 20
		var want [][]byte // of lines that end
		all := bytes.SplitAfter(stream, []byte("\n"))
		for _, l := range all[:len(all)-1] {
			want = append(want, bytes.TrimSuffix(l, []byte("\n")))
		}
		lines, err := mcp.ReadLines(bytes.NewReader(stream), most)
		if err == nil {
			t.Fatal("no error at the end")
		}
		for i, l := range lines {
			if len(l) > most || !bytes.Equal(l, want[i]) {
				t.Fatalf("line %d: %q", i, l)
			}
		}
	})
}
