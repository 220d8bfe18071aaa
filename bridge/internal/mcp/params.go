package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// headerKeyword marks a parameter in a tool's input schema that is sent in a header
	// too, so that who stands between can route by it (MCP 2026-07-28,
	// basic/transports/streamable-http, "Custom Headers from Tool Parameters").
	headerKeyword = "x-mcp-header"
	// headerParam begins the names of those headers.
	headerParam = "Mcp-Param-"
	// maxInteger is the largest integer that all JSON parsers keep.
	maxInteger = 1<<53 - 1
)

// A ParamHeader is a parameter of a tool that goes into a header of HTTP.
type ParamHeader struct {
	path []string // of names of properties
	name string   // of the header, in its canonical form
}

// ParamHeaders returns what a tool's input schema wants in headers. The error says why
// clients have to leave out the tool.
func ParamHeaders(schema gate.Doc) ([]ParamHeader, error) {
	w := headerWalk{names: make(map[string]bool)}
	if !schema.Get(headerKeyword).IsZero() {
		return nil, errors.New(headerKeyword + " is allowed only in a property")
	}
	err := w.schema(schema, nil)
	return w.found, err
}

// OfferedHeaders returns what the definition of a tool, as clients see it, wants in
// headers. One that clients have to leave out wants nothing.
func OfferedHeaders(t *gate.Tool) []ParamHeader {
	if !bytes.Contains(t.Definition.Raw(), []byte(headerKeyword)) {
		return nil
	}
	wanted, err := ParamHeaders(t.Definition.Get("inputSchema"))
	if err != nil {
		return nil
	}
	return wanted
}

type headerWalk struct {
	found []ParamHeader
	names map[string]bool // taken
}

// schema looks through a schema that a chain of properties leads to.
func (w *headerWalk) schema(schema gate.Doc, path []string) error {
	for keyword, value := range schema.Members() {
		if keyword != "properties" {
			if misplaced(keyword, value) {
				return fmt.Errorf("%s is inside %s, where no header can be declared", headerKeyword, QuoteName(keyword))
			}
			continue
		}
		for name, property := range value.Members() {
			at := append(slices.Clone(path), name)
			if err := w.property(property, at); err != nil {
				return fmt.Errorf("property %s: %w", QuoteName(strings.Join(at, ".")), err)
			}
			if err := w.schema(property, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *headerWalk) property(property gate.Doc, path []string) error {
	named := property.Get(headerKeyword)
	if named.IsZero() {
		return nil
	}
	if !slices.Contains([]string{"string", "integer", "boolean"}, property.Get("type").Text()) {
		return errors.New(headerKeyword + " needs the type string, integer or boolean")
	}
	if named.Kind() != doc.String || !isToken(named.Text()) {
		return errors.New(headerKeyword + " is not a name of a header")
	}
	name := http.CanonicalHeaderKey(headerParam + named.Text())
	if w.names[strings.ToLower(name)] {
		return fmt.Errorf("%s has the header %q, which another property has already", headerKeyword, named.Text())
	}
	w.names[strings.ToLower(name)] = true
	w.found = append(w.found, ParamHeader{path, name})
	return nil
}

// misplaced reports whether the value of a keyword marks something, where no mark may be.
func misplaced(keyword string, value gate.Doc) bool {
	if keyword == headerKeyword || slices.Contains([]string{"enum", "const", "default", "examples"}, keyword) {
		return false // judged with its property, or data
	}
	for v := range value.Elements() {
		if marks(v) {
			return true
		}
	}
	if !slices.Contains(SchemaMaps, keyword) {
		return marks(value)
	}
	for _, v := range value.Members() {
		if marks(v) {
			return true
		}
	}
	return false
}

func marks(schema gate.Doc) bool {
	for keyword, value := range schema.Members() {
		if keyword == headerKeyword || misplaced(keyword, value) {
			return true
		}
	}
	return false
}

// isToken reports whether s can name a header (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r >= 0x7f || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// of returns the value of the parameter, and false if there is none: absent and null
// are none.
func (p ParamHeader) of(args gate.Doc) (gate.Doc, bool) {
	for _, name := range p.path {
		args = args.Get(name)
	}
	return args, !args.IsZero() && args.Kind() != doc.Null
}

// ParamsInHeaders returns the headers of a call with these arguments.
func ParamsInHeaders(wanted []ParamHeader, args gate.Doc) http.Header {
	if len(wanted) == 0 {
		return nil
	}
	h := make(http.Header, len(wanted))
	for _, p := range wanted {
		if v, ok := p.of(args); ok {
			if text, ok := headerText(v); ok {
				h[p.name] = []string{EncodeHeader(text)}
			}
		}
	}
	return h
}

// headerText returns a value as headers have it; false for one that they cannot have.
func headerText(v gate.Doc) (string, bool) {
	switch v.Kind() {
	case doc.String:
		return v.Text(), true
	case doc.Bool:
		return v.String(), true
	case doc.Number:
		n, ok := Integer(v.String())
		return strconv.FormatInt(n, 10), ok
	default:
		return "", false
	}
}

// Integer reads an integer, however it is written.
func Integer(s string) (int64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != float64(int64(f)) || f > maxInteger || f < -maxInteger {
		return 0, false
	}
	return int64(f), true
}

// The form of a value that a header cannot hold as it is.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeader returns a value as a header can hold it ("Value Encoding"). An empty one
// is encoded, too: some who stand between drop empty headers.
func EncodeHeader(s string) string {
	plain := s != "" && !hasUnsafe(s) && strings.Trim(s, " \t") == s &&
		!(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

func hasUnsafe(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// DecodeHeader is the reverse of EncodeHeader.
func DecodeHeader(s string) (string, error) {
	if hasUnsafe(strings.ReplaceAll(s, "\t", " ")) {
		return "", errors.New("has characters that a header must not have")
	}
	inside, ok := strings.CutPrefix(s, encodedPrefix)
	if inside, ok2 := strings.CutSuffix(inside, encodedSuffix); ok && ok2 {
		b, err := base64.StdEncoding.DecodeString(inside)
		if err != nil {
			return "", errors.New("is not valid base64")
		}
		return string(b), nil
	}
	return s, nil
}

// CheckParamHeaders holds the headers of a call against its arguments ("Server
// Behavior for Custom Headers").
func CheckParamHeaders(wanted []ParamHeader, args gate.Doc, h http.Header) error {
	for _, p := range wanted {
		if err := p.check(args, h[p.name]); err != nil {
			return fmt.Errorf("header mismatch: %s %w", p.name, err)
		}
	}
	return nil
}

func (p ParamHeader) check(args gate.Doc, values []string) error {
	v, given := p.of(args)
	switch {
	case !given && len(values) == 0:
		return nil
	case !given:
		return errors.New("is in the request, but the tool's arguments have no value for it")
	case len(values) != 1:
		return errors.New("must be in the request exactly once, because the tool's arguments have a value for it")
	}
	said, err := DecodeHeader(values[0])
	if err != nil {
		return err
	}
	text, ok := headerText(v)
	if v.Kind() == doc.Number && ok {
		n, isNumber := Integer(said)
		said, ok = strconv.FormatInt(n, 10), isNumber
	}
	if !ok || said != text {
		return errors.New("differs from the value in the tool's arguments; send the same value in the header and the arguments")
	}
	return nil
}

// RequestKey is the id of a request as a key: what is equal as JSON is equal.
func RequestKey(id gate.Doc) string {
	if id.Kind() == doc.String {
		return `"` + id.Text()
	}
	return id.String()
}

// SessionName names a session without giving away the id by which it is
// reached, which is as good as a password.
func SessionName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
