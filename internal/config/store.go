package config

import (
	"regexp"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// A Store is a database that several gateways share. The zero Store is none.
type Store struct {
	Postgres Secret `key:"postgres"`  // its URL
	Secret   Secret `key:"secret"`    // that all gateways of the database have
	Node     string `key:"node node"` // the name of this gateway; empty: that in the state folder
	Pooled   bool   `key:"pooled"`    // a pooler lends connections for one transaction
}

// On reports whether there is one.
func (s Store) On() bool { return s.Postgres != "" }

// checkStore reports what a store lacks, and what cannot be shared.
func (d *decoder) checkStore(n *tree.Node, c *Config) {
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{!c.Store.On(), "needs postgres: the URL of the database, such as ${DATABASE_URL}"},
		{c.Store.Secret == "", "needs secret: at least 32 random characters, the same for all gateways of the database"},
		{c.Sessions.Scope != "principal", "needs sessions: {scope: principal}: a connection ends with its gateway, and what it has read must not"},
		{!c.Auth.On(), "needs auth: gateways that share a database have to tell their clients from each other"},
		{len(c.Agents) > 0, "cannot be with agents: hooks are of one machine"},
		{len(c.Auth.Unix) > 0, "cannot be with auth.unix: users of a Unix socket are of one machine"},
	} {
		if n != nil && wrong.is {
			d.fail(n, "store", "%s", wrong.what)
		}
	}
}
