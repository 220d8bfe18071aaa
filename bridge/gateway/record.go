package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// recorders get each record of a call in order. The first error stops and refuses the call, so those that keep
// records come first.
type recorders struct {
	all     []gate.Recorder
	observe func(r *gate.Record, kept time.Duration, err error) // may be nil
}

// recorders returns what gets the records of calls. The log and the shadow policy exist by then.
func (g *Gateway) recorders() recorders {
	rs := recorders{observe: g.cfg.Observe}
	if g.audit != nil {
		rs.all = append(rs.all, g.audit)
	}
	if g.cfg.Recorder != nil {
		rs.all = append(rs.all, g.cfg.Recorder)
	}
	rs.all = append(rs.all, g.shadow, refusals{g.cfg.Log}, &g.broken)
	return rs
}

// Record implements [gate.Recorder].
func (rs recorders) Record(ctx context.Context, r *gate.Record) (err error) {
	if rs.observe != nil {
		began := time.Now()
		defer func() { rs.observe(r, time.Since(began), err) }()
	}
	for _, one := range rs.all {
		if err := one.Record(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// refusals logs each refused call that a command or a line of the grants file would allow, so that the operator
// can decide.
type refusals struct{ log *slog.Logger }

// Record implements [gate.Recorder].
func (r refusals) Record(ctx context.Context, rec *gate.Record) error {
	remedy := rec.Decision.Remedy
	if rec.Event != gate.Done || remedy == "" || !strings.HasPrefix(rec.Code, "refused_") || rec.Tool == nil || rec.Call.Who == nil {
		return nil
	}
	subject := gate.Query{Call: rec.Call, Tool: rec.Tool}.Subject()
	what := []slog.Attr{slog.String("tool", subject)}
	if rec.Call.Action != gate.CallTool {
		what = []slog.Attr{slog.String("action", string(rec.Call.Action)), slog.String("about", subject)}
	}
	event := "call refused"
	if rec.Approval.ID != "" {
		event = "call waits for approval"
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, event, append(what,
		slog.String("principal", rec.Call.Who.ID), slog.String("code", rec.Code),
		slog.String("call", rec.Call.ID), slog.String("remedy", remedy))...)
	return nil
}
