package wire

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// errMessage is the fault of a server that breaks JSON-RPC.
var errMessage = errors.New("the server sent a message that is not JSON-RPC 2.0")

// parseMessage reads a message, which it keeps. Halves of surrogate pairs, which servers
// make by cutting strings, are replaced.
func parseMessage(b []byte) (gate.Doc, error) {
	msg, err := gate.ParseDoc(b)
	if errors.Is(err, doc.ErrSurrogate) {
		doc.ReplaceSurrogates(b)
		msg, err = gate.ParseDoc(b)
	}
	if err != nil {
		return gate.Doc{}, &mcp.ProtocolError{Err: err}
	}
	if !mcp.IsRPC(msg) {
		return gate.Doc{}, &mcp.ProtocolError{Err: errMessage}
	}
	return msg, nil
}

// RequestNumber reads the id of a request of the gateway's; 0 of any other.
func RequestNumber(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// answers reports whether doc is the answer to request id.
func answers(doc gate.Doc, id string) bool {
	n, ok := idNumber(doc.Get("id"))
	return ok && n == RequestNumber(id) && doc.Get("method").IsZero()
}

// idNumber returns the number that an answer has as its id. Some servers write 1 as "1" or 1.0.
func idNumber(id gate.Doc) (n int64, ok bool) {
	text := id.Raw()
	if id.Kind() == doc.String {
		text = []byte(id.Text())
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return int64(f), err == nil && f == float64(int64(f)) && math.Abs(f) < 1<<53
}

// messageID returns the id of a message that this package wrote, as text; "" of
// one that expects no answer.
func messageID(msg []byte) string {
	rest, ok := bytes.CutPrefix(msg, []byte(`{"jsonrpc":"2.0","id":`))
	id, _, isRequest := bytes.Cut(rest, []byte(`,"method":`))
	if !ok || !isRequest {
		return ""
	}
	return string(id)
}
