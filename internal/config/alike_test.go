package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestServersThatLookAlike(t *testing.T) {
	tests := map[string]struct {
		file, text string
		want       string // in the error; "" for none
	}{
		"one letter apart":          {"wasmgate.yaml", "version: 1\nservers:\n  github: {command: a}\n  githab: {command: b}\n", `:4: servers.githab: the server's name, githab, looks like github`},
		"but for separators":        {"wasmgate.yaml", "version: 1\nservers:\n  my-files: {command: a}\n  myfiles: {command: b}\n", "myfiles, looks like my-files"},
		"a digit for a letter":      {"wasmgate.yaml", "version: 1\nservers:\n  mail: {command: a}\n  mai1: {command: b}\n", "mai1, looks like mail"},
		"like the gateway's own":    {"wasmgate.yaml", "version: 1\nservers:\n  loca1: {command: a}\n", "loca1, looks like local"},
		"in a host's file":          {"mcp.json", `{"mcpServers":{"GitHub":{"command":"a"},"githab":{"command":"b"}}}`, "githab, looks like github"},
		"a number tells them apart": {"wasmgate.yaml", "version: 1\nservers:\n  files-1: {command: a}\n  files-2: {command: b}\n  files: {command: c}\n", ""},
		"the same in a host's file": {"mcp.json", `{"mcpServers":{"GitHub":{"command":"a"},"github":{"command":"b"}}}`, ""},
		"short names":               {"wasmgate.yaml", "version: 1\nservers:\n  mail: {command: a}\n  main: {command: b}\n  a: {command: c}\n  b: {command: c}\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(path, config.Options{})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
