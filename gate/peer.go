package gate

import "context"

// The actions of servers: what they ask of the client of a call while it runs.
const (
	Elicit    Action = "elicitation/create"     // put a form, or a URL, to the person
	Sample    Action = "sampling/createMessage" // have the client's model write
	ListRoots Action = "roots/list"             // which folders the client works in
)

// IsPeerRequest reports whether the action is a server's, see [Permit.Request].
func (a Action) IsPeerRequest() bool {
	switch a {
	case Elicit, Sample, ListRoots:
		return true
	}
	return false
}

// A Peer is the client of a call as its server sees it: somebody who can be asked
// while the call runs. It is used concurrently.
type Peer interface {
	// Capabilities are those that the client declares: the ClientCapabilities of MCP,
	// an object.
	Capabilities() Doc
	// Request sends a request of a server to the client, and waits for its result, an
	// object. The error is the client's refusal, or wraps ctx.Err().
	Request(ctx context.Context, method Action, params Doc) (Doc, error)
}

// Request asks the client of the permitted call something on behalf of its server,
// and returns the client's result, an object. It is decided for the principal and
// the session of the call, with the server and the request as the policy's input;
// every string of params goes the way of the strings of results; it is recorded
// before the client sees it, and once more when it has answered. The error is a
// [*Refusal], of which the server may be told the Reason, the client's own, or wraps
// ctx.Err(). After the call every request is refused.
func (p Permit) Request(ctx context.Context, method Action, params Doc) (Doc, error) {
	return Doc{}, &Refusal{Step: StepAuthorize, Name: string(method), Reason: "the client cannot be asked"}
}

// Screen does what [Permit.Request] does up to the point where the client is asked,
// for a request that reaches the client with the answer to the call (MCP 2026-07-28,
// basic/patterns, multi round-trip requests). It returns the parameters as the client
// may see them.
func (p Permit) Screen(ctx context.Context, method Action, params Doc) (Doc, error) {
	return Doc{}, &Refusal{Step: StepAuthorize, Name: string(method), Reason: "the client cannot be asked"}
}
