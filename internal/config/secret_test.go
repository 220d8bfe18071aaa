package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/extract"
)

// However a configuration is printed, its secrets are not.
func TestSecretsStayInside(t *testing.T) {
	const word = "sesame"
	s := config.Server{
		ID: "a", Command: "/bin/x", Args: []string{word}, URL: "https://h/?k=" + word,
		Env: map[string]config.Secret{"A": word}, Headers: map[string]config.Secret{"A": word},
	}
	remote := s
	remote.Command = ""
	bound := config.BoundSecret{Name: "API", Value: word, Origin: "https://h"}
	module := config.Module{ID: "m", Config: map[string]config.Secret{"A": word}}
	c := &config.Config{Servers: []config.Server{s, remote}, Tools: []config.Module{module}, Secrets: []config.BoundSecret{bound}}
	secret := config.Secret(word)

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%10.3s"} {
		for _, v := range []any{secret, &secret, s.Env, s, remote, *c, c.Servers, bound, module, extract.Moved{Value: secret}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "secret", secret, "env", s.Env, "server", s, "remote", remote, "bound", bound, "module", module)
	}
	marshalled, err := json.Marshal([]any{secret, s.Env, s.Headers, bound, module, extract.Moved{Value: secret}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(marshalled)
	hex := fmt.Sprintf("%x", word)
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, word) || strings.Contains(line, hex) {
			t.Errorf("shown: %s", line)
		}
	}
	if got := fmt.Sprint(s, remote); got != "a (x) a (https://h)" {
		t.Errorf("servers print as %q", got)
	}
}

// A problem quotes what the file says, never what the environment does.
func TestProblemsQuoteTheFile(t *testing.T) {
	const word = "sesame"
	o := options(t.TempDir())
	o.Getenv = environment(map[string]string{"S": word, "B": word + "\r\n\x00"})
	const file = `
listen: "${S}"
principals: {a: {roles: ["${S} "]}}
servers:
  a: {url: "${S}", transport: "${S}", timeout: "${S}", headers: {X: "${B}"}, enabled: "${S}", sanitize: "${S}", schema: "${S}"}
  b: {command: "${B}", cwd: "${B}", args: ["${B}"], env: {A: "${B}"}}
tools: {t: {module: "${S}", sha256: "${S}", server: "${B}", limits: {memory: "${S}", log: "${S}", host_calls: "${S}"}, isolation: "${S}", config: {a: "${B}"}}, u: {module: "oci://${S}", grant: {
  http: [{origin: "${S}", methods: ["${S}"], path: "${S}", private: "${S}"}], dirs: [{path: "${B}", write: "${S}"}], secrets: ["${S}"], kv: "${S}"}}}
secrets: {A: {value: "${B}", origin: "${S}"}}
policy: {packs: ["${S}"], paths: ["${S}"], timeout: "${S}"}
sanitize: {profile: "${S}"}
audit: {path: "${B}", max_size: "${S}", keep: "${S}"}
http: {origins: ["${S}"], hosts: ["${B}"]}
log: {level: "${S}"}
`
	_, err := config.Parse("wasmgate.yaml", []byte(file), o)
	if err == nil {
		t.Fatal("no problems")
	}
	if n := strings.Count(err.Error(), "\n") + 1; n < 37 {
		t.Errorf("only %d problems:\n%v", n, err)
	}
	if strings.Contains(err.Error(), word) {
		t.Errorf("shown:\n%v", err)
	}
}
