package bridge

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A client without a session cannot be asked in the middle of a call. When the server
// of its call asks something, the call is parked: it goes on in the host and waits,
// while the client gets the question as the answer to its request (MCP 2026-07-28,
// basic/patterns, multi round-trip requests). The client calls again, with its answer
// and a state that names the parked call, and waits for what comes next: another
// question, or the result.
//
// A state is good for one round. Who brings it without an answer is asked the same
// again; who brings it a second time, while the call goes on or after that, is refused.

// Bounds of calls that wait for their clients.
const (
	maxParked    = 256 // of a host
	maxParkedOf  = 16  // of a principal
	maxQuestions = maxResponses
	// parkIdle is how long a parked call waits if the configuration does not say.
	parkIdle = 10 * time.Minute
)

var (
	errParkedGone = errors.New("the call that this requestState belongs to has ended; call again without it")
	errParkedUsed = errors.New("this requestState has been used already; bring the one that came last")
)

// parking is where calls wait for their clients.
type parking struct {
	mu     sync.Mutex
	closed bool
	calls  map[string]*parked
	of     map[gate.Owner]int
}

// keep keeps a call until leave is called; it may be kept already.
func (p *parking) keep(k *parked) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	owner := k.call.Who.Owner
	switch {
	case p.calls[k.id] != nil:
		return nil
	case p.closed:
		return &gate.Refusal{Step: gate.StepBusy, Name: k.call.Name, Reason: "the gateway is shutting down"}
	case len(p.calls) >= maxParked || p.of[owner] >= maxParkedOf:
		return &gate.Refusal{Step: gate.StepBusy, Name: k.call.Name, Reason: "too many calls wait for their clients"}
	}
	if p.calls == nil {
		p.calls, p.of = make(map[string]*parked), make(map[gate.Owner]int)
	}
	p.calls[k.id] = k
	p.of[owner]++
	return nil
}

func (p *parking) leave(k *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[k.id] == nil {
		return
	}
	delete(p.calls, k.id)
	if owner := k.call.Who.Owner; p.of[owner] > 1 {
		p.of[owner]--
	} else {
		delete(p.of, owner)
	}
}

func (p *parking) find(id string) *parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// close ends the calls that wait, and lets no more wait.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	var all []*parked
	for _, k := range p.calls {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		k.expire()
	}
}

// parked is a call of a client without a session, from its begin on. It is the client,
// to the server of the call.
type parked struct {
	host   *Host
	id     string
	call   gate.Call
	can    gate.Doc
	cancel context.CancelFunc
	news   chan struct{} // there is something to ask
	done   chan struct{} // closed when res and err are there
	res    gate.Result
	err    error

	mu     sync.Mutex
	round  uint64
	last   int         // number of a question
	asking []*question // without an answer
	by     *attending  // the request that waits for the call; nil while the call is parked
	idle   *time.Timer // runs while it is
}

var _ gate.Peer = (*parked)(nil)

// question is what the server waits for.
type question struct {
	key    string
	method gate.Action
	params gate.Doc
	answer chan gate.Doc
}

// attending is a request that waits for a call.
type attending struct {
	ctx   context.Context
	tell  func(context.Context, string, gate.Doc) // nil if it has no stream
	token gate.Doc                                // of progress
}

func attendingBy(ctx context.Context, p peerInfo, c *gate.Call) *attending {
	return &attending{ctx, p.tell, c.Meta.Get("progressToken")}
}

// park carries out a call, which can be parked when its server asks something.
func (h *Host) park(ctx context.Context, p peerInfo, c *gate.Call, can gate.Doc) (gate.Result, error) {
	inside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &parked{
		host: h, id: rand.Text(), call: *c, can: can, cancel: cancel,
		news: make(chan struct{}, 1), done: make(chan struct{}), by: attendingBy(ctx, p, c),
	}
	k.call.Peer, k.call.Rounds = k, true
	if p.tell != nil {
		k.call.Notify = k.tell
	}
	h.calls.Go(func() { // ends with the call, which the request or its idleness ends
		growStack(0)
		defer cancel()
		defer close(k.done)
		defer func() {
			if v := recover(); v != nil {
				h.cfg.Log.Error("call panicked", "panic", v, "stack", string(debug.Stack()))
				k.res, k.err = gate.Result{}, &rpcError{code: codeInternal, message: "internal error"}
			}
		}()
		k.res, k.err = h.cfg.Do(inside, k.call)
	})
	return k.attend(ctx)
}

