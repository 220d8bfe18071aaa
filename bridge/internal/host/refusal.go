package host

import (
	"fmt"
	"net/http"

	"github.com/wasmgate/wasmgate/bridge/internal/host/respond"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// A refusal is the answer to a message that nothing else gets to see.
type refusal struct {
	status int    // for HTTP
	body   []byte // nil if the message expects no answer
	plain  string // in place of it, where there is no message to answer
}

func (no *refusal) write(w http.ResponseWriter) {
	switch {
	case no.plain != "":
		http.Error(w, no.plain, no.status)
	case no.body != nil:
		respond.JSON(w, no.status, no.body)
	default:
		w.WriteHeader(no.status)
	}
}

func refuse(status int, id []byte, code int64, why string) *refusal {
	if id == nil {
		id = []byte("null")
	}
	return &refusal{status: status, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, mcp.MustJSON(why))}
}
