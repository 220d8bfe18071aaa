package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/match"
)

// The transports of a server with a URL.
const (
	// TransportAuto is streamable HTTP, or else the older HTTP+SSE.
	TransportAuto = "auto"
	TransportHTTP = "streamable-http"
	TransportSSE  = "sse"
)

// The values of [Config.Sessions].
const (
	// SessionsAuto is SessionsOwn for a server with Command, and else gives clients that can
	// be asked something connections of their own.
	SessionsAuto = "auto"
	// SessionsOwn gives each client a connection of its own.
	SessionsOwn = "own"
	// SessionsShared gives all clients one connection. The server can ask them nothing.
	SessionsShared = "shared"
)

// ProtocolAuto is a value of [Config.Protocol], beside [mcp.Revision] and [mcp.Stateless]: the
// newest revision that the server speaks; one on standard input and output is asked for those
// with a handshake first.
const ProtocolAuto = "auto"

// The values of [Config.Retry].
const (
	// RetryNever sends a call again only if the server cannot have seen it.
	RetryNever = "never"
	// RetryIdempotent also sends a call of a tool again that the server declares to
	// be idempotent, or to change nothing, when the connection broke before the answer.
	RetryIdempotent = "idempotent"
)

// HealthOff is the [Config.Health] of a server that is not pinged.
const HealthOff time.Duration = -1

// Config configures an [Endpoint]. Exactly one of Command, URL, Dial and
// Broken says how the server is reached.
type Config struct {
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
	// Learn is told what Command uses, as [confine.Command] has it.
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
	// Protocol is the revision of MCP to speak, Revision or Stateless; empty is
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
	// PinTLS has [Declaration] name the key of the server's certificate, and ends
	// connections in which it changes.
	PinTLS bool

	// Dial returns the transport of a connection, for servers in this process.
	Dial func() (sdk.Transport, error)

	// Broken says why the server cannot even be tried. It is listed as faulted.
	Broken string

	// ConnectTimeout bounds spawn, handshake and first listing together. A child that
	// works or talks meanwhile gets up to ten times as long, and one that has failed before
	// longer each time. Zero means 2 m for Command, else 30 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a call may take, and how long the server may be silent
	// in one whose client is told of its progress: that may then take up to ten times
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
	// [MaxProcesses]. Pool bounds those of all servers that have it together; nil does not.
	Processes int
	Pool      *Pool
	// Methods are those that MCP does not have and the server does: see
	// [actions.CheckMethod]. At most [listing.MaxMethods].
	Methods []string
	// MaxMessage bounds a message of the server, in bytes. Zero means 10 MiB.
	MaxMessage int64

	Tools listing.Options
	Log   *slog.Logger // nil discards
}

// DefaultMaxMessage bounds a message of a server, in bytes.
const DefaultMaxMessage = 10 << 20

const (
	defaultTimeout = 30 * time.Second
	defaultStart   = 2 * time.Minute // of a child: what it runs may have to be installed first
	defaultHealth  = 30 * time.Second
)

