package bridge

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/jobs"
)

// HostConfig configures a [Host].
type HostConfig struct {
	// Name and Version are what clients are told of the gateway. Empty means
	// wasmgate and its version.
	Name, Version string
	// Do carries out calls and Tools lists what a principal may call; required,
	// and both a gate's.
	Do    func(context.Context, gate.Call) (gate.Result, error)
	Tools func(context.Context, *gate.Principal) ([]*gate.Tool, error)
	// Features lists what else a principal may use, a gate's, and Offering says what
	// any server offers, a fleet's. Without both, clients are offered tools alone.
	Features func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error)
	Offering func(context.Context) Offering
	// Fresh says for how long clients may keep a listing, a fleet's. Nil lets them keep none.
	Fresh func(gate.Feature) time.Duration
	// Lookup finds a tool, for what its definition wants in the headers of calls, and
	// Instructions are what servers say of how they are used; both a fleet's. Without
	// them no such headers are looked at, and clients are told nothing.
	Lookup       func(context.Context, gate.Action, string) (*gate.Tool, error)
	Instructions func() []Instructions
	// Jobs carries out the calls that clients make as tasks, and Recall has a session
	// learn what a kept result teaches, a gate's. Without Jobs clients are offered no
	// tasks.
	Jobs   *jobs.Runner
	Recall func(ctx context.Context, k gate.SessionKey, call string, kept gate.Result) error
	// SetLevel says from which severity on a session wants log messages, "" for none;
	// Unsubscribe ends a subscription, by the ID of the call that made it: both a fleet's,
	// see [Fleet.Hear]. Clean makes what servers say outside of calls safe, a gate's Tell.
	// Without them clients are offered neither log messages nor subscriptions.
	SetLevel    func(ctx context.Context, k gate.SessionKey, level string) error
	Unsubscribe func(ctx context.Context, call, uri string) error
	Clean       func(server string, params gate.Doc) (gate.Doc, bool)
	// Who is whoever comes over HTTP; nil is [gate.Local].
	Who *gate.Principal
	// Group reports whether there is a group, for clients over HTTP that are offered one
	// alone: see [GroupParam]. Nil knows none.
	Group func(name string) bool
	// Brief reports whether clients are listed only the tools by which they find and call
	// the others: see [LocalTool.Relay]. Nil lists all. It is asked for each listing.
	Brief func() bool
	// MaxBody bounds a message of a client, in bytes. Zero means 4 MiB.
	MaxBody int64
	// Origins and Hosts are allowed in those headers of HTTP requests, beside
	// loopback. An origin is scheme://host[:port], a host is host[:port].
	Origins, Hosts []string
	// Asks lets Do ask the person at a client that can (MCP elicitation) whether a call
	// may pass. What servers ask of clients does not depend on it.
	Asks bool
	// Seal is a secret of at least 32 random bytes. Keys are derived from it for
	// what clients without a session keep for the host between a question and its
	// answer. Nil makes one for the life of the host.
	Seal []byte
	// ParkIdle is how long a call waits for the next request of a client without a
	// session that its server has asked something. Zero means 10 min.
	ParkIdle time.Duration
	// TaskAfter is how long a call goes on before it becomes a task, if its client speaks
	// the extension of tasks (MCP 2026-07-28). Zero means 10 s.
	TaskAfter time.Duration
	// PeerChanged is told when the roots of the client of a session are others, and Ended
	// when the session has ended; both a fleet's. Nil tells nobody.
	PeerChanged, Ended func(gate.SessionKey)
	Log                *slog.Logger // nil discards
}

const defaultMaxBody = 4 << 20

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	cfg    HostConfig
	fronts fronts
	offer  gate.Groups // to clients over HTTP
	info   []byte      // what answers without a session say of the gateway

	states    states
	sessions  quickSessions
	listening listeners
	parking   parking
	taskCalls taskCalls
	peers     peers

	calls sync.WaitGroup // under way

	// streams ends when the host has drained, and with it what only waits for
	// notifications.
	streams    context.Context
	endStreams context.CancelFunc

	mu      sync.Mutex
	servers map[*mcp.Server]struct{} // of live connections, to be told of changes
	offered Offering                 // when they were told last
	posts   map[string]*post         // HTTP requests under way, by number
	last    uint64                   // number of a post
	closing bool

	kept *keptEvents // of the streams of all sessions
}

