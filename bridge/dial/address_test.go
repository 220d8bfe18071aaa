package dial_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
)

// reaches are the rules that it takes to reach an address.
const (
	byRule    = "a rule"
	byPrivate = "a rule that says private"
	byLiteral = "a rule that says private and names the address"
	byNone    = "no rule"
)

func TestAddresses(t *testing.T) {
	tests := map[string]string{
		"93.184.215.14":          byRule,
		"1.1.1.1":                byRule,
		"172.15.255.255":         byRule,
		"172.32.0.0":             byRule,
		"100.63.255.255":         byRule,
		"100.128.0.0":            byRule,
		"223.255.255.255":        byRule,
		"2606:2800:21f::1":       byRule,
		"64:ff9b::5db8:d70e":     byRule, // 93.184.215.14 by NAT64
		"::ffff:93.184.215.14":   byRule,
		"127.0.0.1":              byPrivate,
		"127.255.255.254":        byPrivate,
		"10.1.2.3":               byPrivate,
		"172.16.0.1":             byPrivate,
		"172.31.255.255":         byPrivate,
		"192.168.1.1":            byPrivate,
		"100.64.0.1":             byPrivate,
		"100.100.100.199":        byPrivate,
		"100.100.100.200":        byLiteral, // metadata of Alibaba
		"198.18.0.1":             byPrivate,
		"192.0.2.1":              byPrivate,
		"198.51.100.1":           byPrivate,
		"203.0.113.1":            byPrivate,
		"::1":                    byPrivate,
		"fc00::1":                byPrivate,
		"fd12:3456::1":           byPrivate,
		"2001:db8::1":            byPrivate,
		"3fff::1":                byPrivate,
		"::ffff:127.0.0.1":       byPrivate,
		"::ffff:10.0.0.1":        byPrivate,
		"64:ff9b::7f00:1":        byPrivate, // 127.0.0.1 by NAT64
		"64:ff9b::a00:1":         byPrivate,
		"169.254.169.254":        byLiteral,
		"169.254.170.2":          byLiteral,
		"168.63.129.16":          byLiteral,
		"192.0.0.192":            byLiteral,
		"fd00:ec2::254":          byLiteral,
		"fd20:ce::254":           byLiteral, // Google
		"fd00:c1::a9fe:a9fe":     byLiteral, // Oracle
		"fd00:42::42":            byLiteral, // Scaleway
		"fd00:a9fe:a9fe::1":      byLiteral, // Akamai
		"fd21:ce::254":           byPrivate,
		"64:ff9b::6464:64c8":     byLiteral, // 100.100.100.200 by NAT64
		"fe80::1":                byLiteral,
		"::ffff:169.254.169.254": byLiteral,
		"64:ff9b::a9fe:a9fe":     byLiteral,
		"0.0.0.0":                byNone,
		"0.1.2.3":                byNone,
		"::":                     byNone,
		"192.88.99.1":            byNone,
		"224.0.0.1":              byNone,
		"239.255.255.250":        byNone,
		"240.0.0.1":              byNone,
		"255.255.255.255":        byNone,
		"ff02::1":                byNone,
		"fec0::1":                byNone,
		"100::1":                 byNone,
		"::7f00:1":               byNone, // IPv4-compatible
		"::127.0.0.1":            byNone,
		"64:ff9b:1::7f00:1":      byNone,
		"2001::1":                byNone, // Teredo
		"2002:7f00:1::1":         byNone, // 127.0.0.1 by 6to4
		"2002:a9fe:a9fe::1":      byNone,
		"fe80::1%eth0":           byNone,
		"2606:2800:21f::1%eth0":  byNone,
	}
	for address, want := range tests {
		t.Run(address, func(t *testing.T) {
			public := dialled(t, address, dial.Rule{Origin: "http://name.example"}, "http://name.example/")
			private := dialled(t, address, dial.Rule{Origin: "http://name.example", Private: true}, "http://name.example/")
			literal := false
			if !strings.Contains(address, "%") {
				host := "http://" + netip.AddrPortFrom(netip.MustParseAddr(address), 80).String()
				rule := dial.Rule{Origin: host, Private: true}
				_, err := dial.Compile([]dial.Rule{rule})
				literal = err == nil && dialled(t, address, rule, host)
			}
			got := byNone
			switch {
			case public:
				got = byRule
			case private:
				got = byPrivate
			case literal:
				got = byLiteral
			}
			if got != want {
				t.Errorf("it takes %s, want %s", got, want)
			}
		})
	}
}

