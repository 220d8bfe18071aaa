package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Host reports whether host[:port], as a request names it, is this machine by its own
// name: a loopback address, localhost, or a name below it, which no resolver is asked about (RFC
// 6761, 6.3).
func Host(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if strings.HasPrefix(hostport, "[") && !strings.Contains(host, ":") {
		return false // in brackets stand addresses of IPv6 alone (RFC 3986, section 3.2.2)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host, _ = strings.CutSuffix(inner, "]")
	}
	host = strings.TrimSuffix(host, ".")
	return Address(host) || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// Address reports whether a host, without a port, is localhost or a loopback address. What is
// sent there stays on this machine: a name below localhost can be one that a resolver knows.
func Address(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// Only lets requests through to h that name this machine as their host: a web page whose
// own name resolves to this machine cannot read what is served here.
func Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Host(r.Host) {
			http.Error(w, "the host of the request is not this machine", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
