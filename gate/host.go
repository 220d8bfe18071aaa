package gate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The actions of a sandboxed tool while it carries out a call.
const (
	SandboxHTTP   Action = "sandbox/http"   // send an HTTP request
	SandboxSecret Action = "sandbox/secret" // put a secret into a request
	SandboxKV     Action = "sandbox/kv"     // read or write its key-value store
	SandboxFile   Action = "sandbox/file"   // open or change a file
)

// IsHostCall reports whether the action is that of a host call: of what a
// sandboxed tool does outside of its sandbox.
func (a Action) IsHostCall() bool {
	switch a {
	case SandboxHTTP, SandboxSecret, SandboxKV, SandboxFile:
		return true
	}
	return false
}

// A Permit is the proof that a call was authorized, and what its upstream may do
// on its behalf. Only [Gate.Do] makes one, so an upstream cannot be reached
// around the gate. The zero Permit permits nothing. Copies are the same permit,
// and may be used from several goroutines.
type Permit struct{ of *permitted }

// permitted is a call that the upstream has.
type permitted struct {
	call    *Call
	tool    *Tool
	parts   *Parts  // those that the call began with
	session Session // in which it was admitted
	duty    duty
	relay   *relaying // nil unless the tool makes calls
	asking  *asking   // nil unless the client can be asked

	hostCalls atomic.Uint64
	told      atomic.Uint64 // notifications
	over      atomic.Bool
}

// end ends what the permit permits and returns how many host calls were made.
func (p *permitted) end() uint64 {
	if !p.over.Swap(true) && p.asking != nil {
		close(p.asking.ended)
	}
	return p.hostCalls.Load()
}

// Open returns what is permitted, and false for the zero Permit.
func (p Permit) Open() (*Call, *Tool, bool) {
	if p.of == nil {
		return nil, nil, false
	}
	return p.of.call, p.of.tool, true
}

// Narrowing returns what the decision leaves a sandboxed tool of its grants, all
// its narrowings taken together. The zero Permit leaves nothing.
func (p Permit) Narrowing() Narrowing {
	if p.of == nil {
		return nothing
	}
	return p.of.duty.narrowing
}

// HostCall decides whether the permitted call may do something outside of its
// sandbox. The request, an object, is what policies see as input.request:
//
//	sandbox/http    method, scheme, host, port, path
//	sandbox/secret  name, origin
//	sandbox/kv      op, key
//	sandbox/file    op, path
//
// It is decided for the principal, session and tool of the call, and when
// HostCall returns nil, it is recorded: only then may the upstream do it. The
// error is a [*Refusal], of which the guest may be told the Reason, or wraps
// ctx.Err(). What a policy would ask a person is refused, and so is a decision
// with an obligation that the call is not under already, since nobody would meet
// it. After Invoke has returned every host call is refused, and no longer
// recorded.
//
// What was granted to the module is not known here; the upstream checks that
// beside it. HostCall may be called concurrently.
func (p Permit) HostCall(ctx context.Context, action Action, request Doc) error {
	return p.hostCall(ctx, action, request, (*way).host)
}

// DenyHostCall records a host call which the upstream refuses because it was not
// granted to the module, or not left by the decision on the call. The error is a
// [*Refusal] with this reason, which the guest may be told.
func (p Permit) DenyHostCall(ctx context.Context, action Action, request Doc, reason string) error {
	return p.hostCall(ctx, action, request, func(w *way, ctx context.Context) error {
		w.next(StepAuthorize)
		w.rec.Decision = Decision{Effect: Deny, Reasons: []string{reason}}
		return w.fail(ctx, reason, nil)
	})
}

// hostCall takes a host call its way and records how it ended.
func (p Permit) hostCall(ctx context.Context, action Action, request Doc, decide func(*way, context.Context) error) error {
	if p.of == nil || p.of.over.Load() {
		return &Refusal{Step: StepAuthorize, Name: string(action), Reason: "there is no call on whose behalf it would be done"}
	}
	p.of.hostCalls.Add(1)
	by := p.of.call
	c := Call{
		ID: NewID(), Parent: by.ID, Action: action, Name: by.Name, Args: request, Who: by.Who, Session: by.Session,
		ClientName: by.ClientName, ClientVersion: by.ClientVersion,
	}
	w := way{Parts: p.of.parts, parent: p.of, step: StepParse, mark: time.Now()}
	w.rec = Record{Event: HostCall, Time: w.mark, Call: &c, Tool: p.of.tool, Snapshot: w.Snapshot}
	err := decide(&w, ctx)
	return w.end(ctx, Code(err), err)
}

// host takes a host call from step to step.
func (w *way) host(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = w.fail(ctx, "internal error", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()

	c := w.rec.Call
	if !c.Action.IsHostCall() || c.Args.Kind() != Object {
		return w.fail(ctx, "it is no host call that this gateway knows", nil)
	}

	w.next(StepAuthorize)
	if !w.rec.Tool.Sandboxed {
		return w.fail(ctx, "only a sandboxed tool makes host calls", nil)
	}
	q := Query{Call: c, Tool: w.rec.Tool}
	if err := w.authorize(ctx, &q); err != nil {
		return err
	}
	if err := w.ask(ctx, &q); err != nil {
		return err
	}
	if err := w.admit(ctx, &q); err == errUnasked {
		return w.ask(ctx, &q)
	} else if err != nil {
		return err
	}

	w.next(StepRecord)
	if ctx.Err() != nil || w.parent.over.Load() {
		return w.fail(ctx, "the call has ended meanwhile", nil)
	}
	return nil
}

// holds returns an error if a call that is under d does not meet the obligations
// already: nobody does more about those of a host call, or of a request to the client.
func (d duty) holds(obligations []Obligation) error {
	both, err := d.with(obligations)
	if err == nil && !reflect.DeepEqual(both, d) {
		err = errors.New("what is done within a call cannot meet an obligation that the call is not under")
	}
	return err
}
