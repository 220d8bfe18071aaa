package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/confine"
	"github.com/wasmgate/wasmgate/gate"
)

// Revision is the newest revision of MCP that endpoints speak to servers.
const Revision = "2025-11-25"

// revisions are those that a server may answer with.
var revisions = []string{Revision, "2025-06-18", "2025-03-26", "2024-11-05"}

// The transports of a server with a URL.
const (
	// TransportAuto is streamable HTTP, or else the older HTTP+SSE.
	TransportAuto = "auto"
	TransportHTTP = "streamable-http"
	TransportSSE  = "sse"
)

// EndpointConfig configures an [Endpoint]. Exactly one of Command, URL, Dial and
// Broken says how the server is reached.
type EndpointConfig struct {
	Server string // id that prefixes its tools; required

	// Command is started as a child that speaks on its standard input and
	// output, with exactly the environment Env and in the folder Dir.
	Command string
	Args    []string
	Env     []string
	Dir     string
	// Confine says what Command may do; nil restricts nothing. Where the system
	// cannot enforce it the endpoint faults, with the reason.
	Confine *confine.Rules
	// Learn is told what Command uses, as [confine.Command] has it.
	Learn func(confine.Access)

	// Written are Command and Args as the operator wrote them, before variables were
	// replaced, which is how the server is known again. Nil means as they are.
	Written []string

	URL       string // http or https
	Transport string // TransportAuto if empty
	// Protocol is the revision of MCP to speak, Revision or Stateless; empty is
	// ProtocolAuto.
	Protocol string
	Headers  http.Header
	// DialContext makes the connections to URL; nil is a [net.Dialer]'s.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// PinTLS has [Declaration] name the key of the server's certificate, and ends
	// connections in which it changes.
	PinTLS bool

	// Dial returns the transport of a connection, for servers in this process.
	Dial func() (mcp.Transport, error)

	// Broken says why the server cannot even be tried. It is listed as faulted.
	Broken string

	// ConnectTimeout bounds spawn, handshake and first listing together.
	// CallTimeout is how long a call may take, and how long the server may be silent
	// in one whose client is told of its progress: that may then take up to ten times
	// as long. Zero means 30 s each.
	ConnectTimeout, CallTimeout time.Duration
	// CallTimeouts go before CallTimeout for the tools that they name; the first counts.
	CallTimeouts []ToolTimeout
	// Retry is RetryNever or RetryIdempotent; empty is RetryNever.
	Retry string
	// Health is how long the server may say nothing before it is asked whether it
	// lives. Zero means 30 s, and for one with Dial not at all, as HealthOff does.
	Health time.Duration
	// Sessions is SessionsAuto or SessionsShared; empty is SessionsAuto.
	Sessions string
	// MaxMessage bounds a message of the server, in bytes. Zero means 10 MiB.
	MaxMessage int64

	Tools ToolOptions
	Log   *slog.Logger // nil discards
}

const (
	defaultTimeout    = 30 * time.Second
	defaultMaxMessage = 10 << 20
	// relistAfter gathers the announcements of a server that adds its tools one
	// by one; relistEvery bounds what one that never stops can make us do.
	relistAfter = 50 * time.Millisecond
	relistEvery = time.Second
)

