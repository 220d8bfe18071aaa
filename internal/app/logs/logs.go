package logs

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/internal/config"
)

// New returns the operator's log, written to w as a configuration says; level, if it is not
// nil, goes before its level. A gateway takes over what a configuration that is read later says
// of it. w takes writes of several goroutines.
func New(w io.Writer, c config.Log, level *slog.Level) *slog.Logger {
	h := &handler{now: new(atomic.Pointer[slog.Handler]), w: w, level: level, with: func(h slog.Handler) slog.Handler { return h }}
	h.set(c)
	return slog.New(h)
}

// Adjust has a log say what a configuration wants, if it is one of [New].
func Adjust(log *slog.Logger, c config.Log) {
	if h, ok := log.Handler().(*handler); ok {
		h.set(c)
	}
}

// A handler is the handler of the moment, for all loggers that come from one.
type handler struct {
	now   *atomic.Pointer[slog.Handler]
	w     io.Writer
	level *slog.Level
	with  func(slog.Handler) slog.Handler // adds the attributes and groups of the logger
}

func (h *handler) set(c config.Log) {
	o := &slog.HandlerOptions{Level: c.Level}
	if h.level != nil {
		o.Level = *h.level
	}
	var next slog.Handler = slog.NewTextHandler(h.w, o)
	if c.Format == "json" {
		next = slog.NewJSONHandler(h.w, o)
	}
	h.now.Store(&next)
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	return (*h.now.Load()).Enabled(ctx, l)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	return h.with(*h.now.Load()).Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.adding(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	return h.adding(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *handler) adding(more func(slog.Handler) slog.Handler) slog.Handler {
	return &handler{h.now, h.w, h.level, func(to slog.Handler) slog.Handler { return more(h.with(to)) }}
}
