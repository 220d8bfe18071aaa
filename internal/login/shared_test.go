package login_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/login"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// Gateways that share documents and turns share logins.
func TestShared(t *testing.T) {
	storetest.Logins(t, func(t *testing.T, o login.Options) (all []storetest.Loginer) {
		dir, secret := t.TempDir(), []byte(rand.Text()+rand.Text())
		names := func(_ context.Context, prefix string) (names []string, err error) {
			files, err := os.ReadDir(dir)
			for _, f := range files {
				if name, bad := url.PathUnescape(f.Name()); bad == nil && strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
			return names, err
		}
		o.Vault = vault.Shared(func(name string) state.Document { return state.File(filepath.Join(dir, url.PathEscape(name))) }, names, secret)
		var turn sync.Mutex
		o.Turn = func(context.Context, string) (func(), error) {
			turn.Lock()
			return turn.Unlock, nil
		}
		for range 3 {
			l := login.New(o)
			all = append(all, storetest.Loginer{Logins: l, Follow: func() {
				changed, err := names(t.Context(), "vault/")
				if err != nil {
					t.Error(err)
				}
				l.Follow(append(changed, vault.Key{Kind: "login", Tenant: "acme", Principal: "alice", Server: "jira"}.Name()))
			}})
		}
		return all
	})
}