// check says what is wrong with the configuration, and fills in what is not said.
func (c *Config) check() error {
	if _, err := gate.NewToolName(c.Server, "x"); err != nil {
		return err
	}
	ways := 0
	for _, set := range []bool{c.Command != "", c.URL != "", c.Dial != nil, c.Broken != ""} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("server %s: set exactly one of Command and URL", c.Server)
	}
	if u, err := url.Parse(c.URL); err != nil || c.URL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("server %s: %q is no URL of the form http(s)://host/path", c.Server, c.URL)
	}
	if !slices.Contains([]string{"", TransportAuto, TransportHTTP, TransportSSE}, c.Transport) {
		return fmt.Errorf("server %s: Transport is %q; it must be %s, %s or %s", c.Server, c.Transport, TransportAuto, TransportHTTP, TransportSSE)
	}
	if err := c.checkProtocol(); err != nil {
		return err
	}
	if c.Command == "" && (c.Confine != nil || c.Learn != nil) {
		return fmt.Errorf("server %s: only a command can be confined or learnt from", c.Server)
	}
	if !slices.Contains([]string{"", SessionsAuto, SessionsOwn, SessionsShared}, c.Sessions) {
		return fmt.Errorf("server %s: Sessions is %q; it must be %s, %s or %s", c.Server, c.Sessions, SessionsAuto, SessionsOwn, SessionsShared)
	}
	switch {
	case c.Authorize != nil && c.URL == "":
		return fmt.Errorf("server %s: Authorize needs a URL", c.Server)
	case c.Personal && c.Authorize == nil:
		return fmt.Errorf("server %s: Personal needs Authorize", c.Server)
	case c.Personal && c.Sessions == SessionsShared:
		return fmt.Errorf("server %s: Personal uses the credential of each caller, so Sessions must not be shared", c.Server)
	}
	if !slices.Contains([]string{"", RetryNever, RetryIdempotent}, c.Retry) {
		return fmt.Errorf("server %s: Retry is %q; it must be %s or %s", c.Server, c.Retry, RetryNever, RetryIdempotent)
	}
	if c.ConnectTimeout < 0 || c.CallTimeout < 0 || c.MaxMessage < 0 || c.Retries < 0 || c.RetryWait < 0 || c.Health < 0 && c.Health != HealthOff {
		return fmt.Errorf("server %s: limits must not be negative", c.Server)
	}
	for _, one := range c.CallTimeouts {
		if one.Timeout <= 0 {
			return fmt.Errorf("server %s: the timeout of %s is not positive", c.Server, one.Pattern)
		}
	}
	if err := listing.CheckMethods(c.Methods); err != nil {
		return fmt.Errorf("server %s: %w", c.Server, err)
	}
	c.setDefaults()
	return listing.CheckOptions(&c.Tools)
}

// command is the child that Command says.
func (c *Config) command(ctx context.Context) (to confine.Command, err error) {
	to = confine.Command{Path: c.Command, Args: c.Args, Env: c.Env, Dir: c.Dir, Confine: c.Confine, Learn: c.Learn}
	if c.Reveal == nil {
		return to, nil
	}
	to.Args, to.Env = slices.Clone(c.Args), slices.Clone(c.Env)
	for _, list := range [][]string{to.Args, to.Env} {
		for i, text := range list {
			if list[i], err = c.Reveal(ctx, text); err != nil {
				return to, err
			}
		}
	}
	return to, nil
}

// headers are those of requests to URL.
func (c *Config) headers(ctx context.Context) (http.Header, error) {
	if c.Reveal == nil {
		return c.Headers, nil
	}
	to := c.Headers.Clone()
	for name, values := range to {
		for i, text := range values {
			value, err := c.Reveal(ctx, text)
			if err != nil {
				return nil, err
			}
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fmt.Errorf("the secret for the header %s holds a line break or another control character", name)
			}
			values[i] = value
		}
	}
	return to, nil
}

func (c *Config) setDefaults() {
	if c.Env == nil && c.Command != "" {
		c.Env = confine.Environ(nil, os.LookupEnv)
	}
	if c.Health == 0 && c.Dial == nil {
		c.Health = defaultHealth
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultTimeout
		if c.Command != "" {
			c.ConnectTimeout = defaultStart
		}
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = defaultTimeout
	}
	c.Tools.OnMachine, c.Tools.Login = c.Command != "", c.Authorize != nil
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("server", c.Server)
}

// checkProtocol checks the revision that is configured.
func (c *Config) checkProtocol() error {
	if !slices.Contains([]string{"", ProtocolAuto, mcp.Revision, mcp.Stateless}, c.Protocol) {
		return fmt.Errorf("server %s: Protocol is %q; it must be %s, %s or %s", c.Server, c.Protocol, ProtocolAuto, mcp.Revision, mcp.Stateless)
	}
	if c.Protocol == mcp.Stateless && c.Transport == TransportSSE {
		return fmt.Errorf("server %s: MCP %s does not have the transport HTTP+SSE; choose another transport or protocol", c.Server, mcp.Stateless)
	}
	return nil
}

// A ToolTimeout is the timeout of the tools that Pattern matches: a name as the server
// has it, or the beginning of one and *.
type ToolTimeout struct {
	Pattern string
	Timeout time.Duration
}

// timeoutOf returns how long a tool may be silent.
func (c *Config) timeoutOf(tool string) time.Duration {
	for _, one := range c.CallTimeouts {
		if match.Pattern(one.Pattern).Matches(tool) {
			return one.Timeout
		}
	}
	return c.CallTimeout
}
