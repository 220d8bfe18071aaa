package mcp_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

func TestSkim(t *testing.T) {
	r := seed.Rand(t)
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`:                           "7",
		`{"jsonrpc":"2.0","result":{"content":[{"id":"}\"{"}],"id":1},"id":9}`: "9",
		`{"result":"a \" \\\\\" , \"id\":3","id" : "x,y:z" }`:                  `"x,y:z"`,
		`{"id":5,"method":"sampling/createMessage"}`:                           "",
		`{"method":"notifications/message","params":{"id":5}}`:                 "",
		`[{"id":5}]`: "",
		`xxxx`:       "",
		`{"result":1,"id":` + strings.Repeat("1", 400) + `}`: "",
	} {
		var s mcp.Skim
		for rest := []byte(text); len(rest) > 0; { // in pieces, as it comes
			n := 1 + r.IntN(len(rest))
			_, _ = s.Write(rest[:n])
			rest = rest[n:]
		}
		if got, ok := s.ID(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
		if s.Size != int64(len(text)) {
			t.Errorf("%s: %d bytes", text, s.Size)
		}
	}
}