// NewHost returns a host. It starts nothing.
func NewHost(cfg HostConfig) (*Host, error) {
	if cfg.Do == nil || cfg.Tools == nil {
		return nil, errors.New("a host needs Do and Tools of a gate")
	}
	if cfg.Jobs != nil && cfg.Recall == nil {
		return nil, errors.New("a host with jobs needs Recall of a gate")
	}
	if cfg.Who == nil {
		cfg.Who = gate.Local()
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.ParkIdle == 0 {
		cfg.ParkIdle = parkIdle
	}
	if cfg.TaskAfter == 0 {
		cfg.TaskAfter = taskAfter
	}
	if cfg.Name == "" {
		cfg.Name = ClientName
	}
	if cfg.Version == "" {
		cfg.Version = Version()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	states, err := newStates(cfg.Seal)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	h := &Host{
		cfg: cfg, states: states, servers: make(map[*mcp.Server]struct{}), posts: make(map[string]*post),
		info:     mustJSON(mcp.Implementation{Name: cfg.Name, Version: cfg.Version}),
		sessions: quickSessions{by: make(map[string]*quickSession)},
	}
	h.parking.grace = cfg.ParkIdle / parkGrace
	h.listening = listeners{by: make(map[gate.SessionKey]*listener), calls: make(map[string]*listener)}
	h.listening.unnamed.send = h.tellListening
	h.peers.most, h.peers.by = maxPeers, make(map[string]*list.Element)
	h.kept = newKeptEvents(h.answersOn)
	h.streams, h.endStreams = context.WithCancel(context.Background())
	return h, nil
}

// peerInfo is who sent a request.
type peerInfo struct {
	who           *gate.Principal
	groups        gate.Groups // that it is offered, beside the principal's
	session       string      // "" if the client has none: the principal's own
	name, version string      // as the client claims
	stateless     bool        // revision 2026-07-28
	// send reaches the client in the middle of a call; nil if it must not be asked
	// for anything then. Of one with a session these are its capabilities by which it
	// can be asked; absent if it has none.
	send         toClient
	capabilities gate.Doc
	// tell sends a notification on the stream of the request; nil if there is none.
	tell func(ctx context.Context, method string, params gate.Doc)
	// poll ends the stream of the request and has the client come back; nil if it is no
	// stream that a client can come back to.
	poll func(after time.Duration)
	// write writes a message on the stream of a request that listens; nil if there is
	// none.
	write func(msg []byte) error
	// listener hears what servers say outside of calls; nil unless it asks about that,
	// and has a session.
	listener *listener
}

func (p peerInfo) key() gate.SessionKey { return gate.SessionKey{Owner: p.who.Owner, ID: p.session} }

// rpcError is a JSON-RPC error for a client.
type rpcError struct {
	code    int64
	message string
	data    []byte // JSON; nil if there is none
}

func (e *rpcError) Error() string { return e.message }

// json returns the error as a message has it.
func (e *rpcError) json() []byte {
	m := map[string]any{"code": e.code, "message": e.message}
	if e.data != nil {
		m["data"] = json.RawMessage(e.data)
	}
	return mustJSON(m)
}

// dispatch answers a request of a client, whoever decoded it. Its error is an
// [*rpcError], or the end of ctx.
func (h *Host) dispatch(ctx context.Context, p peerInfo, method string, params gate.Doc) (res gate.Doc, err error) {
	defer func() {
		if v := recover(); v != nil {
			h.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
			res, err = gate.Doc{}, &rpcError{code: codeInternal, message: "internal error"}
		}
	}()
	if !h.begin() {
		return gate.Doc{}, &rpcError{code: codeInternal, message: "the gateway is shutting down"}
	}
	defer h.calls.Done()
	if p.stateless && asksToHear(method) {
		return gate.Doc{}, &rpcError{code: codeMethodNotFound, message: "method not found"}
	}
	switch method {
	case string(gate.CallTool):
		return h.callTool(ctx, p, params)
	case string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete):
		if h.offers(ctx, method) {
			return h.use(ctx, p, gate.Action(method), params)
		}
	case methodTaskGet, methodTaskResult, methodTaskList, methodTaskUpdate, methodTaskCancel:
		if h.offersTasks(p, method) {
			return h.tasks(ctx, p, method, params)
		}
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		if h.offers(ctx, method) {
			return h.list(ctx, p, method)
		}
	case methodSetLevel:
		if h.offers(ctx, method) {
			return h.setLevel(ctx, p, params)
		}
	case string(gate.Subscribe):
		if h.offers(ctx, method) {
			return h.subscribe(ctx, p, params)
		}
	case methodUnsubscribe:
		if h.offers(ctx, method) {
			return h.unsubscribe(p, params)
		}
	default:
		if h.method(ctx, method) != nil {
			return h.useMethod(ctx, p, method, params)
		}
	}
	return gate.Doc{}, errNoMethod
}

func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.calls.Add(1)
	return true
}

// Drain refuses new requests, ends the calls that wait for clients to call again, and
// waits for those under way, or for ctx. Then it
// ends the streams of notifications, so that no connection stays busy.
func (h *Host) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.expectNobody()
	h.mu.Unlock()
	h.parking.close()
	defer h.endStreams()
	done := make(chan struct{})
	go func() { // ends with the last call, each of which has a deadline
		h.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// list answers tools/list and its like in one page: clients that do not page see
// all.
func (h *Host) list(ctx context.Context, p peerInfo, method string) (gate.Doc, error) {
	tools, err := h.listed(ctx, p, listings[method].feature)
	if err != nil {
		h.cfg.Log.Error("listing failed", "method", method, "principal", p.who.ID, "error", err)
		return gate.Doc{}, &rpcError{code: codeInternal, message: "the " + listings[method].member + " cannot be listed"}
	}
	out := []byte(`{"` + listings[method].member + `":[`)
	for i, t := range h.brief(tools) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, h.definition(p, t)...)
	}
	out = append(out, ']')
	if p.stateless { // a list is its principal's, and not for caches that others share
		out = fmt.Appendf(out, `,"ttlMs":%d,"cacheScope":"private"`, h.fresh(listings[method].feature).Milliseconds())
	}
	res, err := gate.ParseDoc(append(out, '}'))
	if err != nil {
		return gate.Doc{}, err
	}
	return p.complete(res), nil
}

