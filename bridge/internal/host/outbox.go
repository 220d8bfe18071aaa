package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxWaiting bounds what waits for a client to read it; more is dropped. Of one
// resource a single update waits, for it says nothing but that there is another.
const maxWaiting = 64

// sendTime bounds how long sending one may take.
const sendTime = 10 * time.Second

// An outbox sends what a client is told, one after the other. It has a goroutine only
// while there is something to send.
type outbox struct {
	send  func(ctx context.Context, method string, params gate.Doc)
	clean func(server string, params gate.Doc) (gate.Doc, bool)

	mu      sync.Mutex
	waiting []mcp.Notice
	sending bool
}

// put has n sent, unless too much waits or it says nothing new. It does not block.
func (o *outbox) put(n mcp.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := n.Method != mcp.MethodLog && slices.ContainsFunc(o.waiting, func(w mcp.Notice) bool {
		return w.Method == n.Method && w.Params.String() == n.Params.String()
	})
	if known || len(o.waiting) == maxWaiting {
		return
	}
	o.waiting = append(o.waiting, n)
	if !o.sending {
		o.sending = true
		go o.run() // ends when nothing waits
	}
}

// putAll has notifications sent that have no parameters.
func (o *outbox) putAll(methods []string) {
	for _, method := range methods {
		o.put(mcp.Notice{Method: method})
	}
}

func (o *outbox) next() (mcp.Notice, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.sending = false
		return mcp.Notice{}, false
	}
	n := o.waiting[0]
	o.waiting = slices.Delete(o.waiting, 0, 1)
	return n, true
}

func (o *outbox) run() {
	for n, ok := o.next(); ok; n, ok = o.next() {
		params, safe := n.Params, true
		if n.Method == mcp.MethodLog { // the words of an update are the client's own
			params, safe = o.clean(n.Server, n.Params)
		}
		if safe {
			ctx, cancel := context.WithTimeout(context.Background(), sendTime)
			o.send(ctx, n.Method, params)
			cancel()
		}
	}
}
