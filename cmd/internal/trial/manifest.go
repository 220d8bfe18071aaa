package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/cmd/internal/granted"
	"github.com/wasmgate/wasmgate/internal/spelling"
	"github.com/wasmgate/wasmgate/sandbox"
)

// Manifest returns the manifest of a module, from the file next to it or from the module itself.
func Manifest(wasm []byte, mc sandbox.ModuleConfig) (sandbox.Manifest, error) {
	if mc.Manifest != nil {
		return *mc.Manifest, nil
	}
	return sandbox.ReadManifest(wasm)
}

// Wished returns what a manifest wishes for as grants, but secrets, and folders that it
// does not name.
func Wished(m sandbox.Manifest) (rules []dial.Rule, grants sandbox.Grants) {
	if m.Wants == nil {
		return nil, grants
	}
	for _, h := range m.Wants.HTTP {
		rules = append(rules, dial.Rule{Origin: h.Origin, Methods: h.Methods, Path: h.Path, Private: granted.IsPrivate(h.Origin)})
	}
	for _, d := range m.Wants.Dirs {
		if d.Path != "" {
			grants.Dirs = append(grants.Dirs, sandbox.Dir{Path: d.Path, Write: d.Write})
		}
	}
	grants.HTTP, grants.KV = len(rules) > 0, m.Wants.KV
	return rules, grants
}

var noName = regexp.MustCompile(`[^a-z0-9_-]+`)

// FirstManifest is a manifest of one tool for a module that has none.
func FirstManifest(module string, r sandbox.Report) []byte {
	base := filepath.Base(module)
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "_"), "_-")
	if name == "" {
		name = "tool"
	}
	var b bytes.Buffer
	if r.ABI == "command" {
		fmt.Fprintf(&b, "# %s reads {\"name\", \"arguments\"} from standard input, and writes one JSON value to standard output.\n", base)
		b.WriteString("# If it is an MCP server, it needs no manifest: servers: {NAME: {module: ...}} in wasmgate.yaml.\n")
	}
	fmt.Fprintf(&b, "tools:\n  - name: %s\n    description: What it does, for the model that calls it.\n", name)
	b.WriteString("    inputSchema:\n      type: object\n      properties:\n        text: {type: string, description: What it is for.}\n      additionalProperties: false\n")
	var wants []string
	for _, n := range r.Imports {
		wants = append(wants, n.Grant...)
	}
	if slices.Contains(wants, "http") || slices.Contains(wants, "kv") {
		b.WriteString("wants: # grants nothing: wasmgate.yaml does\n")
	}
	if slices.Contains(wants, "http") {
		b.WriteString("  http: [{origin: \"https://api.example.com\", methods: [GET], path: /}]\n")
	}
	if slices.Contains(wants, "kv") {
		b.WriteString("  kv: true\n")
	}
	return b.Bytes()
}

// Advice is what the definitions of tools say and their author may not mean.
func Advice(tools []sandbox.Tool) (all []string) {
	for _, t := range tools {
		if strings.TrimSpace(t.Description) == "" {
			all = append(all, fmt.Sprintf("tool %s has no description, by which models choose it", t.Name))
		}
		var out struct {
			Type any `json:"type"`
		}
		if t.OutputSchema != nil && json.Unmarshal(t.OutputSchema, &out) == nil && out.Type != nil && out.Type != "object" {
			all = append(all, fmt.Sprintf("tool %s has an outputSchema of another type than object, in which MCP wants results with a schema: let an object have it as a member, such as result", t.Name))
		}
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
			Additional any                        `json:"additionalProperties"`
		}
		if json.Unmarshal(t.InputSchema, &s) != nil {
			continue
		}
		for _, name := range s.Required {
			if _, known := s.Properties[name]; !known && s.Additional == false {
				all = append(all, fmt.Sprintf("tool %s requires %q, and allows no such property: nobody can call it", t.Name, name))
			}
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(t.InputSchema, &members) // it was an object before
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if hint := spelling.Suggest(name, schemaWords); hint != "" && !slices.Contains(schemaWords, name) {
				all = append(all, fmt.Sprintf("tool %s: its inputSchema has %q, which means nothing in a schema%s", t.Name, name, hint))
			}
		}
	}
	return all
}

// schemaWords are the keywords of an object's schema that are often written.
var schemaWords = strings.Fields("type properties required additionalProperties description title items enum const default examples anyOf oneOf allOf not if then else patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas unevaluatedProperties $ref $defs $schema $id $comment definitions")
