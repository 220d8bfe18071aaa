package host

import (
	"context"
	"log/slog"
	"strings"
)

// warnings passes on what is at least a warning: the SDK tells of each request
// at level info, and the story of the calls is the audit log's.
type warnings struct{ slog.Handler }

func sdkLog(l *slog.Logger) *slog.Logger { return slog.New(warnings{l.Handler()}) }

// Enabled implements [slog.Handler].
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// unheard is what the SDK warns of when a client that keeps no stream open could
// not be told that the tools have changed. Nobody can do anything about it.
const unheard = "list_changed: rejected by transport"

// Handle implements [slog.Handler].
func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, unheard) {
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
