package policy

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// The built-in functions of the packs paths and urls. They are Go because Rego
// would need a regular expression for each trick with a name, and one more for
// each that nobody had thought of; here what is not known to be plain is refused.
// They are functions of their arguments, and linear in their length.
var (
	pathDecl = &rego.Function{
		Name: "wasmgate.path_within",
		Decl: types.NewFunction(types.Args(types.A, types.A), types.B),
	}
	urlDecl = &rego.Function{
		Name: "wasmgate.url",
		Decl: types.NewFunction(types.Args(types.A), types.NewObject(nil, types.NewDynamicProperty(types.S, types.A))),
	}
)

// declared returns the functions that rules have beside OPA's.
func declared() []*ast.Builtin {
	functions := []*rego.Function{rateLookup.decl, pathDecl, urlDecl}
	for _, l := range grantLookups {
		functions = append(functions, l.decl)
	}
	var all []*ast.Builtin
	for _, f := range functions {
		all = append(all, &ast.Builtin{Name: f.Name, Decl: f.Decl})
	}
	return all
}

// plainBuiltins gives an evaluation the functions that need no data.
func plainBuiltins(r *rego.Rego) {
	rego.Function2(pathDecl, func(_ rego.BuiltinContext, path, root *ast.Term) (*ast.Term, error) {
		p, ok1 := path.Value.(ast.String)
		dir, ok2 := root.Value.(ast.String)
		return ast.BooleanTerm(ok1 && ok2 && pathWithin(string(p), string(dir))), nil
	})(r)
	rego.Function1(urlDecl, func(_ rego.BuiltinContext, text *ast.Term) (*ast.Term, error) {
		s, ok := text.Value.(ast.String)
		if !ok {
			return nil, nil
		}
		u, ok := parseURL(string(s))
		if !ok {
			return nil, nil // undefined
		}
		return u.term(), nil
	})(r)
}

// maxName bounds a path or URL that is looked at, in bytes; PATH_MAX is this on
// Linux. A longer one is not plain.
const maxName = 4096

// pathWithin reports whether path is root or lies below it. Both are absolute; root
// may end in a separator.
func pathWithin(path, root string) bool {
	if trimmed := strings.TrimRight(root, `/\`); len(root)-len(trimmed) == 1 && trimmed != "" && !drive.MatchString(trimmed) {
		root = trimmed
	}
	p, ok1 := canonicalPath(path)
	r, ok2 := canonicalPath(root)
	return ok1 && ok2 && (p == r || strings.HasPrefix(p, strings.TrimSuffix(r, "/")+"/"))
}

var (
	drive   = regexp.MustCompile(`^[A-Za-z]:$`)
	percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	short   = regexp.MustCompile(`~[0-9]`) // PROGRA~1, the other name of a file on Windows
)

// looksLike are characters that some systems and libraries turn into / \ or .
const looksLike = "\u2024\u2025\u2044\u2215\u29f5\u29f8\ufe52\ufe68\uff0e\uff0f\uff3c"

// hidden reports whether a character is not simply shown: a control, a mark of
// direction, white space other than a space.
func hidden(r rune) bool { return !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) }

// canonicalPath returns a path with / as its separator, and false unless it is
// absolute and has one reading on every system: /a/b, or C:\a\b with a drive.
func canonicalPath(s string) (string, bool) {
	if s == "" || len(s) > maxName || !utf8.ValidString(s) || percent.MatchString(s) || strings.ContainsAny(s, looksLike) ||
		strings.ContainsFunc(s, hidden) {
		return "", false
	}
	volume := ""
	if len(s) >= 2 && drive.MatchString(s[:2]) {
		volume, s = strings.ToUpper(s[:2]), s[2:]
		if strings.Contains(s, `\`) == strings.Contains(s, "/") || strings.ContainsAny(s, `<>:"|?*`) || short.MatchString(s) {
			return "", false // no separator, or both
		}
		s = strings.ReplaceAll(s, `\`, "/")
	}
	if s[0] != '/' || strings.Contains(s, `\`) {
		return "", false
	}
	if s == "/" {
		return volume + s, true
	}
	for segment := range strings.SplitSeq(s[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", false
		}
		if volume != "" && strings.TrimRight(segment, ". ") != segment { // Windows leaves them out
			return "", false
		}
	}
	return volume + s, true
}

// plainURL is a URL that everybody reads alike.
type plainURL struct {
	scheme, host, path, query string
	port                      int
}

func (u plainURL) term() *ast.Term {
	host := u.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	origin := u.scheme + "://" + host
	if ports[u.scheme] != u.port {
		origin += ":" + strconv.Itoa(u.port)
	}
	return ast.ObjectTerm(
		pair("scheme", ast.StringTerm(u.scheme)), pair("host", ast.StringTerm(u.host)), pair("port", ast.IntNumberTerm(u.port)),
		pair("path", ast.StringTerm(u.path)), pair("query", ast.StringTerm(u.query)), pair("origin", ast.StringTerm(origin)),
	)
}

// ports are the schemes whose URLs are read here, and their own ports.
var ports = map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443}

var (
	urlPattern   = regexp.MustCompile(`^([A-Za-z]+)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?(/[^?#]*)?(?:\?([^#]*))?(?:#.*)?$`)
	labelPattern = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numeric      = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`) // what a browser takes for the end of an IPv4 address
	badEscape    = regexp.MustCompile(`(?i)%(?:$|[^0-9a-f]|[0-9a-f](?:$|[^0-9a-f])|[01][0-9a-f]|7f|2f|5c|25[0-9a-f]{2})`)
)

// parseURL reads an absolute URL, and returns false unless it is one that no parser
// can take for another: of printable ASCII, without user, with a host in one of the
// forms of RFC 3986 that has no other (no octal address, no dot at its end), and a
// path without . and .. however they are written. The scheme and the host come in
// lower case.
func parseURL(s string) (plainURL, bool) {
	if len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"<>^`{|}", r) }) {
		return plainURL{}, false
	}
	m := urlPattern.FindStringSubmatch(s)
	if m == nil || badEscape.MatchString(m[4]) {
		return plainURL{}, false
	}
	u := plainURL{scheme: strings.ToLower(m[1]), path: m[4], query: m[5]}
	u.port = ports[u.scheme]
	if u.port == 0 || !plainPath(u.path) {
		return plainURL{}, false
	}
	if m[3] != "" {
		u.port, _ = strconv.Atoi(m[3]) // five digits at most
	}
	if u.path == "" {
		u.path = "/"
	}
	var ok bool
	u.host, ok = plainHost(strings.ToLower(m[2]))
	return u, ok && u.port < 1<<16
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

// plainPath reports whether a URL's path is text of which no segment is . or ..,
// even where it is escaped or has parameters (/..;a=b/).
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
