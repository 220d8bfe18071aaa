package dial

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Dialer returns what connects to servers that an operator has named, for the
// DialContext of an [net/http.Transport]. The name is resolved once, and what
// was judged is what is dialled. An address that was written out, and localhost,
// are meant; a name whose address is loopback, private, link-local or that of a
// metadata service is refused, the first two unless private allows them. It may
// be used from several goroutines.
func (c *Client) Dialer(private bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.dialer(func(host string) Reach {
		return allowance(private || isLiteral(host) || host == localhost, isLiteral(host))
	})
}

// AskDialer is [Client.Dialer] for requests to hosts that an operator has named, and to others to
// which their answers point. Those others may be as far as most; link-local and metadata addresses
// are dialled only where the operator has named the address itself.
func (c *Client) AskDialer(most Reach, hosts ...string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.dialer(func(host string) Reach {
		if slices.Contains(hosts, host) {
			return allowance(most > Public || isLiteral(host) || host == localhost, isLiteral(host))
		}
		return most
	})
}

const localhost = "localhost"

func (c *Client) dialer(most func(host string) Reach) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		host, service, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(service, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%s: the port is not a number", addr)
		}
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		to, err := c.addresses(ctx, Target{Scheme: "tcp", Host: host, Port: int(port)}, most(host))
		if d, ok := err.(*Denied); ok {
			return nil, fmt.Errorf("%s is %s: if that is meant, set `private: true` for the server, or write the address itself into its URL", host, strings.TrimPrefix(d.Reason, "its host is "))
		}
		if err != nil {
			return nil, err
		}
		return c.connect(ctx, to, int(port))
	}
}
