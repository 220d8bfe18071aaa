package plain

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A URL is one that everybody reads alike.
type URL struct {
	Scheme, Host, Path, Query string
	Port                      int
}

// Origin returns the scheme, the host and a port that is not the scheme's own.
func (u URL) Origin() string {
	host := u.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if ports[u.Scheme] == u.Port {
		return u.Scheme + "://" + host
	}
	return u.Scheme + "://" + host + ":" + strconv.Itoa(u.Port)
}

// ports are the schemes whose URLs are read here, and their own ports.
var ports = map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443}

// unreserved matches the digits of an escape that needs none (RFC 3986, 2.3).
const unreserved = `2[de]|3[0-9]|[46][1-9a-f]|5[0-9af]|7[0-9ae]`

var (
	urlPattern   = regexp.MustCompile(`^([A-Za-z]+)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?(/[^?#]*)?(?:\?([^#]*))?(?:#.*)?$`)
	labelPattern = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numeric      = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`) // what a browser takes for the end of an IPv4 address
	badEscape    = regexp.MustCompile(`(?i)%(?:$|[^0-9a-f]|[0-9a-f](?:$|[^0-9a-f])|[01][0-9a-f]|7f|2f|5c|25[0-9a-f]{2}|` + unreserved + `)`)
)

// ParseURL reads an absolute URL, and returns false unless it is one that no parser
// can take for another: of printable ASCII, without user, with a host in one of the
// forms of RFC 3986 that has no other (no octal address, no dot at its end), and a
// path without . and .. however they are written. The scheme and the host come in
// lower case.
func ParseURL(s string) (URL, bool) {
	if len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"<>^`{|}", r) }) {
		return URL{}, false
	}
	m := urlPattern.FindStringSubmatch(s)
	if m == nil || badEscape.MatchString(m[4]) {
		return URL{}, false
	}
	u := URL{Scheme: strings.ToLower(m[1]), Path: m[4], Query: m[5]}
	u.Port = ports[u.Scheme]
	if u.Port == 0 || !plainPath(u.Path) {
		return URL{}, false
	}
	if m[3] != "" {
		u.Port, _ = strconv.Atoi(m[3]) // five digits at most
	}
	if u.Path == "" {
		u.Path = "/"
	}
	var ok bool
	u.Host, ok = plainHost(strings.ToLower(m[2]))
	return u, ok && u.Port < 1<<16
}

// plainHost returns a host in its one form, an IPv6 address without its brackets.
func plainHost(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return a.String(), err == nil && a.Is6() && !a.Is4In6()
	}
	labels := strings.Split(host, ".")
	if numeric.MatchString(labels[len(labels)-1]) {
		a, err := netip.ParseAddr(host)
		return host, err == nil && a.Is4() && a.String() == host
	}
	return host, len(host) <= 253 && !slices.ContainsFunc(labels, func(l string) bool { return !labelPattern.MatchString(l) })
}

// plainPath reports whether a URL's path is text without a segment . or .., even where it is
// escaped or has parameters (/..;a=b/).
func plainPath(path string) bool {
	text, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(text) || strings.ContainsAny(text, looksLike) || strings.ContainsFunc(text, hidden) {
		return false
	}
	for segment := range strings.SplitSeq(text, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name == "." || name == ".." {
			return false
		}
	}
	return true
}
