package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Dialer returns what connects to servers that an operator has named, for the
// DialContext of an [net/http.Transport]. The name is resolved once, and what
// was judged is what is dialled. An address that was written out, and localhost,
// are named, unless hosts are given and it is none of them; a name whose address is loopback, private, link-local or that of a
// metadata service is refused, the first two unless private allows them. It may
// be used from several goroutines.
func (c *Client) Dialer(private bool, hosts ...string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		host, service, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(service, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%s: the port is no number", addr)
		}
		to, err := c.named(ctx, host, int(port), private, hosts)
		if err != nil {
			return nil, err
		}
		return c.connect(ctx, to, int(port))
	}
}

// named returns the addresses of a host that an operator has named, if it is one of hosts, or
// these are none.
func (c *Client) named(ctx context.Context, host string, port int, private bool, hosts []string) ([]netip.Addr, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err := netip.ParseAddr(host)
	meant := (err == nil || host == "localhost") && (hosts == nil || slices.Contains(hosts, host))
	to, err := c.addresses(ctx, Target{Scheme: "tcp", Host: host, Port: port}, private || meant)
	if d, ok := err.(*Denied); ok {
		return nil, fmt.Errorf("%s is %s: if that is meant, set `private: true` for the server, or write the address itself into its URL", host, strings.TrimPrefix(d.Reason, "its host is "))
	}
	return to, err
}
