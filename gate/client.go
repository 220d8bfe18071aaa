package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/internal/peer"
)

// A Client waits for the answer to a call: it says what can be done with that client while the call
// runs. One client may be that of several calls. It is used concurrently, and embeds [Nobody] for
// what it does not do.
type Client interface {
	// Reach says how the client can be reached, which does not change while a call runs.
	Reach() Reach
	// Approve puts a question to the person, if Reach says that it can (MCP elicitation). It
	// returns soon after ctx has ended. An error says that the client cannot be asked; the
	// call goes on waiting for somebody else to answer, unless it is a [*NotApproved], which
	// refuses the call.
	Approve(ctx context.Context, p Pending) (Answer, error)
	// Request sends a request of the call's server to the client, and waits for its result, an
	// object. The error is the client's refusal, or wraps ctx.Err().
	Request(ctx context.Context, method Action, params Doc) (Doc, error)
	// Notify tells the client something of the call, see [Permit.Notify]. It is not called
	// concurrently by one upstream.
	Notify(ctx context.Context, method string, params Doc)
	// Granted says that the call has been let pass and recorded as that; its upstream has not
	// seen it. It must not block.
	Granted()
	// Tasked says that the server carries the call out as a task, see [Permit.Tasked]. It must
	// not block.
	Tasked()
	// Poll lets the client's stream end, if there is one; the client asks for the answer again
	// after a while, see [Permit.Poll].
	Poll(after time.Duration)
}

// Reach is how a [Client] can be reached. The zero Reach is that of one that waits for its
// answer, and can be neither asked nor told anything.
type Reach struct {
	// Capabilities are those that the client declares and servers may ask it by, the
	// ClientCapabilities of MCP, an object; absent if it can be asked nothing. Rounds says
	// that it can be asked by the answer to its call, too: it calls again then, with
	// [Brought] (MCP 2026-07-28, basic/patterns, multi round-trip requests).
	Capabilities Doc
	Rounds       bool
	// Approves says that a person can be asked by [Client.Approve] while the call waits,
	// ByAnswer that one can be by the answer to the call: the call is then not held, but
	// refused with a [*Pending] at once.
	Approves, ByAnswer bool
	// Hold bounds how long the call waits for a person. After that the person can still answer, for
	// a call that comes again. Zero leaves it to the [Approver].
	Hold time.Duration
	// Hears says that a client hears of progress: only then are servers asked for it.
	Hears bool
	// Detached says that no one has to wait for the answer. The server is asked for its progress
	// all the same, so that it may take its time. MayBeTask says in addition that the client does
	// wait, until the call becomes a task, if it does.
	Detached, MayBeTask bool
}

// Nobody is a [Client] that can be neither asked nor told anything.
type Nobody struct{}

// Reach implements [Client].
func (Nobody) Reach() Reach { return Reach{} }

// Approve implements [Client].
func (Nobody) Approve(context.Context, Pending) (Answer, error) { return Answer{}, errNobody }

// Request implements [Client].
func (Nobody) Request(context.Context, Action, Doc) (Doc, error) { return Doc{}, errNobody }

// Notify implements [Client].
func (Nobody) Notify(context.Context, string, Doc) {}

// Granted implements [Client].
func (Nobody) Granted() {}

// Tasked implements [Client].
func (Nobody) Tasked() {}

// Poll implements [Client].
func (Nobody) Poll(time.Duration) {}

var errNobody = errors.New("the client cannot be asked")

// Bounds of one round of a call, whether the client answers it by its next call, or the upstream
// asks the client meanwhile.
const (
	// RoundState bounds the state that a server has brought back to it, in bytes.
	RoundState = 64 << 10
	// RoundRequests bounds what a server asks in one round.
	RoundRequests = 16
)

// Brought is what a client brings with a call that it makes again because the answer asked
// for more. The zero Brought is nothing.
type Brought struct {
	// Approval is what it answers to the question of an approval; nil if it was not asked.
	Approval *Answered
	// Responses is what it answers the call's server, an object, and State the server's own
	// state as it was given, "" if it was given none.
	Responses Doc
	State     string
}

// check says what is not acceptable of what a client brings for the call's server.
func (b Brought) check() error {
	switch {
	case !b.Responses.IsZero() && b.Responses.Kind() != doc.Object:
		return errors.New("the answers are not an object")
	case len(b.Responses.Raw()) > peer.MaxBytes(actions.Sample):
		return fmt.Errorf("the answers are larger than %d bytes", peer.MaxBytes(actions.Sample))
	case len(b.State) > RoundState:
		return fmt.Errorf("the client's requestState is larger than %d bytes; send it back as the server gave it", RoundState)
	}
	return nil
}
