package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

// TestUnsetVariables: what a server, a module or a secret lacks is that one's fault alone.
func TestUnsetVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wasmgate.yaml")
	write(t, file, `version: 1
servers:
  args: {command: x, args: ["a", "${NONE}", "${NEITHER}"]}
  env: {command: x, env: {A: "${NONE}", B: "${HAVE}"}}
  url: {url: "${NONE}"}
  headers: {url: "https://example.com/mcp", headers: {Authorization: "Bearer ${NONE}"}}
  client: {url: "https://example.com/mcp", auth: {mode: client_credentials, client_id: gw, client_secret: "${NONE}"}}
  off: {command: x, args: ["${NONE}"], enabled: false}
  whole: {command: x, args: ["${HAVE}", "${NONE:-y}"]}
secrets: {API: {value: "${NONE}", origin: "https://api.example.com"}, OK: {value: "${HAVE}", origin: "https://api.example.com"}}
tools:
  lacks: {module: "embedded:files", grant: {secrets: [API], http: [{origin: "https://api.example.com"}]}}
  has: {module: "embedded:files", grant: {secrets: [OK], http: [{origin: "https://api.example.com"}]}}
  itself: {module: "embedded:files", config: {a: "${NEITHER}"}}
`)
	c, err := config.Load(file, config.Options{Getenv: func(name string) (string, bool) { return map[string]string{"HAVE": "here"}[name], name == "HAVE" }})
	if err != nil {
		t.Fatal(err)
	}
	const none, neither = ": the environment variable NONE is not set: set it, or write ${NONE:-default}", ": the environment variable NEITHER is not set: set it, or write ${NEITHER:-default}"
	want := map[string]string{
		"args": "servers.args.args[1]" + none + "; servers.args.args[2]" + neither, "env": "servers.env.env.A" + none,
		"url": "servers.url.url" + none, "headers": "servers.headers.headers.Authorization" + none, "client": "servers.client.auth.client_secret" + none, "off": "", "whole": "",
		"lacks": "secrets.API.value" + none, "has": "", "itself": "tools.itself.config.a" + neither,
	}
	got := map[string]string{}
	for _, s := range c.Servers {
		got[s.ID] = s.Fault
	}
	for _, m := range c.Tools {
		got[m.ID] = m.Fault
	}
	for id, fault := range want {
		if got[id] != fault {
			t.Errorf("%s: %q\nwant %q", id, got[id], fault)
		}
	}
	write(t, file, "version: 1\nlisten: ${NONE}\n")
	if _, err := config.Load(file, config.Options{Getenv: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "NONE is not set") {
		t.Errorf("of the gateway itself: %v", err)
	}
}
