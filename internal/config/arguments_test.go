package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestArguments(t *testing.T) {
	tests := map[string]struct {
		file string
		want config.Arguments
		err  string
	}{
		"nothing said":   {"", config.Arguments{}, ""},
		"tools":          {"audit: {arguments: {tools: [\"files__*\"]}}\n", config.Arguments{Tools: []string{"files__*"}, Keep: 14 * 24 * time.Hour}, ""},
		"for a while":    {"audit: {arguments: {tools: [a], keep: 2d}}\n", config.Arguments{Tools: []string{"a"}, Keep: 48 * time.Hour}, ""},
		"of nothing":     {"audit: {arguments: {keep: 2d}}\n", config.Arguments{}, `wasmgate.yaml:1: audit.arguments: names no tools`},
		"a wrong name":   {"audit:\n  arguments: {tools: [\"a.b\"]}\n", config.Arguments{}, `wasmgate.yaml:2: audit.arguments.tools[0]: "a.b" is not the name of a tool, or its beginning and *`},
		"no time at all": {"audit: {arguments: {tools: [a], keep: 0s}}\n", config.Arguments{}, `wasmgate.yaml:1: audit.arguments.keep: "0s" is not an age of a minute or more, such as 30d or 12h`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("wasmgate.yaml", []byte(tt.file), options(t.TempDir()))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Audit.Arguments); diff != "" {
				t.Error(diff)
			}
		})
	}
}
