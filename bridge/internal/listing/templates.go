package listing

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

const (
	// maxURI bounds a URI, and a template of URIs, in bytes.
	maxURI = 8 << 10
	// maxVariables bounds those of one template.
	maxVariables = 64
)

// Template is a URI template (RFC 6570, levels 1 to 3, and {name*} at the end for a path), read
// backwards: it says whether a URI could have been made by it.
type Template struct {
	Prefix    string // the literal that it begins with
	Variables []string
	match     *regexp.Regexp
}

var (
	expression = regexp.MustCompile(`\{([+#./;?&]?)([^{}]*)\}`)
	variable   = regexp.MustCompile(`^[A-Za-z0-9_.%]+$`)
)

// NewTemplate reads a template. It returns an error for a template beyond level 3, because matching
// it would be guesswork.
func NewTemplate(text string) (*Template, error) {
	if err := CheckURI(text); err != nil {
		return nil, err
	}
	prefix, _, _ := strings.Cut(text, "{")
	t := &Template{Prefix: prefix}
	pattern, last := `\A`, 0
	for _, at := range expression.FindAllStringSubmatchIndex(text, -1) {
		names, operator := strings.Split(text[at[4]:at[5]], ","), text[at[2]:at[3]]
		if path, exploded := strings.CutSuffix(names[0], "*"); exploded && operator == "" && len(names) == 1 && at[1] == len(text) {
			names, operator = []string{path}, "+" // as FastMCP means it
		}
		for _, name := range names {
			if !variable.MatchString(name) {
				return nil, fmt.Errorf("the expression %.100q is not one of RFC 6570, levels 1 to 3", text[at[0]:at[1]])
			}
		}
		pattern += regexp.QuoteMeta(text[last:at[0]]) + expanded(operator, names)
		t.Variables = append(t.Variables, names...)
		last = at[1]
	}
	rest := text[last:]
	if strings.ContainsAny(text[:len(prefix)]+expression.ReplaceAllString(text, ""), "{}") {
		return nil, errors.New("it has a brace without its partner")
	}
	if len(t.Variables) > maxVariables { // none is a URI that stands for itself
		return nil, fmt.Errorf("a template has at most %d variables", maxVariables)
	}
	var err error
	t.match, err = regexp.Compile(pattern + regexp.QuoteMeta(rest) + `\z`)
	return t, err
}

// expanded returns a pattern for what an expression can come to (RFC 6570, section
// 3.2).
func expanded(operator string, names []string) string {
	const segment = `[^/?#]+`
	n := fmt.Sprint(len(names))
	switch operator {
	case "+":
		return `.+`
	case "#":
		return `(?:#.*)?`
	case ".":
		return `(?:\.[^/?#.]+){0,` + n + `}`
	case "/":
		return `(?:/[^/?#]+){0,` + n + `}`
	case ";":
		return `(?:;[^/?#;]+){0,` + n + `}`
	case "?":
		return `(?:\?[^#]*)?`
	case "&":
		return `(?:&[^#]*)?`
	default:
		return segment
	}
}

// Matches reports whether the template could have made a URI. One that climbs is
// none: a grant of what begins with file:///srv/ does not mean file:///srv/../etc.
// Neither is one with needless escapes, which no template makes and which a rule
// about file:///srv/private would not recognize in file:///srv/%70rivate.
func (t *Template) Matches(uri string) bool {
	return strings.HasPrefix(uri, t.Prefix) && t.match.MatchString(uri) && !climbs(uri) && !needless.MatchString(uri)
}

// Spellings returns the other ways in which a URI may be written: with letters beyond ASCII, and
// spaces, as they are or as escapes (RFC 6570, section 3.1; RFC 3987, section 3.1). Clients
// write one, and servers list the other.
func Spellings(uri string) (others []string) {
	plain := escapedLetters.ReplaceAllStringFunc(uri, func(escapes string) string {
		if letters, err := url.PathUnescape(escapes); err == nil && utf8.ValidString(letters) {
			return letters
		}
		return escapes
	})
	var escaped strings.Builder
	for _, b := range []byte(plain) {
		if b > ' ' && b < utf8.RuneSelf {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	for _, one := range []string{plain, escaped.String()} {
		if one != uri && !slices.Contains(others, one) {
			others = append(others, one)
		}
	}
	return others
}

// escapedLetters matches escapes of letters beyond ASCII, and of spaces.
var escapedLetters = regexp.MustCompile(`(?:%[89A-Fa-f][0-9A-Fa-f])+|%20`)

// needless matches an escape of an unreserved character (RFC 3986, section 2.3),
// also on top of other escapes.
var needless = regexp.MustCompile(`(?i)%(?:25)*(?:2[de]|3[0-9]|[46][1-9a-f]|5[0-9af]|7[0-9ae])`)

// maxEscapes bounds how often a URI may be escaped over and over.
const maxEscapes = 4

// climbs reports whether a URI has a dot segment (RFC 3986, section 5.2.4),
// however it is escaped.
func climbs(uri string) bool {
	for range maxEscapes {
		segments := strings.FieldsFunc(uri, func(r rune) bool { return strings.ContainsRune(`/\?#;&=`, r) })
		if slices.Contains(segments, "..") || slices.Contains(segments, ".") {
			return true
		}
		plain, err := url.PathUnescape(uri)
		if err != nil {
			return true
		}
		if plain == uri {
			return false
		}
		uri = plain
	}
	return true
}

// CheckURI refuses URIs, and templates of them, that cannot be shown for what they
// are. They are absolute (RFC 3986, section 4.3), which no name of a prompt is.
func CheckURI(uri string) error {
	if len(uri) > maxURI {
		return fmt.Errorf("its URI has more than %d bytes", maxURI)
	}
	if !mcp.URIScheme.MatchString(uri) {
		return errors.New("its URI has no scheme")
	}
	if len(uri) >= len(OpaqueScheme) && strings.EqualFold(uri[:len(OpaqueScheme)], OpaqueScheme) {
		return errors.New("its URI has the scheme wasmgate, which is reserved for the gateway")
	}
	return checkShown("its URI", uri)
}

// OpaqueScheme begins the URIs that the gateway makes. No server's URI does.
const OpaqueScheme = "wasmgate:"
