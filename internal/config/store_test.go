package config_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestStore(t *testing.T) {
	shared := "auth: {keys: true}\nsessions: {scope: principal}\n"
	secret := strings.Repeat("x", 32)
	store := `store: {postgres: "postgres://db.example.com/w", secret: ` + secret + `, node: n-1, pooled: true}` + "\n"
	c, err := config.Parse("wasmgate.yaml", []byte(shared+store), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if want := (config.Store{Postgres: "postgres://db.example.com/w", Secret: config.Secret(secret), Node: "n-1", Pooled: true}); c.Store != want {
		t.Error("the store is read otherwise")
	}
	for listen, want := range map[string]string{"listen: 127.0.0.1:7422": "https://127.0.0.1:7422", `listen: ":7422", url: "https://gate-1.example.com:7422"`: "https://gate-1.example.com:7422"} {
		c, err := config.Parse("wasmgate.yaml", []byte(shared+store+"cluster: {"+listen+"}\n"), options(t.TempDir()))
		if err != nil || c.Cluster.At() != want {
			t.Errorf("%s: %v, %v", listen, c, err)
		}
	}
	for name, tt := range map[string]struct{ text, want string }{
		"alone":          {"cluster: {listen: 127.0.0.1:7422}\n", "cluster: needs store"},
		"deaf":           {shared + store + "cluster: {url: \"https://a:7422\"}\n", "cluster: needs listen"},
		"anywhere":       {shared + store + "cluster: {listen: 0.0.0.0:7422}\n", "cluster: needs url: how other gateways reach this one"},
		"any port":       {shared + store + "cluster: {listen: 127.0.0.1:0}\n", "cluster: needs url"},
		"in clear":       {shared + store + "cluster: {listen: \":7422\", url: \"http://a:7422\"}\n", "cluster.url: \"http://a:7422\" does not begin with https://"},
		"no secret":      {shared + "store: {postgres: \"postgres:///w\"}\n", "store: needs secret: at least 32 random characters"},
		"no database":    {shared + "store: {secret: " + secret + "}\n", "store: needs postgres"},
		"connections":    {"auth: {keys: true}\n" + store, "store: needs sessions: {scope: principal}"},
		"no credentials": {"sessions: {scope: principal}\n" + store, "store: needs auth"},
		"hooks":          {shared + store + "agents: {claude-code: {}}\n", "store: cannot be with agents"},
		"local users":    {strings.Replace(shared, "keys: true", "unix: {1000: alice}", 1) + store + "principals: {alice: {}}\n", "store: cannot be with auth.unix"},
		"a bad name":     {shared + strings.Replace(store, "n-1", "n_1", 1), "store.node: \"n_1\" is not a name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte(tt.text), options(t.TempDir()))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), secret[1:]) {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}
