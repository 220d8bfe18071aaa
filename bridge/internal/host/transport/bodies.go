package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

const (
	// smallBody is how much of a body is read without a share in what is under way, in bytes.
	smallBody = 16 << 10
	// largestBodies is how many of the largest bodies may be under way at once.
	largestBodies = 16
	// bodyWait is how long a client waits before its body is read. It is half of the time that
	// the body has.
	bodyWait = 30 * time.Second
	// maxWaitingBodies bounds the clients that wait.
	maxWaitingBodies = 1024
)

// bodies are those of requests over HTTP that are under way, in bytes. Callers share them.
type bodies = fair.Queue[gate.SessionKey, struct{}]

func newBodies() *bodies { return fair.NewQueue[gate.SessionKey, struct{}](maxWaitingBodies) }

// errBodies says that a body was not read, because too many others were under way.
var errBodies = errors.New("too many bytes of requests are under way")

// A body is one of them, from its first bytes beyond smallBody to the end of its request.
type body struct {
	io.Reader
	ctx    context.Context
	bodies *bodies
	demand fair.Demand[gate.SessionKey, struct{}]
	left   int64 // bytes that may be read without a share
	has    bool
}

// newBody returns the body of a request, which is read from sent.
func (f *Front) newBody(r *http.Request, sent io.Reader, p sessions.Client) *body {
	most := f.terms.Load().MaxBody
	length := min(r.ContentLength, most)
	b := &body{Reader: sent, ctx: r.Context(), bodies: f.bodies}
	if length < 0 { // it is not announced
		length, b.left = most, smallBody
	}
	call := gate.Call{Who: p.Who, Session: p.Key()}
	b.demand.Caller, b.demand.Lane = call.Caller(), p.SessionID
	b.demand.Add(struct{}{}, largestBodies*most, length)
	return b
}

// Read implements [io.Reader].
func (b *body) Read(to []byte) (int, error) {
	if b.left <= 0 && !b.has {
		if err := b.bodies.Take(b.ctx, &b.demand, bodyWait); err != nil {
			return 0, errors.Join(errBodies, err)
		}
		b.has = true
	}
	n, err := b.Reader.Read(to)
	b.left -= int64(n)
	return n, err
}

// end says that the request has been answered. Nil has no share.
func (b *body) end() {
	if b != nil && b.has {
		b.bodies.Give(&b.demand)
	}
}
