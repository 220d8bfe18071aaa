package extism_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/internal/extism"
)

func TestDetect(t *testing.T) {
	tests := map[string]struct {
		exports string
		want    extism.Version
	}{
		"a servlet":                      {"call describe memory", extism.V1},
		"a plug-in of hyper-mcp's today": {"call_tool list_tools complete", extism.V2},
		"both":                           {"call_tool list_tools call describe", extism.V1},
		"half of one":                    {"call list_tools", 0},
		"a plug-in of another kind":      {"count_vowels", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			exports := strings.Fields(tt.exports)
			got, ok := extism.Detect(func(name string) bool { return strings.Contains(" "+strings.Join(exports, " ")+" ", " "+name+" ") })
			if got != tt.want || ok != (tt.want != 0) {
				t.Errorf("got %d, %v, want %d", got, ok, tt.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	tests := map[string]struct {
		version extism.Version
		tool    string
		args    string
		want    string // the request; or, in the error
	}{
		"version 1":                   {extism.V1, "a", `{"n": 1e0}`, `{"params":{"name":"a","arguments":{"n": 1e0}}}`},
		"version 2":                   {extism.V2, "a", `{"n": 1e0}`, `{"request":{"name":"a","arguments":{"n": 1e0}},"context":{"id":1,"_meta":{}}}`},
		"no arguments":                {extism.V1, "a", "", `{"params":{"name":"a","arguments":{}}}`},
		"a name that must be quoted":  {extism.V1, "a\"\n", "", `{"params":{"name":"a\"\n","arguments":{}}}`},
		"a list as arguments":         {extism.V1, "a", "[]", "not a JSON object"},
		"arguments that end early":    {extism.V2, "a", "{", "not a JSON object"},
		"more than arguments":         {extism.V2, "a", `{}},"x":{`, "not a JSON object"},
		"arguments that are not text": {extism.V2, "a", "{\"a\":\"\xff\"}", "not a JSON object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := extism.Request(tt.version, tt.tool, []byte(tt.args))
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("err = %v, want %q", err, tt.want)
				}
				return
			}
			if string(b) != tt.want || !json.Valid(b) {
				t.Errorf("got  %s\nwant %s", b, tt.want)
			}
		})
	}
}

func TestParseTools(t *testing.T) {
	one := func(members string) string { return `{"tools":[{"name":"a"` + members + `}]}` }
	const least = `[{"name":"a","inputSchema":{"type":"object"}}]`
	tests := map[string]struct{ list, want string }{
		"all members":                    {one(`,"title":"T","description":"D","inputSchema":{"a":1},"outputSchema":{},"annotations":{"b":2}`), `[{"name":"a","title":"T","description":"D","inputSchema":{"a":1},"outputSchema":{},"annotations":{"b":2}}]`},
		"no schema":                      {one(""), least},
		"members that are null":          {one(`,"description":null,"inputSchema":null,"outputSchema":null,"annotations":null`), least},
		"members that are not known":     {one(`,"icons":[],"_meta":{}`), least},
		"the last page":                  {`{"nextCursor":null,"tools":[{"name":"a"}]}`, least},
		"a page":                         {`{"nextCursor":"x","tools":[{"name":"a"}]}`, "error: is one page of several"},
		"a schema in text":               {one(`,"inputSchema":"{}"`), `error: tool "a": inputSchema is not a JSON object`},
		"a boolean schema":               {one(`,"outputSchema":true`), `error: tool "a": outputSchema is not a JSON object`},
		"annotations in a list":          {one(`,"annotations":[]`), `error: tool "a": annotations is not a JSON object`},
		"no tools":                       {`{"tools":[]}`, "error: has 0 tools; it must have 1 to 256"},
		"too many tools":                 {`{"tools":[{}` + strings.Repeat(",{}", 256) + "]}", "error: has 257 tools"},
		"a name that is a number":        {`{"tools":[{"name":1}]}`, "error: read the output of describe"},
		"nothing":                        {"", "error: it is not a JSON object"},
		"a list":                         {"[]", "error: it is not a JSON object"},
		"what is not text":               {one(`,"title":"` + "\xff" + `"`), "error: it is not UTF-8"},
		"more than the schemas of a lot": {strings.Repeat(" ", 1<<20) + one(""), "error: it has 1048600 bytes, more than 1048576"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tools, err := extism.ParseTools(extism.V1, []byte(tt.list))
			compare(t, tools, err, tt.want)
		})
	}
}

