package bridge

import (
	"context"
	"log/slog"
)

// warnings passes on what is at least a warning: the SDK tells of each request
// at level info, and the story of the calls is the audit log's.
type warnings struct{ slog.Handler }

func sdkLog(l *slog.Logger) *slog.Logger { return slog.New(warnings{l.Handler()}) }

// Enabled implements [slog.Handler].
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
