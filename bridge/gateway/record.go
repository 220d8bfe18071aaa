package gateway

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/schema/broken"
	"github.com/wasmgate/wasmgate/policy/study"
)

// recorders get each record of a call in order. The first error stops and refuses the call, so those that keep
// records come first.
type recorders struct {
	all     []gate.Recorder
	observe func(r *gate.Record, kept time.Duration, err error) // may be nil
}

// newRecorders returns what gets the records of calls. log is nil without an audit log.
func newRecorders(c *Config, log *audit.Log, shadow *study.Shadow, broken *broken.Inputs) recorders {
	rs := recorders{observe: c.Observe}
	if log != nil {
		rs.all = append(rs.all, log)
	}
	if c.Recorder != nil {
		rs.all = append(rs.all, c.Recorder)
	}
	rs.all = append(rs.all, shadow, refusals{c.Log}, broken)
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
