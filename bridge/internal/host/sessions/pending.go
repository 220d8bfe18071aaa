package sessions

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// maxClientError bounds the error of a client that is passed on to a server, in bytes.
const maxClientError = 4 << 10

// pendingRequests are the requests of the host to a client that wait for an answer. A client may
// outlive its gateway and be served by the next one; what it answers to the first must not
// be taken for an answer to the second, which also counts from 1: so ids begin with mark,
// unless sessions tell that apart.
type pendingRequests struct {
	mark string

	mu   sync.Mutex
	last int64
	by   map[string]chan gate.Doc // by the JSON of the id; each has room for the only answer
}

// request sends a request, and waits for its answer. The request is withdrawn once its caller no
// longer waits.
func (a *pendingRequests) request(ctx context.Context, send func([]byte), method string, params gate.Doc) (gate.Doc, error) {
	id, answer := a.add()
	defer a.remove(id)
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}`, id, mcp.MustJSON(method), params.Raw()))
	select {
	case msg := <-answer:
		return resultOf(msg)
	case <-ctx.Done():
		send(message.Notification(mcp.MethodCancelled, gate.MustDoc(`{"reason":"context canceled","requestId":`+id+`}`)))
		return gate.Doc{}, ctx.Err()
	}
}

func (a *pendingRequests) add() (id string, answer <-chan gate.Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	id = strconv.FormatInt(a.last, 10)
	if a.mark != "" {
		id = `"` + a.mark + id + `"`
	}
	if a.by == nil {
		a.by = make(map[string]chan gate.Doc)
	}
	c := make(chan gate.Doc, 1)
	a.by[id] = c
	return id, c
}

func (a *pendingRequests) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, id)
}

// answer takes a client's answer. One to nothing that waits is dropped.
func (a *pendingRequests) answer(msg gate.Doc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := msg.Get("id").String()
	if c := a.by[id]; c != nil {
		delete(a.by, id)
		c <- msg
	}
}

// resultOf returns the result that a client's answer brings; absent if that is no object.
func resultOf(msg gate.Doc) (gate.Doc, error) {
	if e := msg.Get("error"); e.Kind() == doc.Object {
		code, _ := strconv.ParseInt(e.Get("code").String(), 10, 64)
		return gate.Doc{}, &mcp.Error{Code: code, Message: mcp.Clip(e.Get("message").Text(), maxClientError)}
	}
	if res := msg.Get("result"); res.Kind() == doc.Object {
		return res, nil
	}
	return gate.Doc{}, nil
}