func TestParseResult(t *testing.T) {
	content := func(c string) string { return `{"content":[` + c + `]}` }
	tests := map[string]struct{ result, want string }{
		"all members": {
			`{"content":[{"type":"text","text":"t"}],"isError":true,"structuredContent":{"a":1.0},"_meta":{"m":1}}`,
			`{"content":[{"text":"t","type":"text"}],"isError":true,"structuredContent":{"a":1.0},"_meta":{"m":1}}`,
		},
		"no members":                        {`{}`, `{"content":[]}`},
		"members that are null":             {`{"content":null,"isError":null,"structuredContent":null,"_meta":null}`, `{"content":[]}`},
		"null in content":                   {content(`{"type":"text","text":"t","data":null,"annotations":null}`), content(`{"text":"t","type":"text"}`)},
		"an image":                          {content(`{"type":"image","data":"AA==","mimeType":"image/png"}`), content(`{"data":"AA==","mimeType":"image/png","type":"image"}`)},
		"a resource":                        {content(`{"type":"resource","resource":{"uri":"u","text":"t"}}`), content(`{"resource":{"uri":"u","text":"t"},"type":"resource"}`)},
		"a link":                            {content(`{"type":"resource_link","uri":"u","name":"n"}`), content(`{"name":"n","type":"resource_link","uri":"u"}`)},
		"content that is null":              {content("null"), "error: content 0: it has no type"},
		"content without a type":            {content(`{"type":"text","text":"t"},{"text":"t"}`), "error: content 1: it has no type"},
		"content of a type that is none":    {content(`{"type":"video"}`), `error: content 0: "video" is not a content type of MCP`},
		"text without text":                 {content(`{"type":"text","text":null}`), "error: content 0: it is of type text and lacks text"},
		"text that is a number":             {content(`{"type":"text","text":1}`), "error: content 0: it is of type text and lacks text"},
		"an image without its type":         {content(`{"type":"image","data":""}`), "error: it is of type image and lacks mimeType"},
		"a resource in text":                {content(`{"type":"resource","resource":"{}"}`), "error: it is of type resource and lacks resource"},
		"structured content that is a list": {`{"structuredContent":[]}`, "error: structuredContent is not a JSON object"},
		"an error that is text":             {`{"isError":"yes"}`, "error: read the output of call_tool"},
		"plain text":                        {"done", "error: it is not a JSON object"},
		"two results":                       {"{}{}", "error: it is not a JSON object"},
		"what is not text":                  {content(`{"type":"text","text":"` + "\xff" + `"}`), "error: it is not UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := extism.ParseResult(extism.V2, []byte(tt.result))
			compare(t, res, err, tt.want)
		})
	}
}

// compare compares the JSON of got, or the error, with want.
func compare(t *testing.T, got any, err error, want string) {
	t.Helper()
	if part, ok := strings.CutPrefix(want, "error: "); ok {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("err = %v, want one with %q", err, part)
		}
		return
	}
	b, merr := json.Marshal(got)
	if err != nil || merr != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
}

// FuzzParse checks that what is accepted is JSON of the same meaning when it is
// written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a","inputSchema":{"a":[1e5]},"outputSchema":null}]}`))
	f.Add([]byte(`{"content":[{"type":"text","text":"\u00e9","x":null}],"isError":true,"structuredContent":{}}`))
	f.Add([]byte(`{"content":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tools, err := extism.ParseTools(extism.V2, b); err == nil {
			again(t, map[string]any{"tools": tools}, func(b []byte) (any, error) {
				tools, err := extism.ParseTools(extism.V2, b)
				return map[string]any{"tools": tools}, err
			})
		}
		if res, err := extism.ParseResult(extism.V2, b); err == nil {
			again(t, res, func(b []byte) (any, error) { return extism.ParseResult(extism.V2, b) })
		}
		if in, err := extism.Request(extism.V1, fmt.Sprintf("%q", b), b); err == nil && !json.Valid(in) {
			t.Errorf("the request is not JSON: %s", in)
		}
	})
}

func again(t *testing.T, first any, parse func([]byte) (any, error)) {
	t.Helper()
	written, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := parse(written)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	if b, err := json.Marshal(second); err != nil || string(b) != string(written) {
		t.Errorf("written %s, then %s, %v", written, b, err)
	}
}
