// Package gate decides whether a capability may be used, and carries the use
// through to its audited end.
//
// A [Call] is a request of a client to a server. There is one way through, and [Gate.Do] is that
// way, written top to bottom:
//
//	lookup           what the call names, within the groups the client is offered
//	pin              whether its definition is approved
//	authorize        the arguments, coerced to the schema where the caller may know of the
//	                 tool; what the policy says, in the state of the session
//	validate input   the arguments, against the tool's schema
//	approve          a person, if the policy asks
//	limit            a place among the calls under way, and the rates
//	admit            the call's labels join its session; decided again if that has read more
//	record           that the call was let pass
//	invoke           the upstream
//	validate output  the result, against what the tool declares
//	sanitize         every string of the result, then what the policy redacts
//	learn            what the session has read by it
//	record           what came of it, before the client sees it
//
// In the middle there is a loop: what was decided holds for one state of the session, and
// a call that waited for a person, or whose session has read more, is decided on anew.
//
//	parse -> lookup, pin -> arrive: prompt, coercion, secrets, view of the session
//	             |
//	             v
//	   +-----> decide ---- denied -----------------------------> refused
//	   |         |  a ruling: what is sent, duties, labels, whether a person is asked
//	   |         v
//	   |       validate input
//	   |         |
//	   |         +--- a person has to approve: ask -> resume --+
//	   |         v                                             |
//	   |       take a place, pay the rates                     |
//	   |         v                                             |
//	   |       admit -- the session has read more --+          |
//	   |         |                                  v          v
//	   +---------|----------- at most 9 times ------+----------+
//	             v
//	           grant: the granted record, the only maker of a [Permit]
//	             v
//	           invoke -> answer: validate output, sanitize, learn -> the done record
//
// Two words for what goes this way: the call is what the client made, less the secrets that
// must not go on, and what policies see; what is sent is the call less what the policy has
// redacted, and what the schema, people, the upstream and the log see. A step returns what it
// finds to [Gate.Do]'s pass, and leaves nothing for another to find.
//
// The order is part of what is promised: callers that may not call learn no schema, no one is asked
// about a call that cannot run, and a call that waits for a person takes nothing that others wait
// for. No step can be skipped or reordered by configuration, and an upstream can only be reached
// with a [Permit], which only Do can make.
//
// An error in any step refuses the call: a policy that does not evaluate, an
// obligation that is not understood, an audit log that cannot be written, a
// collaborator that panics. A refusal is a [*Refusal]; [Code] gives the stable
// word for any outcome.
//
// # Within a call
//
// While an upstream carries out a call, its Permit lets it do more on the call's behalf,
// and each of these is decided and recorded by itself:
//
//   - [Permit.HostCall]: what a sandboxed tool does outside of its sandbox.
//   - [Permit.Request]: what a server asks of the client. The request is sanitized before the
//     client sees it, and the answer is guarded as arguments are. [Permit.Screen] does so for
//     requests that reach the client with the answer to its call.
//   - [Permit.Relay]: the call of another tool, by a tool of the gateway's own that finds
//     tools, or starts calls and fetches their results later. Both calls take the whole
//     way, and the records of each name the other.
//
// The client of a call is its [Client], the one thing in a [Call] that is no value; its [Reach]
// says what may be asked of it and sent to it. [Permit.Notify] tells it how far the call is, and
// every string is sanitized.
//
// # What a session knows
//
// What a session has read is kept by [Sessions]: as [Labels], by what the operator
// says of the tools ([provenance.ToolLabels]), and as [provenance.Provenance], the values that it has
// met. Both are given to the authorizer with the next call, and a call's labels
// join when it is admitted, so that calls at once cannot slip by each other. A result
// that was kept, and is read later or by another session, teaches that session by
// [Gate.Recall] or [Permit.Recall] before it is read.
//
// # Replays
//
// A gate does not know whether its upstream is a server or a recording of one: replaying a
// session is another [Upstream], and the same way.
//
// # Parts
//
// The package imports nothing but the standard library and leaves of this module: JSON, a
// [Doc], is read in gate/doc; how steps, outcomes, actions, obligations and labels are called
// is in gate/step, codes, actions, obligation and provenance; what a person is asked is shown by
// gate/inquiry. It declares what it needs from others as small
// interfaces ([Upstream], [Authorizer], [Sessions], [Sanitizer], [Recorder], and others
// that may be missing); [Parts] holds one of each, and [Gate.Swap] replaces them all at
// once.
//
// # Files
//
// Each group of files uses those below it:
//
//	do.go, propose.go, relay.go        calls, proposals of calls, and calls by tools of the gateway
//	host.go, peer.go, rounds.go        what is done within a call, by nested.go
//	lookup.go, coerce.go, decide.go,   the steps
//	validate.go, ask.go, take.go,
//	admit.go, invoke.go, learn.go
//	clean.go                           what becomes of a result: verbatim.go returns it unchanged;
//	                                   contents.go, pieces.go, scrub.go and redact.go change it
//	guard.go, destination.go, app.go   secrets in arguments, destinations, labels of apps and skills
//	list.go, recall.go, tell.go        what goes to clients outside of calls
//	way.go, permit.go, trail.go        a call on its way, what its permit holds, its record
//	parts.go and its interfaces        decision.go, session.go, limit.go, pin.go, sanitizer.go,
//	                                   content.go, secrets.go, question.go, record.go, client.go
//	call.go, principal.go, tool.go     what goes through: a call, its caller, what it uses
//	finding.go, labels.go, reason.go   shared values
package gate
