package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/status"
)

// stateless is the dialect of [mcp.Stateless]: every request stands for itself, and says all
// that the server has to know. The server asks by its answers (stateless_rounds), makes tasks
// of calls as it likes (stateless_tasks), and tells what has changed on a request that stays
// open (stateless_listen, stateless_listening). It knows no ping.
type stateless struct{ *link }

var _ dialect = stateless{}

func (l stateless) worded(a outgoing) wire.Request {
	r := a.request(true)
	if l.overHTTP() != nil {
		r.Headers = a.header()
	}
	return r
}

func (l stateless) call(ctx *pace.Deadline, a outgoing, t *gate.Tool) (gate.Doc, error) {
	a = a.about(t)
	a.tasks = a.of.Call.Action == gate.CallTool && l.offersTasks()
	res, err := l.rounds(ctx, a)
	if err != nil || !a.tasks || !rounds.IsTask(res) {
		return res, err
	}
	return l.follow(ctx, a, res)
}

// usable leaves out over HTTP those of which a client could not send the headers right (MCP
// 2026-07-28, basic/transports/streamable-http, "Schema Extension").
func (l stateless) usable(raw []gate.Doc) (usable []gate.Doc, notes []status.Note) {
	if l.overHTTP() == nil {
		return raw, nil
	}
	for _, def := range raw {
		if _, err := mcp.ParamHeaders(def.Get("inputSchema")); err != nil {
			notes = append(notes, status.Note{Tool: mcp.QuoteName(def.Get("name").Text()), Quarantined: true, Text: "input schema: " + err.Error()})
			continue
		}
		usable = append(usable, def)
	}
	return usable, notes
}

// keeps leaves a listing that must not be kept at all to be made anew when somebody asks:
// see [Endpoint.Refresh].
func (l stateless) keeps(at time.Time, hints map[gate.Feature]hint) {
	f := freshness{at, hints, make(chan struct{})}
	l.announced.mu.Lock()
	if l.announced.fresh.over != nil {
		close(l.announced.fresh.over)
	}
	l.announced.fresh = f
	l.announced.mu.Unlock()
	after := l.relistsAfter(hints)
	if after == 0 {
		return
	}
	l.endpoint.run(func() {
		again := time.NewTimer(after)
		defer again.Stop()
		select {
		case <-again.C:
			l.listsChanged()
		case <-f.over:
		case <-l.ended:
		}
	})
}

func (l stateless) subscribe(ctx context.Context, _ *underway.Call, uri string) (gate.Doc, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	err := l.listening.want(ctx, uri)
	if err != nil {
		l.listening.change(uri, false)
		return gate.Doc{}, err
	}
	return subscribed, nil
}

func (l stateless) unsubscribe(_ context.Context, uri string) { l.listening.change(uri, false) }

func (stateless) asksByAnswers() bool { return true }

// What only a server with a session needs.

func (stateless) listens(context.Context)                  {} // discover has begun to
func (stateless) greet(context.Context)                    {}
func (stateless) pings(context.Context, time.Duration)     {}
func (stateless) tune(context.Context, mcp.Severity, bool) {} // each request says it

// relistsAfter returns when a listing is to be made anew; 0 if it is not by itself.
func (l stateless) relistsAfter(hints map[gate.Feature]hint) (after time.Duration) {
	for one, h := range hints {
		if h.ttl > 0 && !l.tellsOf(one) && (after == 0 || h.ttl < after) {
			after = max(h.ttl, relistHinted)
		}
	}
	return after
}
