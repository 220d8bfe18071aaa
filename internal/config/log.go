package config

import "log/slog"

// Log says what the operator's log holds.
type Log struct {
	Level  slog.Level
	Format string // text | json
}

func (d *decoder) log(to *Log, n *node, path string) {
	level := "info"
	d.table(n, path, map[string]reader{
		"level":  d.one(&level, "debug", "info", "warn", "error"),
		"format": d.one(&to.Format, "text", "json"),
	})
	to.Level = map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[level]
}
