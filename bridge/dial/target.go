package dial

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxURL is what common servers accept, in bytes (RFC 9110, 4.1 asks for
	// 8000 at least).
	maxURL = 8 << 10
	// maxHost and maxLabel are the limits of DNS, in bytes (RFC 1035, 2.3.4).
	maxHost  = 253
	maxLabel = 63
	// maxDecodes is how often a path segment may be escaped on top of itself.
	// Servers behind proxies decode twice; more is an attack.
	maxDecodes = 3
)

// A Target is where a request goes, in the only form in which it is judged and
// sent. Targets without the same origin never look alike.
type Target struct {
	Method string // upper case
	Scheme string // http or https
	Host   string // lower case ASCII without a dot at its end, or an IP address in its canonical form, without brackets
	Port   int    // 1 to 65535
	Path   string // escaped as it is sent, in the one spelling of [cleanPath]

	query string // neither rules nor policies see it: it is data, like the body
}

// NewTarget reads method ("" means GET) and an absolute URL. It refuses what
// servers or resolvers might read in another way than we do: userinfo, IPv4
// addresses in other notations than four decimal numbers, zones, hosts that are
// not ASCII, and paths with empty segments, or with dot segments hidden by
// escapes, backslashes or semicolons. Plain dot segments are removed (RFC 3986,
// 5.2.4), and the fragment is left out.
func NewTarget(method, rawURL string) (Target, error) {
	if method == "" {
		method = "GET"
	}
	if err := checkMethod(method); err != nil {
		return Target{}, err
	}
	u, o, err := parseURL(rawURL)
	if err != nil {
		return Target{}, err
	}
	escaped := u.EscapedPath()
	if u.RawPath != "" && u.RawPath != escaped { // net/url escapes anew, and %2F becomes a slash
		return Target{}, errors.New("its path has characters that must be percent-encoded")
	}
	path, err := cleanPath(escaped)
	if err != nil {
		return Target{}, err
	}
	return Target{Method: method, Scheme: o.scheme, Host: o.host, Port: o.port, Path: path, query: u.RawQuery}, nil
}

// String returns the URL without its query, which may hold what must not be in a log.
func (t Target) String() string {
	t.query = ""
	return t.URL()
}

// URL returns the whole URL.
func (t Target) URL() string { return t.url().String() }

func (t Target) url() *url.URL {
	plain, _ := url.PathUnescape(t.Path) // cannot fail: the path went through url.Parse
	return &url.URL{Scheme: t.Scheme, Host: t.origin().authority(), Path: plain, RawPath: t.Path, RawQuery: t.query}
}

// Origin returns the origin as a rule states it (RFC 6454, 6.2).
func (t Target) Origin() string { return t.origin().String() }

func (t Target) origin() origin { return origin{t.Scheme, t.Host, t.Port} }

// checkMethod refuses what is not a method of upper-case letters. CONNECT would
// make a tunnel, and TRACE returns the request's headers, secrets included.
func checkMethod(m string) error {
	switch {
	case len(m) > 32 || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
		return errors.New("its method is not a word of upper-case letters")
	case m == "" || m == "CONNECT" || m == "TRACE":
		return fmt.Errorf("the method %q is not allowed", m)
	}
	return nil
}

// An origin is the triple of RFC 6454 in canonical form: equal origins are
// equal values.
type origin struct {
	scheme, host string
	port         int
}

func (o origin) String() string { return o.scheme + "://" + o.authority() }

// authority is host and port as in a URL: without the port that the scheme implies.
func (o origin) authority() string {
	if o.port != schemePort(o.scheme) {
		return net.JoinHostPort(o.host, strconv.Itoa(o.port))
	}
	if strings.Contains(o.host, ":") {
		return "[" + o.host + "]"
	}
	return o.host
}

func schemePort(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// parseOrigin reads a URL that is an origin and nothing more.
func parseOrigin(raw string) (origin, error) {
	if strings.Contains(raw, "*") {
		return origin{}, fmt.Errorf("origin %q: wildcards are not allowed, because the names below a domain can have different owners: list each host", raw)
	}
	u, o, err := parseURL(raw)
	if err != nil {
		return origin{}, fmt.Errorf("origin %q: %w", raw, err)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return origin{}, fmt.Errorf("origin %q: it is scheme, host and port alone: %s", raw, o)
	}
	return o, nil
}

func parseURL(raw string) (*url.URL, origin, error) {
	if err := checkText(raw); err != nil {
		return nil, origin{}, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, origin{}, errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, origin{}, errors.New("its scheme is neither http nor https")
	}
	if u.User != nil {
		return nil, origin{}, errors.New("it holds a user name or password; send them in a header")
	}
	host, err := canonicalHost(u)
	if err != nil {
		return nil, origin{}, err
	}
	o := origin{u.Scheme, host, schemePort(u.Scheme)}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return nil, origin{}, errors.New("its port is not a number from 1 to 65535")
		}
		o.port = int(n)
	}
	return u, o, nil
}

