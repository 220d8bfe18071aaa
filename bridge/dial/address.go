package dial

import "net/netip"

// A Reach says which addresses may be dialled. Each includes those before it.
type Reach int

const (
	Public   Reach = iota
	Loopback       // this machine
	Private        // the networks of the operator
	local          // link-local and metadata addresses, which have to be named themselves
	never
)

// special are the addresses that are not public: the registries of special
// purpose addresses (RFC 6890 and IANA's lists as of 2025) and the metadata
// services that stand outside them. The first prefix that contains an address
// decides.
var special = []struct {
	prefix netip.Prefix
	reach  Reach
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), never, "an unspecified address"},
	{netip.MustParsePrefix("10.0.0.0/8"), Private, "a private address"},
	{netip.MustParsePrefix("100.100.100.200/32"), local, "a metadata address"}, // Alibaba's
	{netip.MustParsePrefix("100.64.0.0/10"), Private, "a shared address of a provider (RFC 6598)"},
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback, "a loopback address"},
	{netip.MustParsePrefix("168.63.129.16/32"), local, "a metadata address"}, // Azure's
	{netip.MustParsePrefix("169.254.0.0/16"), local, "a link-local or metadata address"},
	{netip.MustParsePrefix("172.16.0.0/12"), Private, "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), local, "a reserved or metadata address"}, // 192.0.0.192: Oracle's
	{netip.MustParsePrefix("192.0.2.0/24"), Private, "a documentation address"},
	{netip.MustParsePrefix("192.88.99.0/24"), never, "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), Private, "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), Private, "a benchmark address"},
	{netip.MustParsePrefix("198.51.100.0/24"), Private, "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), Private, "a documentation address"},
	{netip.MustParsePrefix("224.0.0.0/4"), never, "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), never, "a reserved address"},

	{netip.MustParsePrefix("::1/128"), Loopback, "a loopback address"},
	{netip.MustParsePrefix("fd00:42::42/128"), local, "a metadata address"},        // Scaleway's
	{netip.MustParsePrefix("fd00:a9fe:a9fe::/48"), local, "a metadata address"},    // Akamai's
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), local, "a metadata address"}, // Oracle's
	{netip.MustParsePrefix("fd00:ec2::/32"), local, "a metadata address"},          // Amazon's
	{netip.MustParsePrefix("fd20:ce::/32"), local, "a metadata address"},           // Google's
	{netip.MustParsePrefix("fc00::/7"), Private, "a private address"},
	{netip.MustParsePrefix("fe80::/10"), local, "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), never, "a multicast address"},
	{netip.MustParsePrefix("2001::/23"), never, "a protocol's address (Teredo and others)"},
	{netip.MustParsePrefix("2001:db8::/32"), Private, "a documentation address"},
	{netip.MustParsePrefix("2002::/16"), never, "a 6to4 address"},
	{netip.MustParsePrefix("3fff::/20"), Private, "a documentation address"},
	{netip.MustParsePrefix("2000::/3"), Public, ""},
	{netip.MustParsePrefix("::/0"), never, "an address that is not global"},
}

// metadataHosts are the names of metadata services that providers give them, wherever they
// lead: some to an address that is like any other.
var metadataHosts = map[string]bool{
	"metadata": true, "metadata.google.internal": true, "metadata.goog": true, "instance-data": true, "instance-data.ec2.internal": true,
	"metadata.azure.internal": true, "metadata.tencentyun.com": true, "api.metadata.cloud.ibm.com": true, "metadata.packet.net": true,
	"metadata.platformequinix.com": true, "metadata.exoscale.com": true,
}

// nat64 holds an IPv4 address in its last four bytes (RFC 6052, 2.1). Networks
// without IPv4 reach all of IPv4 through it, so it is as public as what it holds.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// classify returns how far a may be reached, and what it is. Other forms of an
// IPv4 address count as that address.
func classify(a netip.Addr) (Reach, string) {
	if !a.IsValid() || a.Zone() != "" { // no prefix contains an address with a zone
		return never, "an address with a zone"
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.reach, s.what
		}
	}
	return Public, ""
}

// allowance is how far a host may be: private says that its rule allows private addresses, and
// literal that the rule names the address itself.
func allowance(private, literal bool) Reach {
	switch {
	case private && literal:
		return local
	case private:
		return Private
	}
	return Public
}

// isLiteral reports whether a host is an address.
func isLiteral(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
