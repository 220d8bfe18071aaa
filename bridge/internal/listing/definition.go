package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/schema"
)

func newTool(name gate.ToolName, def gate.Doc, o options.Tools) (t *gate.Tool, err error) {
	defer func() { // a definition that a sanitizer or a compiler stumbles over hurts its tool alone
		if v := recover(); v != nil {
			t, err = nil, fmt.Errorf("the definition cannot be sanitized: %v", v)
		}
	}()
	t = &gate.Tool{
		Name: name, Local: def.Get("name").Text(), Annotations: def.Get("annotations"),
		Digest: def.Digest(), Config: o.Config, OnMachine: o.OnMachine, Login: o.Login, Vetted: o.Vetted, OutputWarn: o.OutputWarn, Teaches: gate.NewLabels(provenance.Untrusted), Groups: groupsOf(o.Groups, name),
	}
	use := apps.UseOf(def)
	t.Offered, t.AppOnly = offeredName(name, t.Digest, o.Bare), !use.Model
	if use.Page != "" && !o.Apps.Off { // which is not read yet
		t.App = &gate.App{Calls: use.App}
	}

	input, repaired := schema.Repair(def.Get("inputSchema"))
	if repaired != "" {
		t.Findings = append(t.Findings, "input schema: added "+repaired)
	}
	in, input, err := compiled(t, "input schema", input, o)
	if err != nil {
		return nil, err
	}
	t.Input, def = in, def.With("inputSchema", input.Raw())
	if output := def.Get("outputSchema"); !absent(output) {
		out, output, err := compiled(t, "output schema", output, o)
		if err != nil {
			return nil, err
		}
		t.Output, def = out, def.With("outputSchema", output.Raw())
	}
	t.Definition, err = offer(t, def, o)
	return t, err
}

// schemas are compiled once for all servers, which declare the same ones over and over.
var schemas schema.Compiler

// compiled returns what a schema of t judges by, and the schema to offer. What is left out of it
// is added to the findings of t.
func compiled(t *gate.Tool, what string, raw gate.Doc, o options.Tools) (s *schema.Schema, offered gate.Doc, err error) {
	var left []string
	if offered = raw; o.Strict {
		s, err = schemas.Compile(raw)
	} else {
		s, offered, left, err = schemas.Usable(raw)
	}
	if err != nil {
		return nil, gate.Doc{}, fmt.Errorf("%s: %w", what, err)
	}
	for _, one := range left {
		t.Findings = append(t.Findings, what+": left out, since it cannot be judged: "+one)
	}
	return s, offered, nil
}

// offer makes the definition that clients see.
func offer(t *gate.Tool, def gate.Doc, o options.Tools) (gate.Doc, error) {
	def = def.With("name", mcp.MustJSON(t.Offered))
	if o.Normalize {
		def = def.With("inputSchema", schema.Normalize(def.Get("inputSchema")).Raw())
	}
	if output := def.Get("outputSchema"); output.Kind() == doc.Object {
		def = def.With("outputSchema", schema.Undated(output).Raw())
	}
	def, err := shaped(t, def)
	if err != nil {
		return gate.Doc{}, err
	}
	return cleaned(t, def, o, machineRead)
}

// cleaned returns a definition with its texts sanitized, and adds the findings to t. machine names
// the kind of a string that cannot be changed.
func cleaned(t *gate.Tool, def gate.Doc, o options.Tools, machine func(doc.Leaf) string) (gate.Doc, error) {
	def = withIcons(t, withoutApp(def), o)
	text := gate.Text{Server: t.Name.Server, Profile: "text"}
	if t.Feature == gate.FeatureTool {
		text.Tool = t.Name.String()
	}
	var bad error
	var left []string // pointers of what is left out
	clean, err := doc.MapStrings(def, func(at doc.Leaf, s string) string {
		one := text
		one.Text = s
		text, found := o.Sanitizer.Sanitize(one)
		if len(found) == 0 {
			return s
		}
		if read := machine(at); read != "" {
			switch keyword := dispensable(at); {
			case hidden(found):
				bad = cmp.Or(bad, fmt.Errorf("%s: hidden text in %s", mcp.QuoteName(at.Pointer()), read))
			case text == s:
			case keyword == "":
				bad = cmp.Or(bad, fmt.Errorf("%s: active content (%s) in %s", mcp.QuoteName(at.Pointer()), found[0].Rule, read))
			default:
				t.Findings = append(t.Findings, fmt.Sprintf("%s: left out: %s", at.Pointer(), found[0].Rule))
				left = append(left, keyword)
			}
			return s
		}
		for _, f := range found {
			t.Findings = append(t.Findings, fmt.Sprintf("%s: %s", at.Pointer(), f.Rule))
		}
		return text
	})
	if bad != nil || err != nil {
		return gate.Doc{}, cmp.Or(bad, err)
	}
	for _, keyword := range left {
		clean = doc.Edit(clean, pointer.Path(keyword), func(gate.Doc) []byte { return nil })
	}
	return clean, nil
}

// machineWords are the members whose strings clients send back or act on, optional those of
// them that only help to write arguments, which the schema as it was declared judges anyway.
var (
	machineWords = append(strings.Fields("$ref $id $anchor $dynamicRef $dynamicAnchor $schema required dependentRequired type"), optional...)
	optional     = strings.Fields("enum const pattern default format")
)

// machineRead names the kind of a string that clients send back or act on, and
// that therefore cannot be changed; "" for one that is only read.
func machineRead(at doc.Leaf) string {
	if at.Key {
		return "the name of a member"
	}
	if at.Pointer() == "/name" {
		return "its name"
	}
	word, _ := keyword(at)
	return word
}

// keyword returns the first of the machineWords above a string, and its pointer.
func keyword(of doc.Leaf) (word, at string) {
	chosen, end := false, 0
	for token := range strings.SplitSeq(of.Pointer(), "/") {
		end += len(token) + 1
		switch {
		case chosen:
			chosen = false
		case slices.Contains(machineWords, token):
			return token, of.Pointer()[:end-1]
		default:
			chosen = slices.Contains(mcp.SchemaMaps, token)
		}
	}
	return "", ""
}

// dispensable returns the pointer of the keyword in whose value a string stands, if a schema
// does without it; "" if not.
func dispensable(of doc.Leaf) string {
	word, at := keyword(of)
	if of.Key || !slices.Contains(optional, word) {
		return ""
	}
	return at
}

// hidden reports whether anything but markup was found: a person would not see
// it.
func hidden(found []gate.Finding) bool {
	for _, f := range found {
		if f.Removed && !strings.HasPrefix(f.Rule, "html/") {
			return true
		}
	}
	return false
}
