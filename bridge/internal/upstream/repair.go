package upstream

import (
	"bytes"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// optionalMembers are those of results, contents and completions that MCP lets be absent, and that
// servers write as null instead, which strict clients refuse (MCP 2025-11-25, schema).
var optionalMembers = []string{
	"structuredContent", "isError", "_meta", "annotations", "mimeType", "title", "description", "size", "icons",
	"audience", "priority", "lastModified", "total", "hasMore",
}

// objects are optional members that are objects in MCP: others, such as PHP's empty list, count as
// absent.
var objects = []string{"_meta", "annotations"}

// repaired returns a result without the optional members that are null or no object, and with texts
// that are strings. What a tool's structuredContent and unknown members hold is the tool's own, and
// stays.
func repaired(d gate.Doc) gate.Doc {
	if !odd(d.Raw()) { // as nearly always
		return d
	}
	return gate.MustDoc(string(appendRepaired(nil, d)))
}

// odd reports whether a result may have something to repair.
func odd(raw []byte) bool {
	if bytes.Contains(raw, []byte("null")) {
		return true
	}
	return misses(raw, `"text"`, '"') || misses(raw, `"_meta"`, '{') || misses(raw, `"annotations"`, '{')
}

// misses reports whether a member of that name, in quotes, has a value that does not begin so.
func misses(raw []byte, name string, first byte) bool {
	for rest := raw; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return false
		}
		rest = bytes.TrimLeft(rest[i+len(name):], " \t\r\n")
		value, member := bytes.CutPrefix(rest, []byte(":"))
		if value = bytes.TrimLeft(value, " \t\r\n"); member && len(value) > 0 && value[0] != first {
			return true
		}
	}
}

func appendRepaired(b []byte, d gate.Doc) []byte {
	switch d.Kind() {
	case doc.Array:
		b = append(b, '[')
		first := true
		for v := range d.Elements() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendRepaired(b, v)
		}
		return append(b, ']')
	case doc.Object:
		b = append(b, '{')
		first := true
		for name, v := range d.Members() {
			if v.Kind() == doc.Null && slices.Contains(optionalMembers, name) || v.Kind() != doc.Object && slices.Contains(objects, name) {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(doc.AppendString(b, name), ':')
			switch {
			case slices.Contains(holdContents, name):
				b = appendRepaired(b, v)
			case name == "text" && v.Kind() == doc.Null && d.Get("type").Text() == "text":
				b = append(b, `""`...)
			case name == "text" && v.Kind() != doc.String && d.Get("type").Text() == "text":
				b = doc.AppendString(b, v.String())
			default:
				b = append(b, v.Raw()...)
			}
		}
		return append(b, '}')
	}
	return append(b, d.Raw()...)
}

// holdContents are the members of results below which MCP says what there is.
var holdContents = []string{"content", "contents", "messages", "resource", "annotations", "completion"}

// contentOf returns the content of a tool's result as the list that it is to be: servers write
// nothing, one block or a text in its place. It is nil if it is none of these.
func contentOf(d gate.Doc) []byte {
	switch content := d.Get("content"); content.Kind() {
	case doc.Array:
		return content.Raw()
	case doc.Absent, doc.Null:
		return []byte("[]")
	case doc.Object:
		if content.Get("type").Kind() == doc.String {
			return slices.Concat([]byte("["), content.Raw(), []byte("]"))
		}
	case doc.String:
		return mcp.MustJSON([]any{map[string]string{"type": "text", "text": content.Text()}})
	}
	return nil
}
