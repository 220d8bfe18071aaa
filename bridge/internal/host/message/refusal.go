package message

import (
	"fmt"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// A Refusal is the answer to a message that nothing else gets to see.
type Refusal struct {
	Status int    // for HTTP
	Body   []byte // nil if the message expects no answer
	Plain  string // in place of it, where there is no message to answer
}

func (no *Refusal) Write(w http.ResponseWriter) {
	switch {
	case no.Plain != "":
		http.Error(w, no.Plain, no.Status)
	case no.Body != nil:
		respond.JSON(w, no.Status, no.Body)
	default:
		w.WriteHeader(no.Status)
	}
}

func Refuse(status int, id []byte, code int64, why string) *Refusal {
	if id == nil {
		id = []byte("null")
	}
	return &Refusal{Status: status, Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, mcp.MustJSON(why))}
}