// attend waits for what comes next of the call. A client that goes meanwhile ends it.
func (k *parked) attend(ctx context.Context) (gate.Result, error) {
	for {
		select {
		case <-k.done:
			k.host.parking.leave(k)
			return k.host.sealed(&k.call, k.res), k.err
		case <-k.news:
			if doc, asks := k.ask(true); asks {
				return gate.Result{Doc: doc, InputRequired: true}, nil
			}
		case <-ctx.Done():
			k.cancel()
			<-k.done
			k.host.parking.leave(k)
			return gate.Result{}, ctx.Err()
		}
	}
}

// ask parks the call and returns what the client is asked; false if there is nothing.
func (k *parked) ask(parks bool) (gate.Doc, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.asking) == 0 && parks {
		return gate.Doc{}, false
	}
	requests := gate.MustDoc("{}")
	for _, q := range k.asking {
		one := gate.MustDoc("{}").With("method", mustJSON(q.method)).With("params", q.params.Raw())
		requests = requests.With(q.key, one.Raw())
	}
	idle := k.host.cfg.ParkIdle
	if k.by = nil; k.idle == nil {
		k.idle = time.AfterFunc(idle, k.expire)
	} else {
		k.idle.Reset(idle)
	}
	inside := append(binary.BigEndian.AppendUint64(nil, k.round), k.id...)
	state := k.host.states.sealAs(parkedForm, &k.call, inside, time.Now().Add(idle))
	doc := gate.MustDoc(`{"resultType":"input_required"}`).With("inputRequests", requests.Raw())
	return doc.With("requestState", mustJSON(state)), true
}

// expire ends a call that is parked.
func (k *parked) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.cancel()
		k.host.parking.leave(k)
	}
}

// unpark answers a request that brings answers to a parked call.
func (h *Host) unpark(ctx context.Context, p peerInfo, c *gate.Call, state string, responses gate.Doc) (gate.Result, error) {
	inside, err := h.states.openAs(parkedForm, c, state)
	if err == nil && len(inside) < 8 {
		err = errState
	}
	if err != nil {
		return gate.Result{}, h.badState(ctx, p, c, err)
	}
	k := h.parking.find(string(inside[8:]))
	if k == nil {
		return gate.Result{}, h.badState(ctx, p, c, errParkedGone)
	}
	again, err := k.take(binary.BigEndian.Uint64(inside), responses, attendingBy(ctx, p, c))
	if err != nil {
		return gate.Result{}, h.badState(ctx, p, c, err)
	}
	if again {
		doc, _ := k.ask(false)
		return gate.Result{Doc: doc, InputRequired: true}, nil
	}
	return k.attend(ctx)
}

// take gives the answers of a round to who waits for them. Again says that none of them
// was there, and nobody attends the call then.
func (k *parked) take(round uint64, responses gate.Doc, by *attending) (again bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by != nil || round != k.round {
		return false, errParkedUsed
	}
	answered := 0
	k.asking = slices.DeleteFunc(k.asking, func(q *question) bool {
		r := responses.Get(q.key)
		if r.IsZero() {
			return false
		}
		answered++
		q.answer <- r // has room for the only one
		return true
	})
	if answered == 0 && len(k.asking) > 0 {
		return true, nil
	}
	k.idle.Stop()
	k.round++
	k.by = by
	if len(k.asking) > 0 {
		k.wake()
	}
	return false, nil
}

// wake tells who attends the call that there is something to ask.
func (k *parked) wake() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// Capabilities implements [gate.Peer].
func (k *parked) Capabilities() gate.Doc { return k.can }

// Request implements [gate.Peer]. What the server asks while its call is parked already
// the client is asked in the next round.
func (k *parked) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	q := &question{method: method, params: params, answer: make(chan gate.Doc, 1)}
	if err := k.add(q); err != nil {
		return gate.Doc{}, err
	}
	select {
	case a := <-q.answer:
		return a, nil
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asking = slices.DeleteFunc(k.asking, func(o *question) bool { return o == q })
		return gate.Doc{}, ctx.Err()
	}
}

func (k *parked) add(q *question) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.asking) == maxQuestions {
		return &gate.Refusal{Step: gate.StepBusy, Name: k.call.Name, Reason: fmt.Sprintf("the server has asked %d things without waiting for an answer", maxQuestions)}
	}
	if err := k.host.parking.keep(k); err != nil {
		return err
	}
	k.last++
	q.key = "ask-" + strconv.Itoa(k.last)
	k.asking = append(k.asking, q)
	k.wake()
	return nil
}

// tell tells the client something of the call, on the stream of the request that waits
// for it, if one does.
func (k *parked) tell(_ context.Context, method string, params gate.Doc) {
	k.mu.Lock()
	by := k.by
	k.mu.Unlock()
	if by == nil || by.tell == nil {
		return
	}
	if method == methodProgress {
		if by.token.IsZero() {
			return
		}
		params = params.With("progressToken", by.token.Raw())
	}
	by.tell(by.ctx, method, params)
}
