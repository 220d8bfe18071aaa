package options

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
)

// The transports of a server with a URL.
const (
	// TransportAuto is streamable HTTP, or else the older HTTP+SSE.
	TransportAuto = "auto"
	TransportHTTP = "streamable-http"
	TransportSSE  = "sse"
)

// The values of [Endpoint.Sessions].
const (
	// SessionsAuto is SessionsOwn for a server with Command, and else gives clients that can
	// be asked something connections of their own.
	SessionsAuto = "auto"
	// SessionsOwn gives each client a connection of its own.
	SessionsOwn = "own"
	// SessionsShared gives all clients one connection. The server can ask them nothing.
	SessionsShared = "shared"
)

// ProtocolAuto is a value of [Endpoint.Protocol] that is no revision: the
// newest revision that the server speaks; one on standard input and output is asked for those
// with a handshake first.
const ProtocolAuto = "auto"

// The values of [Endpoint.Retry].
const (
	// RetryNever sends a call again only if the server cannot have seen it.
	RetryNever = "never"
	// RetryIdempotent also sends a call of a tool again that the server declares to
	// be idempotent, or to change nothing, when the connection broke before the answer.
	RetryIdempotent = "idempotent"
)

// HealthOff is the [Endpoint.Health] of a server that is not pinged.
const HealthOff time.Duration = -1

// DefaultMaxMessage bounds a message of a server, in bytes.
const DefaultMaxMessage = 10 << 20

// An Endpoint says how an MCP server is reached and used. Exactly one of Command, URL, Dial and
// Broken says how the server is reached.
type Endpoint struct {
	Server string // id that prefixes its tools; required

	// Command is started as a child that speaks on its standard input and
	// output, with exactly the environment Env and in the folder Dir. A nil Env is
	// the least that programs need of this one's: see [confine.Environ].
	Command string
	Args    []string
	Env     []string
	Dir     string
	// Reveal returns a text of Args, Env or Headers with the secrets that it refers to, each time that the server
	// is started or connected; nil if they refer to none. Its error names no secret.
	Reveal func(ctx context.Context, text string) (string, error)
	// Confine says what Command may do; nil restricts nothing. Where the system
	// cannot enforce it the endpoint faults, with the reason.
	Confine *confine.Rules
	// Learn gets what Command uses, as [confine.Command] has it.
	Learn func(confine.Access)

	// Written are Command and Args as the operator wrote them, before variables were
	// replaced, which is how the server is known again. Nil means as they are.
	Written []string
	// Declared is a digest of what the operator wrote of how the server runs and is reached,
	// before variables, secrets and paths were put in. Approvals are bound to it; if it is
	// empty, to what they are bound in its place: Command, Args, Env, Dir, Confine, URL and
	// Headers.
	Declared string

	// ClientName and ClientVersion are how the gateway calls itself to the server; empty is wasmgate
	// and its version.
	ClientName, ClientVersion string

	URL       string // http or https
	Transport string // TransportAuto if empty
	// Protocol is the revision of MCP to speak, 2025-11-25 or 2026-07-28; empty is
	// ProtocolAuto.
	Protocol string
	Headers  http.Header
	// Authorize, if not nil, returns the value of the header Authorization of a request to URL
	// on behalf of somebody; nil is the gateway itself, which lists what there is. The permit is
	// that of the call, zero for a request of none. Refused is the server's answer, 401 or 403,
	// to the value before; "" without an error leaves that as it is. What the error's method
	// Public() string returns, if it has one, is read by the caller.
	Authorize func(ctx context.Context, who *gate.Principal, p gate.Permit, refused *http.Response) (string, error)
	// Personal says that what Authorize returns is of one principal alone: each has
	// connections of its own.
	Personal bool
	// DialContext makes the connections to URL; nil is a [net.Dialer]'s.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// PinTLS has Declaration, of bridge/gateway/status, name the key of the server's certificate, and ends
	// connections in which it changes.
	PinTLS bool

	// Dial returns the transport of a connection, for servers in this process.
	Dial func() (mcp.Transport, error)

	// Broken says why the server cannot even be tried. It is listed as faulted.
	Broken string

	// ConnectTimeout bounds spawn, handshake and first listing together. A child that
	// works or talks meanwhile gets up to ten times as long, and one that has failed before
	// longer each time. Zero means 2 m for Command, else 30 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a call may take, and how long the server may be silent
	// in a call whose client receives its progress: that may then take up to ten times
	// as long. Zero means 30 s.
	CallTimeout time.Duration
	// CallTimeouts go before CallTimeout for the tools that they name; the first counts.
	CallTimeouts []ToolTimeout
	// Retry is RetryNever or RetryIdempotent; empty is RetryNever.
	Retry string
	// Retries, if not zero, is how often a call is sent again at most, also one that has found
	// no connection. Zero is once, and such a call fails. Before each there is a pause, within
	// the call's time: RetryWait before the first, doubled by each, 30 s at most.
	Retries   int
	RetryWait time.Duration
	// Health is how long the server may say nothing before it is asked whether it
	// lives. Zero means 30 s, and for one with Dial not at all, as HealthOff does.
	Health time.Duration
	// Sessions is SessionsAuto, SessionsOwn or SessionsShared; empty is SessionsAuto.
	Sessions string
	// Processes is how many processes of Command may belong to a client each; zero means
	// 16.
	Processes int
	// Methods are those that MCP does not have and the server does: see
	// [actions.CheckMethod]. At most 64.
	Methods []string
	// MaxMessage bounds a message of the server, in bytes. Zero means 10 MiB.
	MaxMessage int64

	Tools Tools
	Log   *slog.Logger // nil discards
}

// A ToolTimeout is the timeout of the tools that Pattern matches: a name as the server
// has it, or the beginning of one and *.
type ToolTimeout struct {
	Pattern string
	Timeout time.Duration
}
