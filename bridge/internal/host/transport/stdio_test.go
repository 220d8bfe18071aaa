package transport_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/host/transport"
)

// FuzzReadMessages: each line is read, and those that are too long are reported.
func FuzzReadMessages(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\r\n\nend"))
	f.Add(bytes.Repeat([]byte("x"), 100))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 20
		var want [][]byte // of lines that end
		all := bytes.SplitAfter(stream, []byte("\n"))
		for _, l := range all[:len(all)-1] {
			want = append(want, bytes.TrimSuffix(l, []byte("\n")))
		}
		got, bad, err := transport.ReadMessages(bytes.NewReader(stream), most)
		if errors.Is(err, io.EOF) && len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i := range got {
			if bad[i] != (len(want[i]) > most) || !bad[i] && !bytes.Equal(got[i], want[i]) {
				t.Fatalf("line %d of %d bytes: bad %v", i, len(want[i]), bad[i])
			}
		}
	})
}
