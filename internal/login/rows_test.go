package login

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Principals that call without a login leave nothing behind, however many they are; a login stays.
func TestPrincipalsWithoutLogin(t *testing.T) {
	dir := t.TempDir()
	l := New(Options{
		Vault: vault.New(filepath.Join(dir, "vault"), func() ([]byte, error) { return vault.KeyFile(filepath.Join(dir, "key")) }),
		Note:  func(Event) error { return nil },
	})
	l.Set([]*Server{{ID: "jira", URL: "https://jira.example.com/mcp", Mode: OAuth, Client: http.DefaultClient}})
	alice := &gate.Principal{Owner: gate.Owner{ID: "alice"}, Auth: "bearer"}
	if _, err := l.Give("jira", alice.Owner, "a-token-of-her-own"); err != nil {
		t.Fatal(err)
	}
	for i := range maxRows + 100 {
		who := &gate.Principal{Owner: gate.Owner{ID: fmt.Sprint("p", i)}, Auth: "bearer"}
		if _, _, err := l.Authorize(t.Context(), "jira", who, Need{}, nil); err == nil {
			t.Fatalf("a principal without a login: %v", err)
		}
	}
	if len(l.rows.byKey) > maxRows {
		t.Errorf("%d rows are kept", len(l.rows.byKey))
	}
	if l.rows.byKey[key(l.servers["jira"], alice.Owner)] == nil {
		t.Error("a login was forgotten")
	}
}
