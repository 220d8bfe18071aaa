package host

import (
	"container/list"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/drain"
)

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	cfg  Config
	info []byte // what answers without a session say of the gateway

	states    sealed.Sealer
	parking   parking
	taskCalls taskCalls
	listening listeners
	servers   liveServers

	web
	draining
}

// web is what a host keeps of its clients over HTTP.
type web struct {
	fronts  fronts
	offer   gate.Groups // what they are offered
	peers   peers
	quickly quickSessions
	posts   posts
	kept    *keptEvents // of the streams of all sessions
}

// draining is what a host has under way, and its end.
type draining struct {
	calls drain.Counter

	// streams ends when the host has drained, and with it what only waits for
	// notifications.
	streams    context.Context
	endStreams context.CancelFunc
}

// New returns a host. It starts nothing.
func New(cfg Config) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	states, err := sealed.New(cfg.Seal)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	h := &Host{
		cfg: cfg, states: states, info: mcp.MustJSON(sdk.Implementation{Name: cfg.Name, Version: cfg.Version}),
		servers:   liveServers{all: make(map[*sdk.Server]struct{})},
		parking:   parking{grace: cfg.ParkIdle / parkGrace},
		listening: listeners{by: make(map[gate.SessionKey]*listener), calls: make(map[string]*listener)},
		web: web{
			peers:   peers{most: maxPeers, by: make(map[string]*list.Element)},
			quickly: quickSessions{by: make(map[string]*quickSession)},
			posts:   posts{by: make(map[string]*post)},
		},
	}
	h.listening.unnamed.send = h.tellListening
	h.kept = newKeptEvents(h.posts.answersOn)
	h.streams, h.endStreams = context.WithCancel(context.Background())
	return h, nil
}

// peerInfo is who sent a request.
type peerInfo struct {
	who           *gate.Principal
	groups        gate.Groups // that it is offered, beside the principal's
	session       string      // "" if the client has none: the principal's own
	name, version string      // as the client claims
	traceparent   string      // of the HTTP request
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

// dispatch answers a request of a client, whoever decoded it. Its error is an
// [*mcp.Error], or the end of ctx.
func (h *Host) dispatch(ctx context.Context, p peerInfo, method string, params gate.Doc) (res gate.Doc, err error) {
	defer func() {
		if v := recover(); v != nil {
			h.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
			res, err = gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "internal error"}
		}
	}()
	if !h.calls.Begin() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "the gateway is shutting down"}
	}
	defer h.calls.End()
	if p.stateless && asksToHear(method) || !h.offers(ctx, method) {
		return gate.Doc{}, errNoMethod
	}
	switch method {
	case string(gate.CallTool):
		return h.callTool(ctx, p, params)
	case string(gate.GetPrompt), string(gate.ReadResource), string(gate.Complete):
		return h.use(ctx, p, gate.Action(method), params)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return h.list(ctx, p, method)
	case mcp.MethodSetLevel:
		return h.setLevel(ctx, p, params)
	case string(gate.Subscribe):
		return h.subscribe(ctx, p, params)
	case mcp.MethodUnsubscribe:
		return h.unsubscribe(p, params)
	case mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		if h.offersTasks(p, method) {
			return h.tasks(ctx, p, method, params)
		}
	default:
		if h.method(ctx, method) != nil {
			return h.useMethod(ctx, p, method, params)
		}
	}
	return gate.Doc{}, errNoMethod
}

// UnderWay is how many requests of clients have begun and not ended.
func (h *Host) UnderWay() int { return h.calls.Count() }

// Drain refuses new requests, ends the calls that wait for clients to call again, and
// waits for those under way, or for ctx. Then it ends the streams of notifications, so
// that no connection stays busy.
func (h *Host) Drain(ctx context.Context) error {
	h.calls.Close()
	h.posts.close()
	h.parking.close()
	defer h.endStreams()
	return h.calls.Drain(ctx)
}
