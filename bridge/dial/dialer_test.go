package dial_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

func TestDialer(t *testing.T) {
	names := map[string]string{
		"public.example.": "93.184.216.34", "corp.example.": "10.1.2.3", "loop.example.": "127.0.0.1", "meta.example.": "169.254.169.254",
		"localhost": "127.0.0.1", "mixed.example.": "93.184.216.34 10.1.2.3",
	}
	errReached := errors.New("reached")
	tests := map[string]struct {
		addr    string
		private bool
		to      string // where it connects to; "" if nowhere
	}{
		"a public name":                         {"public.example:443", false, "93.184.216.34:443"},
		"the same with a dot":                   {"public.example.:443", false, "93.184.216.34:443"},
		"a private address behind a name":       {"corp.example:443", false, ""},
		"the same, allowed":                     {"corp.example:443", true, "10.1.2.3:443"},
		"loopback behind a name":                {"loop.example:80", false, ""},
		"a metadata service behind a name":      {"meta.example:80", false, ""},
		"the same, though private is allowed":   {"meta.example:80", true, ""},
		"one private address among public ones": {"mixed.example:80", false, ""},
		"localhost":                             {"localhost:80", false, "127.0.0.1:80"},
		"an address written out":                {"10.1.2.3:80", false, "10.1.2.3:80"},
		"an IPv6 address written out":           {"[::1]:80", false, "[::1]:80"},
		"a metadata service written out":        {"169.254.169.254:80", false, "169.254.169.254:80"},
		"no address at all":                     {"0.0.0.0:80", false, ""},
		"a multicast address":                   {"224.0.0.1:80", true, ""},
		"an IPv4 address in another form":       {"[::ffff:10.1.2.3]:80", false, "10.1.2.3:80"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			to, asked := "", 0
			d := dial.New(dial.Options{
				Resolve: func(_ context.Context, host string) (all []netip.Addr, _ error) {
					asked++
					for _, a := range strings.Fields(names[host]) {
						all = append(all, netip.MustParseAddr(a))
					}
					return all, nil
				},
				Connect: func(_ context.Context, a netip.AddrPort) (net.Conn, error) {
					to = a.String()
					return nil, errReached
				},
			})
			_, err := d.Dialer(tt.private)(t.Context(), "tcp", tt.addr)
			if to != tt.to || (to != "") != errors.Is(err, errReached) {
				t.Errorf("connected to %q, want %q (%v)", to, tt.to, err)
			}
			if asked > 1 {
				t.Errorf("the name was resolved %d times", asked)
			}
		})
	}
}

// What an operator names is asked. What its answers point to is public, or as near as what was named.
func TestAskDialer(t *testing.T) {
	names := map[string]string{"public.example.": "93.184.216.34", "corp.example.": "10.1.2.3", "loop.example.": "127.0.0.1", "meta.example.": "169.254.169.254", "localhost": "127.0.0.1"}
	near := []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "localhost", "loop.example"}
	networks := []string{"10.1.2.3", "192.168.0.1", "172.16.0.1", "[fd00::1]", "[::ffff:10.1.2.3]", "100.64.0.1", "corp.example"}
	metadata := []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "meta.example"}
	reaches := func(most dial.Reach, host string, named ...string) bool {
		reached := errors.New("reached")
		d := dial.New(dial.Options{
			Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(names[host])}, nil
			},
			Connect: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, reached },
		})
		_, err := d.AskDialer(most, named...)(t.Context(), "tcp", host+":80")
		return errors.Is(err, reached)
	}
	for _, group := range []struct {
		hosts []string
		far   dial.Reach // 9: only where it is named itself
	}{{[]string{"public.example", "93.184.216.34"}, dial.Public}, {near, dial.Loopback}, {networks, dial.Private}, {metadata, 9}} {
		for _, host := range group.hosts {
			for _, most := range []dial.Reach{dial.Public, dial.Loopback, dial.Private} {
				if got := reaches(most, host, "named.example"); got != (most >= group.far) {
					t.Errorf("%s, which is not named, at most %d: reached %t", host, most, got)
				}
			}
			plain := strings.Trim(host, "[]")
			_, err := netip.ParseAddr(plain)
			if literal := err == nil || host == "localhost"; reaches(dial.Public, host, plain) != (literal || group.far == dial.Public) {
				t.Errorf("%s is named and reached %t", host, literal)
			}
		}
	}
	if reaches(dial.Private, "meta.example", "meta.example") || !reaches(dial.Loopback, "corp.example", "corp.example") {
		t.Error("a name leads to a metadata address, or not to the operator's network")
	}
}
