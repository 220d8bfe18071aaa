package configured_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/configured"
)

// TestAddServers: a program saves servers, and neither a comment is lost nor a secret written.
func TestAddServers(t *testing.T) {
	path, secret := filepath.Join(t.TempDir(), "wasmgate.yaml"), "ghp_"+strings.Repeat(rand.Text(), 2)[:36]
	if err := os.WriteFile(path, []byte("version: 1 # mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const first = `{"mcpServers": {"files": {"command": "mcp-files", "args": ["/srv"]}}}`
	for want, servers := range map[string]string{"files": first, "hub": `{"mcpServers": {"hub": {"command": "mcp-hub", "env": {"TOKEN": "` + secret + `"}}}}`} {
		saved, err := configured.AddServers(path, strings.NewReader(servers))
		if err != nil || !slices.Equal(saved.Added, []string{want}) {
			t.Fatalf("%+v, %v", saved, err)
		}
		if want == "hub" && len(saved.Variables) != 1 {
			t.Errorf("the secret: %+v", saved)
		}
	}
	if saved, err := configured.AddServers(path, strings.NewReader(first)); err != nil || len(saved.Added) != 0 {
		t.Errorf("again: %+v, %v", saved, err)
	}
	if _, err := configured.AddServers(path, strings.NewReader(`{"mcpServers": {"files": {"command": "other"}}}`)); err == nil {
		t.Error("another server of the same name was taken")
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "version: 1 # mine\n") || strings.Contains(string(text), secret) || strings.Count(string(text), "mcp-") != 2 {
		t.Errorf("%s, %v", text, err)
	}
}
