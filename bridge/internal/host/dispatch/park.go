package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/questions"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
)

// A client without a session cannot be asked in the middle of a call. When the server of its call
// asks something, the call is parked: it goes on in the host and waits, while the client gets the
// question as the answer to its request (MCP 2026-07-28, basic/patterns, multi round-trip
// requests). The client calls again, with its answer and a state that names the parked call, and
// waits for what comes next: another question, or the result.
//
// A state is good for one round. A client that brings it without an answer is asked the same again.
// A client that brings it a second time, during the call or after it, is refused.

var (
	errParkedGone = errors.New("the call that this requestState belongs to has ended; call again without it")
	errParkedUsed = errors.New("this requestState was used before; send the newest one")
)

// parked is a call whose client is asked by answers to its requests, from its begin on.
// It is the client, to the server of the call. It may become a task, and is one from the
// begin on for a client with a session: see [tasks.startTask].
type parked struct {
	carrier *carrier
	id      string
	call    gate.Call
	client  gate.Client // of the request that made the call
	reach   gate.Reach
	life    context.Context // of the call
	cancel  context.CancelCauseFunc
	left    func()        // says that the host does not wait for the call any more
	done    chan struct{} // closed when res and err are there
	res     gate.Result
	err     error

	mayBeTask  bool
	tasked     chan struct{} // closed, once, when its server carries it out as a task; nil if it is to be none
	taskedOnce sync.Once

	questions.Questions

	turn   sync.Mutex // guards what follows; is locked before the lock of the questions
	round  uint64
	waiter *waiter     // the request that waits for the call; nil while the call is parked
	idle   *time.Timer // runs while it is
	task   bool        // no request waits for the call, nor does the call for one
}

var _ gate.Client = (*parked)(nil)

// waiter is a request that waits for a call.
type waiter struct {
	ctx    context.Context
	notify func(context.Context, string, gate.Doc) // nil if it has no stream
	token  gate.Doc                                // of progress
	tasks  bool                                    // can be answered with a task
}

func newWaiter(ctx context.Context, p sessions.Client, c *gate.Call) *waiter {
	by := &waiter{ctx: ctx, token: c.Meta.Get("progressToken"), tasks: message.DeclaresTasks(c.Meta)}
	if c.Reach().Hears {
		by.notify = p.Channel.Notify
	}
	return by
}

// park carries out a call, which can be parked when its server asks something; if it may,
// it can become a task.
func (cr *carrier) park(ctx context.Context, p sessions.Client, c *gate.Call, can gate.Doc, mayBeTask bool) (gate.Result, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cr.place.calls.Split()
	by := newWaiter(ctx, p, c)
	k := &parked{
		carrier: cr, id: rand.Text(), call: *c, client: c.Client, reach: c.Reach(), life: life, cancel: cancel, left: sync.OnceFunc(cr.place.calls.End),
		done: make(chan struct{}), mayBeTask: mayBeTask, waiter: by,
	}
	k.call.Client = k
	k.reach.Capabilities, k.reach.Rounds = can, !can.IsZero() && !mayBeTask // a task cannot be called again
	if mayBeTask {
		k.tasked, k.reach.Detached, k.reach.MayBeTask = make(chan struct{}), true, true
		cr.taskCalls.enter(k)
	}
	go func() { // ends with the call, which the request, its idleness or its job ends
		GrowStack(false)
		defer k.left()
		defer close(k.done)
		defer cr.taskCalls.leave(k)
		defer func() {
			if v := recover(); v != nil {
				cr.cfg.Log.Error("call panicked", "call", k.call.ID, "panic", v, "stack", string(debug.Stack()))
				k.res, k.err = gate.Result{}, &mcp.Error{Code: mcp.CodeInternal, Message: "internal error"}
			}
		}()
		k.res, k.err = cr.cfg.Do(life, k.call)
	}()
	return k.wait(by)
}

