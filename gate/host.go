package gate

import (
	"context"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// HostCall decides whether the permitted call may do something outside of its
// sandbox. The request, an object, is what policies see as input.request:
//
//	sandbox/http    method, scheme, host, port, path
//	sandbox/secret  name, origin
//	sandbox/kv      op, key
//	sandbox/file    op, path
//
// It is decided for the principal, session and tool of the call, and when HostCall returns nil, it
// is recorded: only then may the upstream do it. One that equals the last, decided alike, is
// counted instead, and a record has the count a second later or at the end of the call. A call may
// have 1000 records of host calls at once, and 100 a second after that: more are refused at
// [step.Limit], and counted likewise. The error is a [*Refusal], whose Reason the guest may see, or
// wraps ctx.Err(). If the policy would ask a person, the host call is refused, and so is a decision
// with an obligation that the call is not under already, since no one would meet it. After Invoke
// has returned every host call is refused, and no longer recorded.
//
// The grants of the module are not known here; the upstream checks that as well. HostCall may be
// called concurrently.
func (p Permit) HostCall(ctx context.Context, action Action, request Doc) error {
	return p.hostCall(ctx, action, request, (*nested).host)
}

// DenyHostCall records a host call which the upstream refuses because it was not granted to the
// module, or not left by the decision on the call. The error is a [*Refusal] with this reason,
// which the guest may see.
func (p Permit) DenyHostCall(ctx context.Context, action Action, request Doc, reason string) error {
	return p.hostCall(ctx, action, request, func(n *nested, ctx context.Context) error {
		n.next(step.Authorize)
		n.rec.Decision = Decision{Effect: Deny, Reasons: []string{reason}}
		return n.fail(ctx, reason, nil)
	})
}

// hostCall takes a host call its way and records how it ended.
func (p Permit) hostCall(ctx context.Context, action Action, request Doc, decide func(*nested, context.Context) error) error {
	if p.of == nil || p.of.over.Load() {
		return &Refusal{Step: step.Authorize, Name: string(action), Reason: noCall}
	}
	p.of.hostCalls.Add(1)
	n := p.of.nested(HostCall, action, request)
	if !p.of.ledger.admits(n) {
		return p.of.ledger.refuses(ctx, n)
	}
	return p.of.ledger.keep(ctx, n, decide(n, ctx))
}

// host takes a host call from step to step.
func (n *nested) host(ctx context.Context) (err error) {
	defer n.caught(ctx, &err)

	c := n.rec.Call
	if !actions.IsHostCall(c.Action) || c.Args.Kind() != doc.Object {
		return n.fail(ctx, "this gateway does not know this host call", nil)
	}
	n.next(step.Authorize)
	if !n.by.tool.Sandboxed {
		return n.fail(ctx, "only sandboxed tools may make host calls", nil)
	}
	return n.settle(ctx)
}
