package sandbox

import (
	"log/slog"
	"strings"
)

// A guestLog takes what the guest of a call says, as far as its limit has room. Handlers quote it,
// so that it cannot look like records of its own.
type guestLog struct {
	call      *call
	bytes     int64  // of messages
	complaint string // the last message that was an error
}

// levels are those of the function log.
var levels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// message logs what a guest says.
func (g *guestLog) message(level slog.Level, text []byte) {
	room := g.call.limits.Log - g.bytes
	if room <= 0 {
		return
	}
	text = text[:min(int64(len(text)), room)]
	g.bytes += int64(len(text)) + 64 // a record costs more than its text
	g.record(level, "guest log", text)
}

// stderr logs what a guest wrote to stderr as one record.
func (g *guestLog) stderr(o *output) {
	if len(o.buf) > 0 {
		g.record(slog.LevelInfo, "guest stderr", o.buf, slog.Bool("truncated", o.full))
	}
}

func (g *guestLog) record(level slog.Level, what string, text []byte, more ...slog.Attr) {
	c := g.call
	c.module.runtime.log.LogAttrs(c.parent, level, what, append([]slog.Attr{slog.String("module", c.module.name),
		slog.String("tool", c.tool), slog.String("text", strings.ToValidUTF8(string(text), "\ufffd"))}, more...)...)
}
