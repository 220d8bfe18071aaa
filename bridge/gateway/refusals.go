package gateway

import (
	"context"
	"log/slog"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// refusals logs calls that were refused and that a command would allow: the
// operator, who reads the log, can decide on it.
type refusals struct{ log *slog.Logger }

// Record implements [gate.Recorder].
func (r refusals) Record(ctx context.Context, rec *gate.Record) error {
	remedy := rec.Decision.Remedy
	if rec.Event != gate.Done || remedy == "" || !strings.HasPrefix(rec.Code, "refused_") || rec.Tool == nil || rec.Call.Who == nil {
		return nil
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "call refused",
		slog.String("tool", rec.Tool.Name.String()), slog.String("principal", rec.Call.Who.ID), slog.String("code", rec.Code),
		slog.String("call", rec.Call.ID), slog.String("remedy", remedy))
	return nil
}
