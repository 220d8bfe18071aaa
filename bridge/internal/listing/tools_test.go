package listing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// listed returns an endpoint whose server lists the given definitions.
func listed(t testing.TB, server string, o options.Tools, defs ...string) *upstream.Endpoint {
	t.Helper()
	s := rig.NewScript(nil)
	s.List(strings.Join(defs, ","))
	cfg := s.Config(server)
	cfg.Tools = o
	e := rig.NewEndpoint(t, cfg)
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

func quarantined(e *upstream.Endpoint) (names []string) {
	for _, n := range e.Status().Notes {
		if n.Quarantined {
			names = append(names, n.Tool)
		}
	}
	return names
}

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 70)
	bare := rig.Options()
	bare.Bare = true
	tests := map[string]struct {
		options     options.Tools
		names       []string
		offered     []string
		quarantined []string
	}{
		"as they are":                       {rig.Options(), []string{"a", "B-1_c"}, []string{"s__a", "s__B-1_c"}, nil},
		"with characters that must not be":  {rig.Options(), []string{"a.b/c", "größe", "a b"}, []string{"s__a_b_c", "s__gr__e", "s__a_b"}, nil},
		"a clash with a legal name":         {rig.Options(), []string{"a.b", "a_b"}, []string{"s__a_b_" + rig.Digest(rig.Tool("a.b")), "s__a_b"}, nil},
		"a clash of two illegal names":      {rig.Options(), []string{"a.b", "a:b"}, []string{"s__a_b", "s__a_b_" + rig.Digest(rig.Tool("a:b"))}, nil},
		"a clash with what a clash becomes": {rig.Options(), []string{"a_b", "a_b_" + rig.Digest(rig.Tool("a.b")), "a.b"}, []string{"s__a_b", "s__a_b_" + rig.Digest(rig.Tool("a.b"))}, []string{"a.b"}},
		"too long for clients":              {rig.Options(), []string{long}, []string{"s__" + long[:54] + "_" + rig.Digest(rig.Tool(long))}, nil},
		"two that are long":                 {rig.Options(), []string{long, long + "x"}, []string{"s__" + long[:54] + "_" + rig.Digest(rig.Tool(long)), "s__" + long[:54] + "_" + rig.Digest(rig.Tool(long+"x"))}, nil},
		"bare":                              {bare, []string{"a", "a.b"}, []string{"a", "a_b"}, nil},
		"bare, in another server's clothes": {bare, []string{"files__read"}, []string{"s__files__read"}, nil},
		"listed twice":                      {rig.Options(), []string{"a", "a"}, []string{"s__a"}, nil},
		"no name":                           {rig.Options(), []string{"", "a"}, []string{"s__a"}, []string{""}},
		"too long for MCP":                  {rig.Options(), []string{strings.Repeat("x", 129)}, nil, []string{strings.Repeat("x", 129)}},
		"a zero width space":                {rig.Options(), []string{"a\u200b"}, nil, []string{`"a\u200b"`}},
		"a direction override":              {rig.Options(), []string{"a\u202eb"}, nil, []string{`"a\u202eb"`}},
		"a variation selector":              {rig.Options(), []string{"a\ufe0f"}, nil, []string{`"a\ufe0f"`}},
		"a tag character":                   {rig.Options(), []string{"a\U000e0041"}, nil, []string{`"a\U000e0041"`}},
		"a filler that is a letter":         {rig.Options(), []string{"a\u3164"}, nil, []string{`"a\u3164"`}},
		"a symbol that looks like a space":  {rig.Options(), []string{"a\u2800"}, nil, []string{`"a\u2800"`}},
		"a no-break space":                  {rig.Options(), []string{"a\u00a0b"}, nil, []string{`"a\u00a0b"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var defs []string
			for _, n := range tt.names {
				defs = append(defs, rig.Tool(n))
			}
			e := listed(t, "s", tt.options, defs...)
			if diff := cmp.Diff(tt.offered, rig.Offered(e, t)); diff != "" {
				t.Errorf("offered: %s", diff)
			}
			if diff := cmp.Diff(tt.quarantined, quarantined(e)); diff != "" {
				t.Errorf("quarantined: %s", diff)
			}
			for _, tool := range e.Tools(t.Context()) {
				for _, n := range []string{tool.Offered, tool.Name.String()} {
					if got, err := e.Lookup(t.Context(), gate.CallTool, n); err != nil || got != tool {
						t.Errorf("lookup of %s: %v", n, err)
					}
				}
				if !slices.Contains(tt.names, tool.Local) || len(tool.Offered) > 64 {
					t.Errorf("%q is sent upstream as %q", tool.Offered, tool.Local)
				}
			}
			if _, err := e.Lookup(t.Context(), "prompts/get", "s__a"); err == nil {
				t.Error("a tool was found for another action")
			}
		})
	}
}

// markSanitizer removes <script> as markup, and ZWSP as what is hidden.
func markSanitizer(text string) (string, []gate.Finding) {
	var found []gate.Finding
	if strings.Contains(text, "<script>") {
		text = strings.ReplaceAll(text, "<script>", "[removed: script]")
		found = append(found, gate.Finding{Rule: "html/script", Count: 1, Removed: true})
	}
	if strings.Contains(text, "\u200b") {
		text = strings.ReplaceAll(text, "\u200b", "")
		found = append(found, gate.Finding{Rule: "invisible", Count: 1, Removed: true})
	}
	if strings.Contains(text, "panic") {
		panic("a sanitizer stumbles")
	}
	return text, found
}

// TestDefinitions: what becomes of definitions on the way to clients.
func TestDefinitions(t *testing.T) {
	o := rig.Options()
	o.Sanitizer = rig.SanitizerFunc(markSanitizer)
	const in = `"inputSchema":{"type":"object"}`
	tests := map[string]struct{ def, want string }{ // "" is quarantined
		"every byte of what is unknown": {
			`{"name":"a","x":{"b":1.0,"a":12345678901234567890},"execution":{"taskSupport":"forbidden"},"icons":[{"src":"data:,"}],"inputSchema":{"type":"object","additionalProperties":false},"_meta":{"k":"<&>"},"annotations":{"title":"T"}}`,
			`{"name":"s__a","x":{"b":1.0,"a":12345678901234567890},"execution":{"taskSupport":"forbidden"},"icons":[{"src":"data:,"}],"inputSchema":{"type":"object","additionalProperties":false},"_meta":{"k":"<&>"},"annotations":{"title":"T"}}`,
		},
		"a description with markup":            {`{"name":"a","description":"x<script>",` + in + `}`, `{"name":"s__a","description":"x[removed: script]",` + in + `}`},
		"a description with what is hidden":    {`{"name":"a","description":"x\u200b",` + in + `}`, `{"name":"s__a","description":"x",` + in + `}`},
		"a description within the schema":      {`{"name":"a","inputSchema":{"type":"object","$defs":{"format":{"description":"<script>"}}}}`, `{"name":"s__a","inputSchema":{"type":"object","$defs":{"format":{"description":"[removed: script]"}}}}`},
		"a property named like a keyword":      {`{"name":"a","inputSchema":{"type":"object","properties":{"enum":{"title":"<script>"}}}}`, `{"name":"s__a","inputSchema":{"type":"object","properties":{"enum":{"title":"[removed: script]"}}}}`},
		"an enum with what acts is left out":   {`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"enum":["b","<script>"],"title":"t"}]}}}}`, `{"name":"s__a","inputSchema":{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"title":"t"}]}}}}`},
		"an enum with markup is sent back":     {`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"enum":["<div>"]}}}}`, `{"name":"s__a","inputSchema":{"type":"object","properties":{"x":{"enum":["<div>"]}}}}`},
		"a default deep inside is left out":    {`{"name":"a","inputSchema":{"type":"object","default":{"properties":{"x":"<script>","y":"<script>"}}}}`, `{"name":"s__a","inputSchema":{"type":"object"}}`},
		"a property with what acts":            {`{"name":"a","inputSchema":{"type":"object","properties":{"<script>":{}}}}`, ""},
		"an enum with what is hidden":          {`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"enum":["a\u200b"]}}}}`, ""},
		"a property with what is hidden":       {`{"name":"a","inputSchema":{"type":"object","properties":{"a\u200b":{}}}}`, ""},
		"a definition no sanitizer can read":   {`{"name":"a","description":"panic",` + in + `}`, ""},
		"no schema":                            {`{"name":"a"}`, `{"name":"s__a","inputSchema":{"type":"object"}}`},
		"a schema that refers to itself":       {`{"name":"a","inputSchema":{"type":"object","$ref":"#"}}`, ""},
		"a pattern that does not compile":      {`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"pattern":"("}}}}`, `{"name":"s__a","inputSchema":{"type":"object","properties":{"x":{}}}}`},
		"an output schema that refers outside": {`{"name":"a",` + in + `,"outputSchema":{"$ref":"http://example.com/x"}}`, `{"name":"s__a",` + in + `,"outputSchema":{"type":"object"}}`},
		"an output schema of null":             {`{"name":"a",` + in + `,"outputSchema":null}`, `{"name":"s__a",` + in + `}`},
		"schemas as PHP writes empty ones":     {`{"name":"a","inputSchema":[],"outputSchema":[]}`, `{"name":"s__a","inputSchema":{"type":"object"}}`},
		"a string":                             {`"a"`, ""},
		"null":                                 {`null`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := listed(t, "s", o, tt.def, rig.Tool("other"))
			tools := e.Tools(t.Context())
			if tools[len(tools)-1].Offered != "s__other" {
				t.Error("the other tool is not offered")
			}
			if (len(tools) == 1) != (tt.want == "") || (len(quarantined(e)) == 1) != (tt.want == "") {
				t.Fatalf("%d tools, notes %+v", len(tools), e.Status().Notes)
			}
			if tt.want == "" {
				return
			}
			if diff := cmp.Diff(tt.want, tools[0].Definition.String()); diff != "" {
				t.Error(diff)
			}
			if tools[0].Digest != gate.MustDoc(tt.def).Digest() {
				t.Error("the digest is not that of the definition as declared")
			}
		})
	}
}

// TestNormalizedIsOfferedDeclaredIsChecked: normalizing changes what clients
// see, and nothing about what is refused.
func TestNormalizedIsOfferedDeclaredIsChecked(t *testing.T) {
	o := rig.Options()
	o.Normalize = true
	e := listed(t, "s", o, `{"name":"a","inputSchema":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"additionalProperties":false,"$defs":{"n":{"type":"integer","minimum":5}}}}`)
	if s := e.Tools(t.Context())[0].Definition.Get("inputSchema").String(); strings.Contains(s, "$ref") {
		t.Errorf("offered as declared: %s", s)
	}
	for args, want := range map[string]string{`{"n":5}`: "ok", `{"n":4}`: "refused_validate_input", `{"x":1}`: "refused_validate_input"} {
		if _, err := rig.Do(t.Context(), t, e, "s__a", args); gate.Code(err) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestDeepDefinitions: definitions at the limits of depth cost their own tool at
// most.
func TestDeepDefinitions(t *testing.T) {
	o := rig.Options()
	o.Normalize = true
	for _, n := range []int{50, 120, 126, 128, 236, 240} {
		deep := strings.Repeat(`{"properties":{"x":`, n/2) + `{"$ref":"#/$defs/d"}` + strings.Repeat(`}}`, n/2)
		e := listed(t, "s", o, `{"name":"a","inputSchema":{"type":"object","properties":{"x":`+deep+`},"$defs":{"d":`+strings.ReplaceAll(deep, `"$ref":"#/$defs/d"`, `"type":"string"`)+`}}}`, rig.Tool("b"))
		if !slices.Contains(rig.Offered(e, t), "s__b") {
			t.Errorf("depth %d: %+v", n, e.Status())
		}
		e.Close()
	}
}

// BenchmarkListing measures what a server's listing of 100 tools costs.
func BenchmarkListing(b *testing.B) {
	var defs []string
	for i := range 100 {
		defs = append(defs, fmt.Sprintf(`{"name":"t%d","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		listed(b, "s", rig.Options(), defs...).Close()
	}
}
