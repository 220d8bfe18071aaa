package bridge

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

const (
	methodProgress = "notifications/progress"
	// maxProgress bounds the notifications of one call that wait for its client;
	// more are dropped, so that a slow client holds up nobody else.
	maxProgress = 256
	// drainProgress bounds how long the result waits for those before it.
	drainProgress = 2 * time.Second
)

// progress gives what servers tell of calls under way to whoever made them. The
// tokens are of its own: those of several clients could be the same.
type progress struct {
	mu   sync.Mutex
	last int64
	to   map[int64]chan<- gate.Doc
}

// begin returns a token, and what comes under it until end is called.
func (p *progress) begin() (token string, told <-chan gate.Doc, end func()) {
	ch := make(chan gate.Doc, maxProgress)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == nil {
		p.to = make(map[int64]chan<- gate.Doc)
	}
	p.last++
	n := p.last
	p.to[n] = ch
	return strconv.FormatInt(n, 10), ch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.to, n)
		close(ch)
	}
}

// deliver takes the parameters of a notification. It does not block.
func (p *progress) deliver(params gate.Doc) {
	n, err := strconv.ParseInt(params.Get("progressToken").String(), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.to[n] <- params:
	default: // nobody waits for it, or the client is slow
	}
}

// callTelling makes a call whose client is told how far it is (MCP 2025-11-25,
// basic/utilities/progress): in the server's order, and before the result.
func (l *link) callTelling(ctx context.Context, p gate.Permit, c *gate.Call, name string) (gate.Doc, error) {
	token, told, end := l.progress.begin()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for params := range told {
			p.Notify(ctx, methodProgress, params.With("progressToken", c.Meta.Get("progressToken").Raw()))
		}
	}()
	res, err := l.peer.call(ctx, string(gate.CallTool), progressParams(name, c.Args.Raw(), token))
	end()
	select {
	case <-done:
	case <-time.After(drainProgress):
	}
	return res, err
}

func progressParams(name string, args []byte, token string) []byte {
	b := callParams(name, args)
	return append(append(append(b[:len(b)-1], `,"_meta":{"progressToken":`...), token...), `}}`...)
}

// tellsProgress reports whether the client of a call wants to be told.
func tellsProgress(c *gate.Call) bool {
	kind := c.Meta.Get("progressToken").Kind()
	return c.Notify != nil && (kind == gate.String || kind == gate.Number)
}
