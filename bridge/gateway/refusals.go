package gateway

import (
	"context"
	"log/slog"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// refusals logs what was refused and a command, or a line of the grants file, would
// allow: the operator, who reads the log, can decide on it.
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