func (c *EndpointConfig) check() error {
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
		return fmt.Errorf("server %s: exactly one of command and URL says how it is reached", c.Server)
	}
	if u, err := url.Parse(c.URL); err != nil || c.URL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("server %s: %q is no URL of the form http(s)://host/path", c.Server, c.URL)
	}
	if !slices.Contains([]string{"", TransportAuto, TransportHTTP, TransportSSE}, c.Transport) {
		return fmt.Errorf("server %s: unknown transport %q", c.Server, c.Transport)
	}
	if err := c.checkProtocol(); err != nil {
		return err
	}
	if c.Command == "" && (c.Confine != nil || c.Learn != nil) {
		return fmt.Errorf("server %s: only a command can be confined or learnt from", c.Server)
	}
	if !slices.Contains([]string{"", SessionsAuto, SessionsShared}, c.Sessions) {
		return fmt.Errorf("server %s: unknown sessions %q", c.Server, c.Sessions)
	}
	if !slices.Contains([]string{"", RetryNever, RetryIdempotent}, c.Retry) {
		return fmt.Errorf("server %s: unknown retry %q", c.Server, c.Retry)
	}
	if c.ConnectTimeout < 0 || c.CallTimeout < 0 || c.MaxMessage < 0 || c.Health < 0 && c.Health != HealthOff {
		return fmt.Errorf("server %s: a negative limit", c.Server)
	}
	for _, one := range c.CallTimeouts {
		if one.Timeout <= 0 {
			return fmt.Errorf("server %s: the timeout of %s is not positive", c.Server, one.Pattern)
		}
	}
	if c.Health == 0 && c.Dial == nil {
		c.Health = defaultHealth
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = defaultTimeout
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = defaultTimeout
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = defaultMaxMessage
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("server", c.Server)
	return c.Tools.check()
}

// An Endpoint is the connection to one server. It connects when it is told to, and
// again by itself whenever it is faulted. It is a [gate.Upstream] of that server's
// tools alone. Use it from several goroutines.
type Endpoint struct {
	cfg     EndpointConfig
	changed func()            // the tools or the phase are others now
	observe func(Declaration) // sees each listing before it is offered
	wg      sync.WaitGroup
	uses    uses // by a fleet

	audience      *audience // whose connection it is; nil of one that is shared
	audiences     audiences // of the same server; none of one that is somebody's own
	under         underWay
	levels        *levels // of a whole fleet
	subscriptions subscriptions
	tell          func(Notice) // what nobody's call is told

	declaring sync.Mutex  // one declaration after the other is observed
	declared  Declaration // the last one of all that the server lists

	mu      sync.Mutex
	phase   Phase
	attempt *attempt // of connecting, under way
	link    *link    // of phase Ready
	fault   *Fault   // of phase Faulted
	since   time.Time
	tools   *serverTools
	closed  chan struct{} // closed with phase Closed
	turn    chan struct{} // closed when the phase changes, and made anew
	pauses  backoff       // between attempts to connect that fail
	again   *time.Timer   // the next one; nil before the first fault

	circuit circuit
}

// An attempt to connect that any number of callers wait for.
type attempt struct {
	first  bool          // of this endpoint
	done   chan struct{} // closed when the outcome is known, to those too who watch the tools
	cancel context.CancelFunc
	err    error
}

// link is a connection that has been made.
type link struct {
	peer  *peer
	ended chan struct{}
	again chan struct{} // the server's tools have changed; room for one
	news  news          // what is not listed yet of that
	// wanted says that a call waits for the next listing; room for one.
	wanted chan struct{}
	// useful says that the server has answered a call.
	useful atomic.Bool

	listening listening // of a server of [Stateless]

	tuning chan struct{} // has room while nobody tells the server what to log
	level  severity      // that the server was told; 0 if it was not; of who tells it

	instructions gate.Doc // of the handshake; absent if there are none
	capabilities gate.Doc // of the server, of the handshake
	tlsKey       string   // "" if it is not asked for
}

// NewEndpoint returns an endpoint in phase Idle. It starts nothing.
func NewEndpoint(cfg EndpointConfig) (*Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newEndpoint(cfg), nil
}

// newEndpoint returns an endpoint with a configuration that was checked.
func newEndpoint(cfg EndpointConfig) *Endpoint {
	return &Endpoint{
		cfg: cfg, phase: Idle, tools: new(serverTools), changed: func() {}, observe: func(Declaration) {},
		closed: make(chan struct{}), turn: make(chan struct{}), pauses: backoff{first: firstPause, most: maxPause},
		levels: new(levels), tell: func(Notice) {}, subscriptions: subscriptions{turn: make(chan struct{}, 1)},
	}
}

// become changes the phase. The caller holds mu.
func (e *Endpoint) become(p Phase) {
	e.phase, e.since = e.phase.to(p), time.Now()
	close(e.turn)
	e.turn = make(chan struct{})
}

