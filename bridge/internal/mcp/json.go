package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// MustJSON encodes what the gateway itself has made.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Without returns an object without the members of some names.
func Without(d gate.Doc, names ...string) gate.Doc {
	out := []byte{'{'}
	for name, v := range d.Members() {
		if slices.Contains(names, name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, MustJSON(name)...), ':'), v.Raw()...)
	}
	return gate.MustDoc(string(append(out, '}')))
}

// Stamp adds a member to the _meta of a result, unless it is there.
func Stamp(res gate.Doc, name string, value []byte) gate.Doc {
	return gate.MustDoc(string(AppendStamp(nil, res, name, value)))
}

// AppendStamp appends to b what [Stamp] returns.
func AppendStamp(b []byte, res gate.Doc, name string, value []byte) []byte {
	meta := res.Get("_meta")
	if meta.Kind() != doc.Object {
		meta = gate.Doc{}
	}
	if !meta.Get(name).IsZero() {
		return append(b, res.Raw()...)
	}
	return doc.AppendWith(res, b, "_meta", doc.AppendWith(meta, nil, name, value))
}

// WithMember adds a member to an object that the gateway has written; no value adds
// none. member is its name, as JSON, and the colon.
func WithMember(object []byte, member string, value []byte) []byte {
	if len(value) == 0 {
		return object
	}
	out := append(make([]byte, 0, len(object)+len(member)+len(value)+2), object[:len(object)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(append(out, member...), value...), '}')
}

// WithoutTask returns a result, or a server's question, without the name of the server's task: if
// its client knows of a task at all, it knows the gateway's.
func WithoutTask(d gate.Doc) gate.Doc {
	meta := d.Get("_meta")
	if meta.Get(MetaRelatedTask).IsZero() {
		return d
	}
	return d.With("_meta", Without(meta, MetaRelatedTask).Raw())
}

// IsEmpty reports whether an object has no members.
func IsEmpty(object gate.Doc) bool {
	for range object.Members() {
		return false
	}
	return true
}

// Clip returns the beginning of s, of at most n bytes.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Quote shortens foreign text for a log.
func Quote(b []byte) string {
	const most = 200
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// IsRPC reports whether a message says that it is one of JSON-RPC 2.0.
func IsRPC(message gate.Doc) bool {
	version := message.Get("jsonrpc")
	return string(version.Raw()) == `"2.0"` || version.Text() == "2.0" // the second if it has escapes
}

// QuoteName shows a name, with what is hidden in it made visible.
func QuoteName(name string) string {
	if len(name) > 2*MaxName {
		name = name[:2*MaxName]
	}
	q := fmt.Sprintf("%+q", name)
	if q == `"`+name+`"` {
		return name
	}
	return q
}

// CallParams returns the parameters of tools/call.
func CallParams(name string, args []byte) []byte {
	b := make([]byte, 0, len(name)+len(args)+32)
	b = append(append(b, `{"name":`...), MustJSON(name)...)
	b = append(append(b, `,"arguments":`...), args...)
	return append(b, '}')
}

// URIParams returns the parameters of a request about a resource.
func URIParams(uri string) []byte {
	return append(append([]byte(`{"uri":`), MustJSON(uri)...), '}')
}

// PeerCapabilities returns those of a client's capabilities by which servers ask it;
// absent if it has none.
func PeerCapabilities(all gate.Doc) (some gate.Doc) {
	found := make([]string, 0, 3)
	for _, name := range [...]string{"elicitation", "roots", "sampling"} {
		if all.Get(name).Kind() == doc.Object {
			found = append(found, name)
		}
	}
	if len(found) > 0 && len(found) == doc.Len(all) {
		return all // it was chosen before: of a session, which keeps no others
	}
	for _, name := range found {
		some = some.With(name, all.Get(name).Raw())
	}
	return some
}

// SchemaMaps are the members of a JSON Schema whose own members have names that the author
// chose.
var SchemaMaps = strings.Fields("properties patternProperties $defs definitions dependentSchemas")

// URIScheme begins a URI (RFC 3986, section 3.1).
var URIScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// MaxName bounds a tool's name at its server (MCP 2025-11-25, server/tools:
// 1 to 128 characters).
const MaxName = 128

// OneLine returns JSON without line breaks, which end an event, or a line.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	raw = bytes.Clone(raw) // between values: in texts they are escaped
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}
