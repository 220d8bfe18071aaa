package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// connectTimeout is how long one address may take to accept a connection: two
	// retransmissions of a SYN. The next address is tried then.
	connectTimeout = 3 * time.Second
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 4
)

// Options configure a [Client]. The zero Options are right for most.
type Options struct {
	// Roots are the certificates that verify origins. Nil means the system's.
	Roots *x509.CertPool
	// Resolve returns the addresses of host. A host of several labels ends in a
	// dot, so that no search domain is tried; one of a single label is a name of
	// this machine or network, and does not. Nil means [net.DefaultResolver].
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Connect makes a TCP connection to an address that was checked. Nil means a
	// [net.Dialer].
	Connect func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// A Client makes the connections for the [Egress] of every call. It keeps none
// of them, and may be used from several goroutines.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Connect == nil {
		dialer := &net.Dialer{Timeout: connectTimeout}
		o.Connect = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", to.String())
		}
	}
	return &Client{o}
}

// addresses returns what may be dialled for t, if it is not farther than most. It refuses a name if any of its
// addresses is refused: a public name with a private address is an attack or a
// mistake.
func (c *Client) addresses(ctx context.Context, t Target, most Reach) ([]netip.Addr, error) {
	a, err := netip.ParseAddr(t.Host)
	all := []netip.Addr{a}
	if metadataHosts[t.Host] && most < Private {
		return nil, refuseAddress(t, a, Private, "a metadata service")
	}
	if err != nil {
		if all, err = c.o.Resolve(ctx, absolute(t.Host)); err != nil {
			return nil, fmt.Errorf("resolve %s: %w", t.Host, err)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("resolve %s: it has no address", t.Host)
		}
	}
	for i, a := range all {
		if r, what := classify(a); r > most {
			return nil, refuseAddress(t, a, r, what)
		}
		all[i] = a.Unmap()
	}
	return all[:min(len(all), maxAddresses)], nil
}

func absolute(host string) string {
	if strings.Contains(host, ".") {
		return host + "."
	}
	return host
}

// refuseAddress keeps the address itself from the tool, which could map a
// private network by it.
func refuseAddress(t Target, a netip.Addr, r Reach, why string) *Denied {
	d := &Denied{Target: t, Reason: "its host is " + why, Err: fmt.Errorf("%s is %s", t.Host, why)}
	if a.IsValid() {
		d.Err = fmt.Errorf("%s is at %s, %s", t.Host, a, why)
	}
	if r == Loopback || r == Private {
		need := needed(t)
		need.Private = true
		d.Need = &need
	}
	return d
}

// roundTrip sends req to the first of the addresses that accepts a connection.
func (c *Client) roundTrip(req *http.Request, to []netip.Addr, port int) (*http.Response, error) {
	t := &http.Transport{
		Proxy: nil, // never the environment's
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.connect(ctx, to, port)
		},
		// net/http does not speak HTTP/2 with a TLSClientConfig, which is meant: one
		// protocol is easier to bound.
		TLSClientConfig:        &tls.Config{RootCAs: c.o.Roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
	return t.RoundTrip(req)
}

func (c *Client) connect(ctx context.Context, to []netip.Addr, port int) (net.Conn, error) {
	var errs []error
	for _, a := range to {
		conn, err := c.o.Connect(ctx, netip.AddrPortFrom(a, uint16(port)))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