func (h *Host) fresh(f gate.Feature) time.Duration {
	if h.cfg.Fresh == nil {
		return 0
	}
	return h.cfg.Fresh(f)
}

// callTool answers tools/call.
func (h *Host) callTool(ctx context.Context, p peerInfo, params gate.Doc) (gate.Doc, error) {
	c := p.call(gate.CallTool, params.Get("name").Text())
	c.Args, c.Meta = params.Get("arguments"), params.Get("_meta")
	if h.cfg.Asks && p.stateless {
		c.AskByAnswer = elicits(c.Meta.Get(metaCapabilities))
	}
	if h.cfg.Asks && p.send != nil && elicits(p.capabilities) {
		c.Asker = asker{p.send}
	}
	c.Notify, c.Poll = p.tell, p.poll
	if task := params.Get("task"); !task.IsZero() && h.cfg.Jobs != nil && !p.stateless {
		return h.startTask(ctx, p, c, task)
	}
	res, err := h.carry(ctx, p, &c, params)
	if err != nil {
		return h.failed(ctx, p, c, err)
	}
	if p.stateless && res.IsError && lacksCapability(res.Doc) {
		return gate.Doc{}, serverError(res.Doc)
	}
	return p.answer(res), nil
}

// call returns a call of the peer.
func (p peerInfo) call(action gate.Action, name string) gate.Call {
	return gate.Call{
		ID: gate.NewID(), Action: action, Name: name, Who: p.who, Groups: p.groups, Session: p.key(), ClientName: p.name, ClientVersion: p.version,
	}
}

// do carries out a call, and puts what the gate says into the words of MCP.
func (h *Host) do(ctx context.Context, p peerInfo, c gate.Call) (gate.Doc, error) {
	res, err := h.cfg.Do(ctx, c)
	if err != nil {
		return h.failed(ctx, p, c, err)
	}
	return p.complete(res.Doc), nil
}

// failed answers a call that was refused, or that its server failed.
func (h *Host) failed(ctx context.Context, p peerInfo, c gate.Call, err error) (gate.Doc, error) {
	if rpc, ok := errors.AsType[*rpcError](err); ok {
		return gate.Doc{}, rpc
	}
	var waits *gate.Pending
	if c.AskByAnswer && c.Answered == nil && errors.As(err, &waits) && waits.CanAnswer { // who dismisses a question is not asked again
		return h.inputRequired(&c, waits), nil
	}
	var r *gate.Refusal
	if errors.As(err, &r) && (r.Step == gate.StepParse || r.Step == gate.StepLookup || r.Hidden) {
		if r.Step == gate.StepParse {
			return gate.Doc{}, &rpcError{code: codeInvalidParams, message: "invalid parameters: " + r.Reason}
		}
		return gate.Doc{}, &rpcError{code: codeInvalidParams, message: fmt.Sprintf("unknown tool %.200q", r.Name)}
	}
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return p.complete(refusalResult(c.ID, err)), nil
}

// refusalResult is the result of a call that was refused, or that its server
// failed: the model that made the call reads why.
func refusalResult(call string, err error) gate.Doc {
	return failureResult(Public(err), refusalOf(call, err))
}

func failureResult(text string, refusal map[string]any) gate.Doc {
	return gate.MustDoc(string(mustJSON(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
		"_meta":   map[string]any{gate.MetaRefusal: refusal},
	})))
}

// refusalOf tells a client why a call was not carried out: see [gate.MetaRefusal].
func refusalOf(call string, err error) map[string]any {
	refusal := map[string]any{"code": gate.Code(err), "reason": Public(err), "record_id": gate.RecordID(call, err)}
	if r, ok := errors.AsType[*gate.Refusal](err); ok && r.RetryAfter > 0 {
		refusal["retry_after_ms"] = max(1, r.RetryAfter.Milliseconds())
	}
	return refusal
}

// Public returns what a client may read of the error of a call.
func Public(err error) string {
	var r *gate.Refusal
	if errors.As(err, &r) {
		return "refused: " + r.Reason
	}
	var public interface{ Public() string }
	if errors.As(err, &public) {
		return public.Public()
	}
	switch code := gate.Code(err); code {
	case gate.CodeCancelled:
		return "the call was cancelled"
	case gate.CodeTimeout:
		return "the call took too long"
	default:
		return "the call could not be carried out (" + code + ")"
	}
}

// malformed refuses a call whose message is no acceptable JSON, and records it.
func (h *Host) malformed(ctx context.Context, p peerInfo, action gate.Action, name string, why error) {
	c := p.call(action, name)
	c.Malformed = why
	_, _ = h.do(ctx, p, c) // refused at its first step, by Malformed
}
