package config

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"time"

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

// A Cluster says how the gateways of a database reach each other. The zero Cluster is not at all.
type Cluster struct {
	Listen string `key:"listen hostport"` // for other gateways
	URL    string `key:"url web https"`   // at which they reach it; empty: that of Listen
	// Linger is how long the gateway goes on serving when it ends, so that load balancers notice.
	Linger time.Duration `key:"linger 1s..10m"` // zero: usualLinger
}

const usualLinger = 10 * time.Second

// Lingers returns how long the gateway goes on serving when it ends.
func (c Cluster) Lingers() time.Duration { return cmp.Or(c.Linger, usualLinger) }

// At returns the URL at which other gateways reach this one; "" if they do not.
func (c Cluster) At() string {
	if c.URL != "" || c.Listen == "" {
		return c.URL
	}
	return "https://" + c.Listen
}

// anywhere reports whether Listen does not say where the gateway is.
func (c Cluster) anywhere() bool {
	host, port, _ := net.SplitHostPort(c.Listen)
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified() || port == "0"
}

// checkStore reports what a store and a cluster lack, and what cannot be shared.
func (d *decoder) checkStore(root *tree.Node, c *Config) {
	for _, wrong := range []struct {
		is        bool
		key, what string
	}{
		{!c.Store.On(), "store", "needs postgres: the URL of the database, such as ${DATABASE_URL}"},
		{c.Store.Secret == "", "store", "needs secret: at least 32 random characters, the same for all gateways of the database"},
		{c.Sessions.Scope != "principal", "store", "needs sessions: {scope: principal}: a connection ends with its gateway, and what it has read must not"},
		{!c.Auth.On(), "store", "needs auth: gateways that share a database have to tell their clients from each other"},
		{len(c.Agents) > 0, "store", "cannot be with agents: hooks are of one machine"},
		{len(c.Auth.Unix) > 0, "store", "cannot be with auth.unix: users of a Unix socket are of one machine"},
		{root.Get("store") == nil, "cluster", "needs store: gateways find each other in the database that they share"},
		{c.Cluster.Listen == "", "cluster", "needs listen: an address for other gateways only, such as 10.0.0.1:7422"},
		{c.Cluster.anywhere() && c.Cluster.URL == "", "cluster", "needs url: how other gateways reach this one, such as https://gate-1.example.com:7422"},
	} {
		if n := root.Get(wrong.key); n != nil && wrong.is {
			d.fail(n, wrong.key, "%s", wrong.what)
		}
	}
}
