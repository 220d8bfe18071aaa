package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/gate"
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
	// MaxBody bounds a message of a client, in bytes. Zero means 4 MiB.
	MaxBody int64
	// Origins and Hosts are allowed in those headers of HTTP requests, beside
	// loopback. An origin is scheme://host[:port], a host is host[:port].
	Origins, Hosts []string
	Log            *slog.Logger // nil discards
}

const defaultMaxBody = 4 << 20

// A Host is the gateway as an MCP server to clients, over stdio and HTTP, in
// the stateless protocol of revision 2026-07-28 and in the older ones with
// sessions. Use it from several goroutines.
type Host struct {
	cfg  HostConfig
	http http.Handler
	info []byte // what answers without a session say of the gateway

	sessions quickSessions

	calls sync.WaitGroup // under way

	// streams ends when the host has drained, and with it what only waits for
	// notifications.
	streams    context.Context
	endStreams context.CancelFunc

	mu      sync.Mutex
	servers map[*mcp.Server]struct{} // of live connections, to be told of changes
	posts   map[string]post          // HTTP requests under way, by number
	last    uint64                   // number of a post
	closing bool
}

// NewHost returns a host. It starts nothing.
func NewHost(cfg HostConfig) (*Host, error) {
	if cfg.Do == nil || cfg.Tools == nil {
		return nil, errors.New("a host needs Do and Tools of a gate")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
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
	h := &Host{
		cfg: cfg, servers: make(map[*mcp.Server]struct{}), posts: make(map[string]post),
		info:     mustJSON(mcp.Implementation{Name: cfg.Name, Version: cfg.Version}),
		sessions: quickSessions{by: make(map[string]*quickSession)},
	}
	h.streams, h.endStreams = context.WithCancel(context.Background())
	h.http = h.newHTTP()
	return h, nil
}

// peerInfo is who sent a request.
type peerInfo struct {
	who           *gate.Principal
	session       string // "" if the client has none: the principal's own
	name, version string // as the client claims
	stateless     bool   // revision 2026-07-28
}

func (p peerInfo) key() gate.SessionKey { return gate.SessionKey{Owner: p.who.Owner, ID: p.session} }

// rpcError is a JSON-RPC error for a client.
type rpcError struct {
	code    int64
	message string
}

func (e *rpcError) Error() string { return e.message }

// dispatch answers a request of a client, whoever decoded it. Its error is an
// [*rpcError], or the end of ctx.
func (h *Host) dispatch(ctx context.Context, p peerInfo, method string, params gate.Doc) (res gate.Doc, err error) {
	defer func() {
		if v := recover(); v != nil {
			h.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
			res, err = gate.Doc{}, &rpcError{codeInternal, "internal error"}
		}
	}()
	if !h.begin() {
		return gate.Doc{}, &rpcError{codeInternal, "the gateway is shutting down"}
	}
	defer h.calls.Done()
	switch method {
	case "tools/list":
		res, err = h.list(ctx, p)
	case "tools/call":
		res, err = h.call(ctx, p, gate.Call{Name: params.Get("name").Text(), Args: params.Get("arguments"), Meta: params.Get("_meta")})
	default:
		return gate.Doc{}, &rpcError{codeMethodNotFound, "method not found"}
	}
	if err != nil || !p.stateless || res.Get("resultType").Text() == "complete" {
		return res, err
	}
	// Whatever a server says there: nothing of ours asks the client for more.
	return res.With("resultType", []byte(`"complete"`)), nil
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

// Drain refuses new requests and waits for those under way, or for ctx. Then it
// ends the streams of notifications, so that no connection stays busy.
func (h *Host) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
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

// list answers tools/list in one page: clients that do not page see all.
func (h *Host) list(ctx context.Context, p peerInfo) (gate.Doc, error) {
	tools, err := h.cfg.Tools(ctx, p.who)
	if err != nil {
		h.cfg.Log.Error("listing failed", "principal", p.who.ID, "error", err)
		return gate.Doc{}, &rpcError{codeInternal, "the tools cannot be listed"}
	}
	out := []byte(`{"tools":[`)
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.Definition.Raw()...)
	}
	out = append(out, ']')
	if p.stateless { // a list is its principal's, and not for caches that others share
		out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return gate.ParseDoc(append(out, '}'))
}

// call carries out a call, and puts what the gate says into the words of MCP.
func (h *Host) call(ctx context.Context, p peerInfo, c gate.Call) (gate.Doc, error) {
	c.ID, c.Action, c.Who, c.Session = gate.NewID(), gate.CallTool, p.who, p.key()
	c.ClientName, c.ClientVersion = p.name, p.version
	res, err := h.cfg.Do(ctx, c)
	if err == nil {
		return res.Doc, nil
	}
	var r *gate.Refusal
	if errors.As(err, &r) && (r.Step == gate.StepParse || r.Step == gate.StepLookup || r.Hidden) {
		if r.Step == gate.StepParse {
			return gate.Doc{}, &rpcError{codeInvalidParams, "invalid parameters: " + r.Reason}
		}
		return gate.Doc{}, &rpcError{codeInvalidParams, fmt.Sprintf("unknown tool %.200q", c.Name)}
	}
	if ctx.Err() != nil {
		return gate.Doc{}, ctx.Err()
	}
	return refusalResult(c.ID, err), nil
}

// refusalResult is the result of a call that was refused, or that its server
// failed: the model that made the call reads why.
func refusalResult(call string, err error) gate.Doc {
	reason := Public(err)
	b, merr := json.Marshal(map[string]any{
		"content": []any{map[string]string{"type": "text", "text": reason}},
		"isError": true,
		"_meta":   map[string]any{gate.MetaRefusal: map[string]string{"code": gate.Code(err), "reason": reason, "record_id": call}},
	})
	if merr != nil {
		panic(merr) // strings only
	}
	return gate.MustDoc(string(b))
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
func (h *Host) malformed(ctx context.Context, p peerInfo, name string, why error) {
	_, _ = h.call(ctx, p, gate.Call{Name: name, Malformed: why}) // refused at its first step, by Malformed
}