// Connect connects unless the endpoint is ready. Concurrent callers share one
// attempt, and one that leaves does not end it. The error is a [*Fault] or wraps
// ctx.Err().
func (e *Endpoint) Connect(ctx context.Context) error {
	e.mu.Lock()
	switch e.phase {
	case Ready:
		e.mu.Unlock()
		return nil
	case Closing, Closed:
		e.mu.Unlock()
		return e.isClosed()
	case Idle, Faulted:
		e.begin(ctx)
	}
	a := e.attempt
	e.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("server %s: connect: %w", e.cfg.Server, ctx.Err())
	}
}

func (e *Endpoint) isClosed() *Fault {
	return &Fault{NotConnected, e.cfg.Server, "connect", errors.New("the endpoint is closed")}
}

// Start begins to connect an idle endpoint, and does not wait.
func (e *Endpoint) Start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase == Idle {
		e.begin(ctx)
	}
}

// first returns the end of the first attempt to connect while it is under way,
// and nil at other times.
func (e *Endpoint) first() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attempt == nil || !e.attempt.first {
		return nil
	}
	select {
	case <-e.attempt.done:
		return nil
	default:
		return e.attempt.done
	}
}

// begin starts an attempt. The caller holds mu.
func (e *Endpoint) begin(ctx context.Context) {
	e.become(Connecting)
	if e.again != nil {
		e.again.Stop()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.ConnectTimeout)
	a := &attempt{first: e.attempt == nil, done: make(chan struct{}), cancel: cancel}
	e.attempt = a
	e.wg.Go(func() {
		defer cancel()
		l, tools, err := e.connect(ctx)
		if err == nil {
			e.observes(e.declaration(l, tools, time.Time{}))
		}
		e.connected(ctx, a, l, tools, err)
	})
}

// connected ends an attempt with its outcome.
func (e *Endpoint) connected(ctx context.Context, a *attempt, l *link, tools *serverTools, err error) {
	changed := true
	e.mu.Lock()
	if err == nil && l.peer.why() != nil { // lost came too early to be heard
		err = e.broke(l.peer.why())
	}
	switch {
	case e.phase == Closing: // Close waits for us and goes on
		e.link, a.err = l, e.isClosed()
	case err != nil:
		a.err, changed = e.failed(ctx, asFault(e.cfg.Server, "connect", err))
	default:
		e.circuit.connected(true, time.Now())
		e.become(Ready)
		e.fault, e.link, e.tools = nil, l, tools
		e.wg.Go(func() { e.watch(context.WithoutCancel(ctx), l) })
		e.wg.Go(func() { e.resubscribe(context.WithoutCancel(ctx), l) })
		if e.cfg.Health > 0 && !l.modern() { // which knows no ping
			e.wg.Go(func() { e.pings(context.WithoutCancel(ctx), l) })
		}
		if e.audience == nil { // those of single clients come and go
			e.cfg.Log.Info("endpoint ready", "tools", len(tools.tools))
		}
	}
	e.mu.Unlock()
	if changed {
		e.changed() // before those who wait go on: they look for the tools
	}
	close(a.done)
}

// failed keeps why an attempt to connect has failed, and sees to the next. changed is
// whether it failed in another way than the one before. The caller holds mu.
func (e *Endpoint) failed(ctx context.Context, f *Fault) (_ *Fault, changed bool) {
	changed = e.circuit.connected(false, time.Now()) || e.fault == nil || e.fault.Error() != f.Error()
	e.become(Faulted)
	e.fault = f
	e.retry(ctx, false)
	if changed {
		e.cfg.Log.Warn("endpoint faulted", "code", f.Code(), "error", f.Err)
	}
	return f, changed
}

func asFault(server, doing string, err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return &Fault{Transport, server, doing, err}
}