// checkText refuses what is never part of a URL. Some programs read a backslash as a slash.
func checkText(raw string) error {
	if len(raw) > maxURL {
		return fmt.Errorf("its URL is longer than %d bytes", maxURL)
	}
	if strings.Contains(raw, placeholderStart) {
		return errors.New("its URL has a secret or the placeholder of one; put the secret into the value of a header")
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c > '~' || c == '\\' {
			return fmt.Errorf("its URL holds the byte %#02x; write %%%02X (in a host: its ASCII form, xn--...)", c, c)
		}
	}
	return nil
}

// canonicalHost returns the one spelling of u's host.
func canonicalHost(u *url.URL) (string, error) {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.HasPrefix(u.Host, "[") {
		a, err := netip.ParseAddr(name)
		if err != nil || a.Zone() != "" {
			return "", errors.New("its host is not an IPv6 address without zone")
		}
		return a.Unmap().String(), nil
	}
	if name == "" || len(name) > maxHost {
		return "", fmt.Errorf("its host is empty or longer than %d bytes", maxHost)
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if l == "" || len(l) > maxLabel || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || l[0] == '-' || l[len(l)-1] == '-' {
			return "", errors.New("its host is not a name in ASCII (xn--... for others)")
		}
	}
	if !isNumber(labels[len(labels)-1]) {
		return name, nil
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return "", errors.New("its host is a number; an IPv4 address is written as four decimal numbers")
	}
	return a.String(), nil
}

// isNumber tells whether resolvers take a host that ends in this label for an
// IPv4 address in decimal, octal or hex (WHATWG URL, "ends in a number").
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// cleanPath returns the one spelling of an escaped path: without plain dot
// segments, with escapes in upper case, and none of them of an unreserved
// character (RFC 3986, 6.2.2). It refuses a path that servers read in another way
// than it is judged. The result begins with a slash.
func cleanPath(escaped string) (string, error) {
	in := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	var out []string
	for i, s := range in {
		last := i == len(in)-1
		switch s {
		case "..":
			out = out[:max(0, len(out)-1)]
		case ".":
		case "":
			if !last {
				return "", errors.New("its path has an empty segment: write one slash")
			}
			out = append(out, "")
			continue
		default:
			if err := checkSegment(s); err != nil {
				return "", err
			}
			out = append(out, respell(s))
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/"), nil
}

// escapedLetter is the escape of an ASCII letter or digit.
var escapedLetter = regexp.MustCompile(`%(3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])`)

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// respell returns a segment, whose escapes are whole, in its one spelling.
func respell(segment string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(segment, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		plain, _ := url.PathUnescape("%" + rest[:2])
		if strings.Contains(unreserved, plain) {
			b.WriteString(plain)
		} else {
			b.WriteString("%" + strings.ToUpper(rest[:2]))
		}
		segment = rest[2:]
	}
}

// checkSegment refuses a segment in which some server may see a dot segment, an
// empty one or a control character: after decoding it again, taking a backslash
// for a slash, or cutting off the parameters behind a semicolon. It also refuses a
// letter or digit that is escaped on top of an escape, which no encoder does.
func checkSegment(s string) error {
	for i := range maxDecodes {
		if strings.ContainsAny(s[:1], `/\;`) {
			return errors.New("its path hides an empty segment")
		}
		for part := range strings.FieldsFuncSeq(s, isSlash) {
			if name, _, _ := strings.Cut(part, ";"); name == "." || name == ".." {
				return errors.New("its path hides a dot segment")
			}
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errors.New("its path hides a control character")
		}
		if i > 0 && escapedLetter.MatchString(s) {
			return errors.New("its path hides a letter or digit")
		}
		plain, err := url.PathUnescape(s)
		if err != nil || plain == s {
			return nil
		}
		s = plain
	}
	return fmt.Errorf("its path is escaped %d times over", maxDecodes)
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// Names returns the names in the path as the most lenient servers read it: decoded
// as often as they are escaped, split at escaped slashes and backslashes too, without
// the parameters behind a semicolon.
func (t Target) Names() []string {
	names := []string{}
	for _, s := range segments(t.Path) {
		for range maxDecodes {
			if plain, err := url.PathUnescape(s); err == nil {
				s = plain
			}
		}
		for part := range strings.FieldsFuncSeq(s, isSlash) {
			if name, _, _ := strings.Cut(part, ";"); name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// segments returns the decoded segments of an escaped, clean path. A slash at
// its end makes no segment.
func segments(path string) []string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil
	}
	all := strings.Split(path, "/")
	for i, s := range all {
		if plain, err := url.PathUnescape(s); err == nil {
			all[i] = plain
		}
	}
	return all
}
