package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

// A Kind says where something went wrong with a server. The kind follows
// from the place, never from the text of an error.
type Kind string

// The kinds of faults.
const (
	// SpawnFailed: the command could not be started, or ended before it had
	// answered the handshake.
	SpawnFailed Kind = "spawn_failed"
	// Transport: the connection could not be made, or broke.
	Transport Kind = "transport"
	// Protocol: the server said what MCP does not allow.
	Protocol Kind = "protocol"
	// ToolError: the server answered a call with a JSON-RPC error.
	ToolError Kind = "tool_error"
	// NotConnected: a call to an endpoint that is not ready.
	NotConnected Kind = "not_connected"
	// TimedOut: the server did not answer in time.
	TimedOut Kind = "timeout"
	// Limit: the server's answer is larger than it may be.
	Limit Kind = "refused_limit"
	// Pinned: in the client's own process the tool is different from the one that was listed.
	Pinned Kind = "refused_pin"
	// Credential: the server wants a credential that there is none of for the caller.
	Credential Kind = "refused_credential"
	// Busy: the server has no connection for one more client.
	Busy Kind = "refused_busy"
)

// A Fault is what went wrong with one server.
type Fault struct {
	Kind   Kind
	Server string
	Doing  string // what was being done, such as connect
	Err    error  // cause; words of the server in it are quoted
	// MayHaveRun says that the server may have carried out the call, which does not say that it
	// can be repeated.
	MayHaveRun bool
}

// New returns what went wrong with a server.
func New(kind Kind, server, doing string, err error) *Fault {
	return &Fault{Kind: kind, Server: server, Doing: doing, Err: err}
}

// connect is done before a server has the call.
const connect = "connect"

// Called returns err, or the fault in it, after a call of a tool that can be repeated or not.
func Called(err error, repeatable bool) error {
	f, ok := errors.AsType[*Fault](err)
	if !ok || repeatable || f.Doing == connect || f.Kind != Transport && f.Kind != TimedOut {
		return err
	}
	called := *f
	called.MayHaveRun = true
	return &called
}

// Repeatable reports whether it is safe to call again.
func (f *Fault) Repeatable() bool { return !f.MayHaveRun }

func (f *Fault) Error() string {
	return fmt.Sprintf("server %s: %s: %s: %v", f.Server, f.Doing, f.Kind, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// Code returns the kind, as the outcome of a call.
func (f *Fault) Code() string { return string(f.Kind) }

// Public returns what a client may read: our words, none of the server's.
func (f *Fault) Public() string {
	if f.MayHaveRun {
		return f.public() + "; it may have carried out the call, so find out before you call again"
	}
	return f.public()
}

func (f *Fault) public() string {
	switch f.Kind {
	case SpawnFailed:
		return "the server cannot be started"
	case NotConnected:
		if c, ok := errors.AsType[*pace.OpenError](f.Err); ok {
			return c.Public()
		}
		if c, ok := errors.AsType[*NotConnectedError](f.Err); ok {
			return c.Words
		}
		return "the server is not connected"
	case TimedOut:
		if late, ok := errors.AsType[*pace.LateError](f.Err); ok {
			return fmt.Sprintf("the server did not answer within %s (servers.%s.timeout)", late.Timeout, f.Server)
		}
		return "the server did not answer in time"
	case Protocol:
		return "the server's answer is not valid"
	case ToolError:
		return "the server answered with an error"
	case Pinned:
		return "the server has another definition of the tool in its process for this client than the one that was approved; the tool stays blocked until the operator compares them with `wasmgate pin diff`: tell your user"
	case Limit:
		if large, ok := errors.AsType[*mcp.TooLarge](f.Err); ok {
			return fmt.Sprintf("the result has %s; limits.result is %s; the server has carried out the call", mcp.Bytes(large.Size), mcp.Bytes(large.Max))
		}
		return "the result is too large"
	case Credential:
		if said, ok := errors.AsType[interface {
			error
			Public() string
		}](f.Err); ok {
			return said.Public()
		}
		return "the server wants a credential, and there is none for this call"
	case Busy:
		if most, ok := errors.AsType[*ProcessesError](f.Err); ok {
			return most.Error() + "; try again later"
		}
		return "the server serves too many clients alone; try again later"
	case Transport:
		switch {
		case f.Doing == connect:
			return "the server cannot be reached; try again later"
		case !f.MayHaveRun:
			return "the connection to the server broke; call again"
		}
		fallthrough
	default:
		return "the connection to the server broke"
	}
}

// A NotConnectedError says that there is no connection now, and when to ask again.
type NotConnectedError struct {
	Words string
	Fault *Fault // why there is none; nil if there was none yet
}

func (e *NotConnectedError) Error() string {
	if e.Fault == nil {
		return e.Words
	}
	return e.Words + ": " + e.Fault.Error()
}

func (e *NotConnectedError) Unwrap() error {
	if e.Fault == nil {
		return nil
	}
	return e.Fault
}

// A ProcessesError says that a server has as many processes as it may have.
type ProcessesError struct{ Most int }

func (p *ProcessesError) Error() string {
	return fmt.Sprintf("all %d processes of the server (limits.processes) were used by their clients in the last minutes", p.Most)
}

// Wrap returns f, or the Fault that its cause is already. The end of the caller's context
// stays what it is, so that cancellation is never swallowed.
func Wrap(ctx context.Context, f *Fault) error {
	var already *Fault
	if errors.As(f.Err, &already) {
		return already
	}
	switch ended := ctx.Err(); {
	case ended == nil:
	case errors.Is(f.Err, ended):
		return fmt.Errorf("server %s: %s: %w", f.Server, f.Doing, f.Err)
	case errors.Is(f.Err, context.Cause(ctx)): // net/http returns that alone
		return fmt.Errorf("server %s: %s: %w: %w", f.Server, f.Doing, ended, f.Err)
	}
	return f
}

// From makes err a Fault of that server unless it is one.
func From(server, doing string, err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return New(Transport, server, doing, err)
}

// KindOf tells a server that broke the protocol from one at which something
// else went wrong.
func KindOf(err error, otherwise Kind) Kind {
	var n *mcp.ProtocolError
	var rpc *wire.RPCError
	var large *mcp.TooLarge
	var wants *wire.Unauthorized
	switch {
	case errors.As(err, &n), errors.As(err, &rpc), errors.As(err, &large), rounds.OfClient(err):
		return Protocol
	case errors.As(err, &wants):
		return Credential
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	default:
		return otherwise
	}
}