// watch keeps the listing up to date until the connection ends.
func (e *Endpoint) watch(ctx context.Context, l *link) {
	var last time.Time
	for {
		select {
		case <-l.again:
			announced := time.Now()
			select {
			case <-time.After(max(relistAfter, relistEvery-time.Since(last))):
			case <-l.wanted:
			case <-l.ended:
				return
			}
			select {
			case <-l.again:
			default:
			}
			l.news.begin()
			e.relist(ctx, l, announced)
			l.news.end()
			last = time.Now()
		case <-l.ended:
			return
		}
	}
}

func (e *Endpoint) relist(ctx context.Context, l *link, announced time.Time) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.ConnectTimeout)
	defer cancel()
	tools, err := e.list(ctx, l)
	if err != nil {
		e.cfg.Log.Warn("listing failed", "error", err)
		return // the old listing stays
	}
	e.observes(e.declaration(l, tools, announced))
	e.mu.Lock()
	other := e.link == l && !tools.same(e.tools)
	if other {
		e.tools = tools
	}
	e.mu.Unlock()
	if other {
		e.changed()
	}
}

func (e *Endpoint) broke(err error) *Fault {
	return &Fault{kindOf(err, Transport), e.cfg.Server, "connection", err}
}

// lost is called when the connection of l has ended.
func (e *Endpoint) lost(ctx context.Context, l *link, err error) {
	e.mu.Lock()
	if e.phase != Ready || e.link != l {
		e.mu.Unlock()
		return
	}
	if l.useful.Load() {
		e.pauses.reset()
	}
	_, expired := errors.AsType[*sessionEnded](err)
	atOnce := expired || time.Since(e.since) > workedTime
	e.become(Faulted)
	e.link, e.fault = nil, e.broke(err)
	e.retry(ctx, atOnce)
	e.cfg.Log.Warn("endpoint faulted", "code", e.fault.Code(), "error", err)
	e.mu.Unlock()
	e.changed()
}

// kindOf tells a server that broke the protocol from one at which something
// else went wrong.
func kindOf(err error, otherwise FaultKind) FaultKind {
	var n *nonsense
	var rpc *RPCError
	switch {
	case errors.As(err, &n), errors.As(err, &rpc), ofClient(err):
		return Protocol
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	default:
		return otherwise
	}
}

// Close ends the connection and the server's process, and waits for both. It
// may be called more than once.
func (e *Endpoint) Close() error {
	e.audiences.close()
	e.mu.Lock()
	switch e.phase {
	case Idle:
		e.become(Closed)
		close(e.closed)
		e.mu.Unlock()
		return nil
	case Closing, Closed:
		e.mu.Unlock()
		<-e.closed
		return nil
	}
	e.become(Closing)
	if e.again != nil {
		e.again.Stop()
	}
	a := e.attempt
	e.mu.Unlock()

	a.cancel()
	<-a.done
	e.mu.Lock()
	l := e.link
	e.link = nil
	e.mu.Unlock()
	var err error
	if l != nil {
		err = l.close()
	}
	e.wg.Wait()
	e.mu.Lock()
	e.become(Closed)
	close(e.closed)
	e.mu.Unlock()
	return err
}

func (l *link) close() error {
	err := l.peer.conn.close()
	<-l.ended
	return err
}

// Status tells how the endpoint is.
func (e *Endpoint) Status() ServerStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := ServerStatus{Server: e.cfg.Server, Phase: e.phase, Since: e.since, Tools: len(e.tools.tools), Notes: e.tools.notes}
	if more := e.tools.features; more != nil {
		s.Prompts, s.Resources, s.Templates = len(more.prompts), len(more.resources), len(more.templates)
		s.Notes = slices.Concat(s.Notes, more.notes)
	}
	if e.phase == Connecting && e.fault != nil {
		s.Phase = Faulted // and being tried again, which lasts a moment
	}
	if s.Phase == Faulted {
		s.Fault, s.Error = e.fault.Kind, e.fault.Err.Error()
	}
	s.Circuit = e.circuit.state(time.Now())
	if r := e.cfg.Confine; r != nil {
		s.Unenforced = confine.Missing(*r)
		s.Confined = len(s.Unenforced) == 0
	}
	return s
}

// Phase returns where the endpoint is in its life.
func (e *Endpoint) Phase() Phase {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase
}
