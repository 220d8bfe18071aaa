// Package gate decides whether a capability may be used, and carries the use
// through to its audited end.
//
// What a client asks of a server is a [Call]. There is one way through:
//
//	authorize, validate input, approve, invoke, validate output, sanitize, record
//
// [Gate.Do] is that way, written top to bottom. No step can be skipped or
// reordered by configuration, and an upstream can only be reached with a
// [Permit], which only Do can make.
//
// What a sandboxed tool does outside of its sandbox while it carries out a call
// is a host call: [Permit.HostCall] has the same authorizer decide on it, and
// records it, before it is done.
//
// What a server asks of the client while it carries out a call goes the same way:
// [Permit.Request] has it decided, made safe to be seen and recorded before the client
// sees it, and the answer guarded as arguments are.
//
// What a session has read is kept by [Sessions]: as [Labels], by what the operator
// says of the tools ([ToolLabels]), and as [Provenance], the values that it has
// met. Both are given to the authorizer with the next call, and a call's labels
// join when it is admitted, so that calls at once cannot slip by each other.
//
// A call about which the policy asks waits for a person, by an [Approver], before it
// takes anything that others wait for. Then what was approved is looked at again, and
// decided on again, in the state of then.
//
// An error in any step refuses the call: a policy that does not evaluate, an
// obligation that is not understood, an audit log that cannot be written, a
// collaborator that panics. A refusal is a [*Refusal]; [Code] gives the stable
// word for any outcome.
//
// The package imports nothing but the standard library. It declares what it
// needs from others as small interfaces ([Upstream], [Authorizer], [Sessions],
// [Limiter], [Sanitizer], [Recorder]); [Parts] holds one of each.
package gate
