package sessions

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxWaiting bounds the notices that wait for a client to read them; more are dropped. Of one
// resource only a single update waits, because it says nothing except that there is another.
const maxWaiting = 64

// sendTime bounds how long sending one may take.
const sendTime = 10 * time.Second

// An Outbox sends notifications to a client, one after the other. It has a goroutine only while
// there is something to send.
type Outbox struct {
	Send  func(ctx context.Context, method string, params gate.Doc)
	Clean func(server string, params gate.Doc) (gate.Doc, bool)

	mu      sync.Mutex
	waiting []mcp.Notice
	sending bool
}

// Hold has what is put wait until run is called.
func (o *Outbox) Hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending = true
}

// Put has n sent, unless too much waits or it says nothing new. It does not block.
func (o *Outbox) Put(n mcp.Notice) {
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
		go o.Run() // ends when nothing waits
	}
}

// PutAll has notifications sent that have no parameters.
func (o *Outbox) PutAll(methods []string) {
	for _, method := range methods {
		o.Put(mcp.Notice{Method: method})
	}
}

func (o *Outbox) next() (mcp.Notice, bool) {
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

func (o *Outbox) Run() {
	for n, ok := o.next(); ok; n, ok = o.next() {
		params, safe := n.Params, true
		if n.Method == mcp.MethodLog { // the words of an update are the client's own
			params, safe = o.Clean(n.Server, n.Params)
		}
		if safe {
			ctx, cancel := context.WithTimeout(context.Background(), sendTime)
			o.Send(ctx, n.Method, params)
			cancel()
		}
	}
}
