package config

import (
	"cmp"
	"net"
	"net/netip"
	"regexp"
	"time"
)

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// A Store is a database that several gateways share. The zero Store is none.
type Store struct {
	Postgres Secret `key:"postgres"`  // its URL
	Secret   Secret `key:"secret"`    // that all gateways of the database have
	Node     string `key:"node node"` // the name of this gateway; empty: that in the state folder
	Pooled   bool   `key:"pooled"`    // a pooler lends connections for one transaction
	// Timeout bounds each query and the silence of other gateways, and is less than the lease of a gateway. Zero is 2 s.
	Timeout time.Duration `key:"timeout 100ms..10s"`
}

// On reports whether there is one.
func (s Store) On() bool { return s.Postgres != "" }

// Advice says what to do about a file that was changed at one gateway; "" if no others share its database.
func (s Store) Advice(file string) string {
	if !s.On() {
		return ""
	}
	return "the other gateways of the database do not have this change: put the same " + file + " at each of them; `wasmgate cluster` shows what differs"
}

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