// wait waits for the next step of the call. If the client goes meanwhile, the call ends.
func (k *parked) wait(by *waiter) (gate.Result, error) {
	tasked, long := k.toBeTask(by)
	for toBe := false; ; {
		news := k.Change()
		if isClosed(k.done) {
			return k.outcome()
		}
		if toBe || isClosed(tasked) {
			if doc, is := k.becomeTask(by.ctx); is {
				return gate.Result{Doc: doc, InputRequired: true}, nil
			}
			toBe, tasked, long = false, nil, nil // it is answered as any other call
		}
		if doc, asks := k.ask(true); asks {
			return gate.Result{Doc: doc, InputRequired: true}, nil
		}
		select {
		case <-k.done:
		case <-news:
		case <-tasked:
		case <-long:
			toBe = true
		case <-by.ctx.Done():
			k.cancel(nil)
			<-k.done
			_, _ = k.outcome()
			return gate.Result{}, by.ctx.Err()
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// outcome is what came of the call, which has ended.
func (k *parked) outcome() (gate.Result, error) {
	k.cancel(nil)
	k.carrier.parking.Leave(k)
	return k.carrier.sealed(&k.call, k.res), k.err
}

// ask parks the call and returns what the client is asked; false if there is nothing.
func (k *parked) ask(parks bool) (gate.Doc, bool) {
	k.turn.Lock()
	defer k.turn.Unlock()
	requests, asks, _ := k.Requests()
	if !asks && parks {
		return gate.Doc{}, false
	}
	idle := k.carrier.cfg.ParkIdle
	if k.waiter = nil; k.idle == nil {
		k.idle = time.AfterFunc(idle, k.Expire)
	} else {
		k.idle.Reset(idle)
	}
	k.carrier.parking.Rest(k)
	inside := append(binary.BigEndian.AppendUint64(nil, k.round), k.id...)
	state := k.carrier.states.SealAs(k.carrier.place.parked(), &k.call, inside, time.Now().Add(idle))
	doc := gate.MustDoc(`{"resultType":"input_required"}`).With("inputRequests", requests.Raw())
	return doc.With("requestState", mcp.MustJSON(state)), true
}

// ID implements [parking.Call].
func (k *parked) ID() string { return k.id }

// As implements [parking.Call].
func (k *parked) As() *gate.Call { return &k.call }

// Expire ends a call that is parked.
func (k *parked) Expire() {
	k.turn.Lock()
	defer k.turn.Unlock()
	if k.waiter == nil && !k.task {
		k.idle.Stop() // it may be another who ends it: see [parking.Lot.Keep]
		k.cancel(nil)
		k.carrier.parking.Leave(k)
	}
}

// unpark answers a request that brings answers to a parked call.
func (cr *carrier) unpark(ctx context.Context, p sessions.Client, c *gate.Call, state string, responses gate.Doc) (gate.Result, error) {
	if node := parkedAt(state); node != cr.place.node {
		return gate.Result{}, cr.badState(ctx, p, c, errParkedGone)
	}
	inside, err := cr.states.OpenAs(cr.place.parked(), c, state)
	if err != nil {
		return gate.Result{}, cr.badState(ctx, p, c, err)
	}
	k, ok := cr.parking.Find(string(inside[8:]))
	if !ok {
		return gate.Result{}, cr.badState(ctx, p, c, errParkedGone)
	}
	by := newWaiter(ctx, p, c)
	again, err := k.resume(binary.BigEndian.Uint64(inside), responses, by)
	if err != nil {
		return gate.Result{}, cr.badState(ctx, p, c, err)
	}
	if again {
		doc, _ := k.ask(false)
		return gate.Result{Doc: doc, InputRequired: true}, nil
	}
	return k.wait(by)
}

// resume gives the answers of a round to the questions that wait for them. Again reports that it
// had none of the answers; then no request waits for the call.
func (k *parked) resume(round uint64, responses gate.Doc, by *waiter) (again bool, err error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if k.waiter != nil || round != k.round {
		return false, errParkedUsed
	}
	if !k.carrier.parking.Attend(k) {
		return false, errParkedGone
	}
	answered := k.Answer(responses)
	if _, asks, _ := k.Requests(); answered == 0 && asks {
		return true, nil
	}
	k.idle.Stop()
	k.round++
	k.waiter = by
	return false, nil
}

// Reach implements [gate.Client].
func (k *parked) Reach() gate.Reach { return k.reach }

// Approve implements [gate.Client].
func (k *parked) Approve(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	return k.client.Approve(ctx, p)
}

// Granted implements [gate.Client].
func (k *parked) Granted() {}

// Tasked implements [gate.Client].
func (k *parked) Tasked() {
	if k.tasked != nil {
		k.taskedOnce.Do(func() { close(k.tasked) })
	}
}

// Poll implements [gate.Client]. The request that waits for the call is another each time.
func (k *parked) Poll(time.Duration) {}

// errNobodyAnswers is the error for the server of a task whose client does not come to answer.
var errNobodyAnswers = errors.New("the client has not answered")

// Request implements [gate.Client]. What the server asks while its call is parked already
// the client is asked in the next round; of a task it can be asked at any time, for as
// long as a call is parked.
func (k *parked) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	q, err := k.admit(method, params)
	if err != nil {
		return gate.Doc{}, err
	}
	if !k.mayBeTask {
		return k.Await(ctx, q)
	}
	waits, cancel := context.WithTimeout(ctx, k.carrier.cfg.ParkIdle)
	defer cancel()
	answer, err := k.Await(waits, q)
	if err != nil && waits.Err() != nil && ctx.Err() == nil {
		err = errNobodyAnswers
	}
	return answer, err
}

// admit asks a question of the server; of a call that is no task it is kept for its
// client to come back.
func (k *parked) admit(method gate.Action, params gate.Doc) (*questions.Question, error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	if !k.task {
		if err := k.carrier.parking.Keep(k); err != nil {
			return nil, err
		}
	}
	return k.Add(method, mcp.WithoutTask(params)) // the client knows of the gateway's task, if of any
}

// Notify implements [gate.Client]. It tells the client something of the call on the stream of the request that waits
// for it, if one does.
func (k *parked) Notify(_ context.Context, method string, params gate.Doc) {
	k.turn.Lock()
	by := k.waiter
	k.turn.Unlock()
	if by == nil || by.notify == nil {
		return
	}
	if method == mcp.MethodProgress {
		if by.token.IsZero() {
			return
		}
		params = params.With("progressToken", by.token.Raw())
	}
	by.notify(by.ctx, method, params)
}

// taskCalls are the calls under way that are tasks or may become one, by their IDs.
type taskCalls struct {
	mu sync.Mutex
	by map[string]*parked
}

func (t *taskCalls) enter(k *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = make(map[string]*parked)
	}
	t.by[k.call.ID] = k
}

func (t *taskCalls) leave(k *parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, k.call.ID)
}

// of returns the call of a job that is under way here, or nil.
func (t *taskCalls) of(j jobs.Job) *parked {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[j.Call]
}
