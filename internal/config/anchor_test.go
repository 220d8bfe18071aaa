package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestAuditLife(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		file   string
		anchor config.Anchor
		rotate time.Duration
		err    string
	}{
		"nothing said":        {"", config.Anchor{}, 0, ""},
		"a file":              {"audit: {anchor: {file: heads.jsonl}}\n", config.Anchor{File: filepath.Join(dir, "heads.jsonl"), Every: time.Minute}, 0, ""},
		"a command":           {"audit: {anchor: {command: [logger, -t, 1], every: 5m}}\n", config.Anchor{Command: []string{"logger", "-t", "1"}, Every: 5 * time.Minute}, 0, ""},
		"by time":             {"audit: {rotate: 1d, max_age: 30d, compress: true}\n", config.Anchor{}, 24 * time.Hour, ""},
		"nowhere":             {"audit: {anchor: {every: 1m}}\n", config.Anchor{}, 0, `wasmgate.yaml:1: audit.anchor: names neither a file nor a command`},
		"for a shell":         {"audit: {anchor: {command: \"logger -t x\"}}\n", config.Anchor{}, 0, "wasmgate.yaml:1: audit.anchor.command: must be a list of the program and its arguments: no shell reads it"},
		"no number of days":   {"audit: {rotate: xd}\n", config.Anchor{}, 0, `wasmgate.yaml:1: audit.rotate: "xd" is not an age of a minute or more, such as 30d or 12h`},
		"too often":           {"audit: {rotate: 1s}\n", config.Anchor{}, 0, `wasmgate.yaml:1: audit.rotate: "1s" is not an age of a minute or more, such as 30d or 12h`},
		"removed before held": {"audit:\n  max_age: 1d\n", config.Anchor{}, 0, `wasmgate.yaml:2: audit.max_age: is less than hold, which keeps records for 168h: write more, or less there`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse(filepath.Join(dir, "wasmgate.yaml"), []byte(tt.file), options(dir))
			if tt.err != "" {
				if err == nil || strings.ReplaceAll(err.Error(), dir+"/", "") != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.anchor, c.Audit.Anchor); diff != "" || c.Audit.Rotate != tt.rotate || c.Audit.Compress != (tt.rotate > 0) {
				t.Error(diff, c.Audit)
			}
		})
	}
}
