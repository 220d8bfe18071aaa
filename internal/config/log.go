package config

import "log/slog"

// Log says what the operator's log holds.
type Log struct {
	Level  slog.Level `key:"level debug|info|warn|error" default:"info"`
	Format string     `key:"format text|json" default:"text"`
}