// dialled tells whether a request to url, whose name is at address, makes a
// connection.
func dialled(t *testing.T, address string, r dial.Rule, url string) bool {
	w := newWorld(t)
	w.names["name.example"] = []string{address}
	tried := false
	c := dial.New(dial.Options{Resolve: w.resolve, Connect: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		tried = true
		if to.Addr() != netip.MustParseAddr(address).Unmap() {
			t.Errorf("dialled %s", to)
		}
		return nil, net.ErrClosed
	}})
	_, err := c.Egress(dial.Scope{Rules: compile(t, r), Ask: yes}).Do(t.Context(), get(url))
	if tried {
		wantFailed(t, err, "")
	} else {
		wantDenied(t, err, "its host is ")
	}
	return tried
}

func TestPrivateAddressNeedsARule(t *testing.T) {
	w := newWorld(t)
	w.names["inner.example"] = []string{"10.1.2.3"}
	_, err := w.client().Egress(open(t, "http://inner.example")).Do(t.Context(), get("http://inner.example/v1/x?y"))
	d := wantDenied(t, err, "a private address")
	if want := `{origin: "http://inner.example", methods: [GET], path: "/v1/x", private: true}`; d.Need == nil || d.Need.String() != want {
		t.Errorf("needs %v, want %s", d.Need, want)
	}
	if strings.Contains(err.Error(), "10.1.2.3") || !strings.Contains(d.Err.Error(), "10.1.2.3") {
		t.Errorf("the tool reads %q, the operator %q", err, d.Err)
	}
}

// Metadata services are known by name as well: some have addresses like any other.
func TestMetadataByName(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"metadata.packet.net", "metadata.google.internal"} {
		w.names[name] = []string{"93.184.215.14"}
		_, err := w.client().Egress(open(t, "http://"+name)).Do(t.Context(), get("http://"+name+"/"))
		if d := wantDenied(t, err, "a metadata service"); d.Need == nil || !d.Need.Private || len(w.dialled) > 0 {
			t.Errorf("%s: needs %v, dialled %v", name, d.Need, w.dialled)
		}
		if _, err := w.client().Dialer(false)(t.Context(), "tcp", strings.ToUpper(name)+".:80"); err == nil || !strings.Contains(err.Error(), "is a metadata service: if that is meant") {
			t.Errorf("a server at %s: %v", name, err)
		}
	}
}

func TestOnePrivateAddressAmongPublicOnes(t *testing.T) {
	w := newWorld(t)
	w.names["mixed.example"] = []string{"93.184.215.14", "127.0.0.1"}
	_, err := w.client().Egress(open(t, "http://mixed.example")).Do(t.Context(), get("http://mixed.example/"))
	wantDenied(t, err, "a loopback address")
	if len(w.dialled) > 0 {
		t.Errorf("dialled %v", w.dialled)
	}
}

