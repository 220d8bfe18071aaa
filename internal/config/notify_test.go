package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestNotify(t *testing.T) {
	tests := map[string]struct {
		file string
		want []config.Notify
		err  string
	}{
		"all ways": {"notify: {chat: {url: \"https://chat/x\", headers: {authorization: \"${TICKETS_TOKEN}\"}, private: true, timeout: 2s, about: [approval], arguments: true}, script: {command: [./tell, now]}, screen: {desktop: true}}\n", []config.Notify{
			{Name: "chat", About: []string{"approval"}, Arguments: true, Target: config.Target{URL: "https://chat/x", Headers: map[string]config.Secret{"authorization": "t0p"}, Private: true, Timeout: 2 * time.Second}},
			{Name: "script", Target: config.Target{Timeout: 10 * time.Second}, Command: []string{"./tell", "now"}},
			{Name: "screen", Target: config.Target{Timeout: 10 * time.Second}, Desktop: true},
		}, ""},
		"no way":           {"notify:\n  x: {about: [audit]}\n", nil, `wasmgate.yaml:2: notify.x: has 0 of url, command and desktop: write one`},
		"two ways":         {"notify:\n  x: {desktop: true, command: [a]}\n", nil, `wasmgate.yaml:2: notify.x: has 2 of url, command and desktop: write one`},
		"for a shell":      {"notify: {x: {command: \"tell | mail\"}}\n", nil, `wasmgate.yaml:1: notify.x.command: must be a list of the program and its arguments: no shell reads it`},
		"about what is no": {"notify: {x: {desktop: true, about: [calls]}}\n", nil, `wasmgate.yaml:1: notify.x.about[0]: "calls" is not one of approval, quarantine, server, audit`},
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
			if diff := cmp.Diff(tt.want, c.Notify); diff != "" {
				t.Error(diff)
			}
		})
	}
}
