package extism

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// A Version is a convention by which a plug-in offers tools.
type Version int

const (
	V1 Version = 1 // call and describe, of mcp.run and of hyper-mcp's version 1
	V2 Version = 2 // call_tool and list_tools, of hyper-mcp's version 2
)

// Detect returns the convention that a plug-in follows, by the functions that it
// exports. As in hyper-mcp, the older one goes first.
func Detect(exports func(name string) bool) (Version, bool) {
	for _, v := range []Version{V1, V2} {
		if exports(v.List()) && exports(v.Call()) {
			return v, true
		}
	}
	return 0, false
}

// List returns the name of the function that lists the tools.
func (v Version) List() string {
	if v == V1 {
		return "describe"
	}
	return "list_tools"
}

// Call returns the name of the function that calls a tool.
func (v Version) Call() string {
	if v == V1 {
		return "call"
	}
	return "call_tool"
}

const (
	maxList   = 1 << 20  // bytes; schemas of some hundred tools
	maxTools  = 256      // in a list
	maxResult = 64 << 20 // bytes, as much as the default heap
)

// requestContext is what a plug-in of version 2 learns of the request of MCP:
// nothing, for a call is not always one of a client. The id is required.
const requestContext = `"context":{"id":1,"_meta":{}}`

// ListRequest returns the input of the function that lists the tools.
func ListRequest(v Version) []byte {
	if v == V1 {
		return nil
	}
	return []byte("{" + requestContext + "}")
}

// Request returns the input of the function that calls a tool. args is a JSON
// object, passed on byte for byte; no args mean {}.
func Request(v Version, tool string, args []byte) ([]byte, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	if !isObject(args) || !utf8.Valid(args) {
		return nil, fmt.Errorf("extism: call %q: the arguments are not a JSON object", tool)
	}
	name, _ := json.Marshal(tool) // a string always marshals
	head, tail := `{"request":`, ","+requestContext+"}"
	if v == V1 {
		head, tail = `{"params":`, "}"
	}
	return bytes.Join([][]byte{[]byte(head), []byte(`{"name":`), name, []byte(`,"arguments":`), args, []byte("}"), []byte(tail)}, nil), nil
}

// A Tool is the definition of a tool, with the members that MCP's tools/list
// gives it. All of it is the plug-in's own claim. Names are not checked.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`            // a JSON object
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // a JSON object, or absent
	Annotations  json.RawMessage `json:"annotations,omitempty"`  // a JSON object, or absent
}

// ParseTools reads the output of the function that lists the tools. Both
// conventions have the same: MCP's ListToolsResult, in one page. A tool without
// an inputSchema takes any object; members that are null are absent, and others
// are dropped.
func ParseTools(v Version, b []byte) ([]Tool, error) {
	var list struct {
		Tools      []Tool `json:"tools"`
		NextCursor string `json:"nextCursor"`
	}
	if err := parse(b, maxList, &list); err != nil {
		return nil, fmt.Errorf("extism: read the output of %s: %w", v.List(), err)
	}
	if list.NextCursor != "" {
		return nil, fmt.Errorf("extism: the output of %s is one page of several: only one is supported", v.List())
	}
	if n := len(list.Tools); n == 0 || n > maxTools {
		return nil, fmt.Errorf("extism: the output of %s has %d tools; it must have 1 to %d", v.List(), n, maxTools)
	}
	for i := range list.Tools {
		if err := list.Tools[i].tidy(); err != nil {
			return nil, fmt.Errorf("extism: the output of %s: tool %.200q: %w", v.List(), list.Tools[i].Name, err)
		}
	}
	return list.Tools, nil
}

func (t *Tool) tidy() error {
	if isNull(t.InputSchema) {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	for name, member := range map[string]*json.RawMessage{"inputSchema": &t.InputSchema, "outputSchema": &t.OutputSchema, "annotations": &t.Annotations} {
		if isNull(*member) {
			*member = nil
		} else if !isObject(*member) {
			return fmt.Errorf("%s is not a JSON object", name)
		}
	}
	return nil
}

// A Result is the result of a tool; its JSON is MCP's CallToolResult.
type Result struct {
	Content           []Content       `json:"content"` // never nil
	IsError           bool            `json:"isError,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"` // a JSON object, or absent
	Meta              json.RawMessage `json:"_meta,omitempty"`             // a JSON object, or absent
}

// A Content is a part of the content of a result, by its members. One is type:
// text, image, audio, resource or resource_link, with the members that MCP
// requires for it.
type Content map[string]json.RawMessage

// contents are the types of content and, of each, the members that it must
// have (MCP 2025-11-25, ContentBlock).
var contents = map[string][]string{
	"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"},
	"resource": {"resource"}, "resource_link": {"name", "uri"},
}

// ParseResult reads the output of the function that calls a tool. Both
// conventions have the same: MCP's CallToolResult. Members that are null, which
// some kits write, are absent.
func ParseResult(v Version, b []byte) (Result, error) {
	var r Result
	if err := parse(b, maxResult, &r); err != nil {
		return Result{}, fmt.Errorf("extism: read the output of %s: %w", v.Call(), err)
	}
	if r.Content == nil {
		r.Content = []Content{}
	}
	for i, c := range r.Content {
		if err := c.tidy(); err != nil {
			return Result{}, fmt.Errorf("extism: the output of %s: content %d: %w", v.Call(), i, err)
		}
	}
	for name, member := range map[string]*json.RawMessage{"structuredContent": &r.StructuredContent, "_meta": &r.Meta} {
		if isNull(*member) {
			*member = nil
		} else if !isObject(*member) {
			return Result{}, fmt.Errorf("extism: the output of %s: %s is not a JSON object", v.Call(), name)
		}
	}
	return r, nil
}

func (c Content) tidy() error {
	for name, member := range c {
		if isNull(member) {
			delete(c, name)
		}
	}
	var kind string
	if err := json.Unmarshal(c["type"], &kind); err != nil {
		return errors.New("it has no type")
	}
	required, ok := contents[kind]
	if !ok {
		return fmt.Errorf("%.20q is not a content type of MCP", kind)
	}
	for _, name := range required {
		want := byte('"')
		if name == "resource" {
			want = '{'
		}
		if member := c[name]; len(member) == 0 || member[0] != want {
			return fmt.Errorf("it is of type %s and lacks %s", kind, name)
		}
	}
	return nil
}

// parse decodes one JSON value from the guest.
func parse(b []byte, most int, into any) error {
	switch {
	case len(b) > most:
		return fmt.Errorf("it has %d bytes, more than %d", len(b), most)
	case !utf8.Valid(b):
		return errors.New("it is not UTF-8")
	case !isObject(b):
		return errors.New("it is not a JSON object")
	}
	return json.Unmarshal(b, into)
}

func isNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

func isObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && json.Valid(b)
}