// The resolver answers with a public address first, and with loopback from then
// on. The name is resolved once, and the address that was checked is dialled.
func TestRebinding(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("rebind.example", says("hello"))
	var asked atomic.Int64
	c := dial.New(dial.Options{Connect: w.connect, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	e := c.Egress(open(t, origin))
	if res := mustDo(t, e, get(origin)); string(res.Body) != "hello" {
		t.Errorf("body = %q", res.Body)
	}
	if want := []string{"93.184.215.14:" + portOf(origin)}; asked.Load() != 1 || !slices.Equal(w.dialled, want) {
		t.Errorf("resolved %d times, dialled %v, want once and %v", asked.Load(), w.dialled, want)
	}
	_, err := e.Do(t.Context(), get(origin)) // the second request resolves anew, and is judged anew
	wantDenied(t, err, "a loopback address")
}

func TestNoSearchDomain(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", says(""))
	mustDo(t, w.client().Egress(open(t, origin)), get(origin))
	if !slices.Equal(w.resolved, []string{"api.example."}) {
		t.Errorf("resolved %v", w.resolved)
	}
}

func TestNextAddressIsTried(t *testing.T) {
	w := newWorld(t)
	origin := w.serve("api.example", says("hello"))
	w.names["api.example"] = []string{"93.184.215.1", "93.184.215.2"}
	c := dial.New(dial.Options{Resolve: w.resolve, Connect: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Addr() == netip.MustParseAddr("93.184.215.1") {
			return nil, net.ErrClosed
		}
		return w.connect(ctx, to)
	}})
	if res := mustDo(t, c.Egress(open(t, origin)), get(origin)); string(res.Body) != "hello" {
		t.Errorf("body = %q", res.Body)
	}
}

func TestFewAddressesAreTried(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		w.names["many.example"] = append(w.names["many.example"], netip.AddrFrom4([4]byte{93, 184, 215, byte(i)}).String())
	}
	var tried atomic.Int64
	c := dial.New(dial.Options{Resolve: w.resolve, Connect: func(context.Context, netip.AddrPort) (net.Conn, error) {
		tried.Add(1)
		return nil, net.ErrClosed
	}})
	_, err := c.Egress(open(t, "http://many.example")).Do(t.Context(), get("http://many.example"))
	wantFailed(t, err, "")
	if tried.Load() != 4 {
		t.Errorf("%d addresses were tried", tried.Load())
	}
}

func TestNoAddress(t *testing.T) {
	c := dial.New(dial.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }})
	_, err := c.Egress(open(t, "http://none.example")).Do(t.Context(), get("http://none.example"))
	if f := wantFailed(t, err, ""); !strings.Contains(f.Reason, "no address") {
		t.Errorf("err = %v", err)
	}
}

// The tool reads no address of the network in an error, the operator does.
func TestAddressesInErrors(t *testing.T) {
	const address = "10.9.8.7"
	tests := map[string]dial.Options{
		"the resolver's": {Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, Server: address + ":53"}
		}},
		"the server's": {
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(address)}, nil
			},
			Connect: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: net.ErrClosed}
			},
		},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			scope := dial.Scope{Rules: compile(t, dial.Rule{Origin: "http://inner.example", Private: true}), Ask: yes}
			_, err := dial.New(o).Egress(scope).Do(t.Context(), get("http://inner.example"))
			if f := wantFailed(t, err, ""); strings.Contains(err.Error(), address) || !strings.Contains(f.Detail, address) {
				t.Errorf("the tool reads %q, the operator %q", err, f.Detail)
			}
		})
	}
}

// The real resolver and the real dialer, on this machine.
func TestDefaults(t *testing.T) {
	w := newWorld(t)
	port := portOf(w.serve("unused.example", says("hello")))
	origin := "http://localhost:" + port
	if addrs, err := net.LookupHost("localhost"); err != nil || !slices.Contains(addrs, "127.0.0.1") {
		t.Skipf("localhost is at %v, %v: the server is at 127.0.0.1", addrs, err)
	}
	client := dial.New(dial.Options{})
	_, err := client.Egress(open(t, origin)).Do(t.Context(), get(origin))
	wantDenied(t, err, "a loopback address")

	private := dial.Scope{Rules: compile(t, dial.Rule{Origin: origin, Private: true}), Ask: yes}
	if res := mustDo(t, client.Egress(private), get(origin)); string(res.Body) != "hello" {
		t.Errorf("body = %q", res.Body)
	}
}
