package link

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/underway"
	"github.com/wasmgate/wasmgate/gate"
)

func (l stateless) call(ctx *pace.Deadline, a outgoing, t *gate.Tool) (gate.Doc, error) {
	a = a.about(t)
	a.tasks = a.of.Call.Action == gate.CallTool && l.offersTasks()
	res, err := l.rounds(ctx, a)
	if err != nil || !a.tasks || !rounds.IsTask(res) {
		return res, err
	}
	return l.follow(ctx, a, res)
}

// Usable leaves out, over HTTP, the tools whose headers a client could not send correctly (MCP
// 2026-07-28, basic/transports/streamable-http, "Schema Extension").
func (l stateless) Usable(raw []gate.Doc) (usable []gate.Doc, notes []status.Note) {
	if l.OverHTTP() == nil {
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

// Keeps leaves a listing that must not be kept at all to be made anew when somebody asks:
// see [Link.Refresh].
func (l stateless) Keeps(at time.Time, hints map[gate.Feature]Hint) {
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
	l.endpoint.Run(func() {
		again := time.NewTimer(after)
		defer again.Stop()
		select {
		case <-again.C:
			l.ListsChanged()
		case <-f.over:
		case <-l.ended:
		}
	})
}

func (l stateless) Subscribe(ctx context.Context, _ *underway.Call, uri string) (gate.Doc, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	err := l.listening.want(ctx, uri)
	if err != nil {
		l.listening.change(uri, false)
		return gate.Doc{}, err
	}
	return gate.MustDoc("{}"), nil
}

func (l stateless) Unsubscribe(_ context.Context, uri string) { l.listening.change(uri, false) }

func (stateless) AsksByAnswers() bool { return true }

// What only a server with a session needs.

func (stateless) Listens(context.Context)                  {} // discover has begun to
func (stateless) Greet(context.Context)                    {}
func (stateless) Pings(context.Context, time.Duration)     {}
func (stateless) Tune(context.Context, mcp.Severity, bool) {} // each request says it

// relistsAfter returns when a listing is to be made anew; 0 if it is not by itself.
func (l stateless) relistsAfter(hints map[gate.Feature]Hint) (after time.Duration) {
	for one, h := range hints {
		if h.ttl > 0 && !l.tellsOf(one) && (after == 0 || h.ttl < after) {
			after = max(h.ttl, relistHinted)
		}
	}
	return after
}
