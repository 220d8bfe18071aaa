package app

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/internal/config"
)

// NewLog returns the operator's log, written to w as a configuration says; level, if it is not
// nil, goes before its level. A gateway takes over what a configuration that is read later says
// of it. w takes writes of several goroutines.
func NewLog(w io.Writer, c config.Log, level *slog.Level) *slog.Logger {
	h := &logHandler{now: new(atomic.Pointer[slog.Handler]), w: w, level: level, with: func(h slog.Handler) slog.Handler { return h }}
	h.set(c)
	return slog.New(h)
}

// adjust has a log say what a configuration wants, if it is one of [NewLog].
func adjust(log *slog.Logger, c config.Log) {
	if h, ok := log.Handler().(*logHandler); ok {
		h.set(c)
	}
}

// A logHandler is the handler of the moment, for all loggers that come from one.
type logHandler struct {
	now   *atomic.Pointer[slog.Handler]
	w     io.Writer
	level *slog.Level
	with  func(slog.Handler) slog.Handler // adds the attributes and groups of the logger
}

func (h *logHandler) set(c config.Log) {
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

func (h *logHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return (*h.now.Load()).Enabled(ctx, l)
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.with(*h.now.Load()).Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.adding(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return h.adding(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *logHandler) adding(more func(slog.Handler) slog.Handler) slog.Handler {
	return &logHandler{h.now, h.w, h.level, func(to slog.Handler) slog.Handler { return more(h.with(to)) }}
}
