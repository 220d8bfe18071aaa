package listing

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/pointer"
	"github.com/wasmgate/wasmgate/internal/schema"
)

// CheckOptions says what is missing.
func CheckOptions(o *options.Tools) error {
	if o.Sanitizer == nil {
		return fmt.Errorf("tool options have no sanitizer")
	}
	return nil
}

// maxOffered is how long a name may be that is offered to clients: model
// providers accept [A-Za-z0-9_-]{1,64}.
const maxOffered = 64

// Tools are the tools of one server, immutable.
type Tools struct {
	All    []*gate.Tool
	ByName map[string]*gate.Tool // by offered and by qualified name
	Notes  []status.Note

	Listed   []gate.Doc           // all definitions, as the server wrote them
	Declared []gate.Doc           // those of tools
	Foreign  []bool               // of local tools: whether they are
	Modules  []options.ToolModule // of local tools: what they run in

	Features *Features // what the server offers in addition to tools; nil if that is nothing
}

// Lookup finds a tool by its offered or its qualified name; an error wraps
// [gate.ErrUnknown].
func (s *Tools) Lookup(action gate.Action, name string) (*gate.Tool, error) {
	t, ok := s.ByName[name]
	if !ok || action != gate.CallTool {
		return nil, fmt.Errorf("tool %q: %w", name, gate.ErrUnknown)
	}
	return t, nil
}

// Same reports whether the server lists what it listed before, and it was sanitized in the same
// way.
func (s *Tools) Same(old *Tools) bool {
	return sameTools(s.All, old.All) && slices.Equal(s.Notes, old.Notes) && s.Features.same(old.Features)
}

func sameTools(a, b []*gate.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *gate.Tool) bool {
		return a.Digest == b.Digest && a.Definition.String() == b.Definition.String()
	})
}

// NewTools makes tools of the definitions that a server listed. It quarantines only those that
// cannot be sanitized.
func NewTools(server string, o options.Tools, raw []gate.Doc) *Tools {
	s := &Tools{ByName: make(map[string]*gate.Tool, len(raw)), Listed: raw}
	taken := map[string]bool{} // by tools whose names need no change
	for _, def := range raw {
		if local := def.Get("name").Text(); legal.MatchString(local) {
			taken[local] = true
		}
	}
	seen, until := map[string]string{}, time.Now().Add(scanTime) // digests by name
	for _, def := range raw {
		local := def.Get("name").Text()
		err := cmp.Or(checkSize(def), checkLocal(local))
		switch earlier, again := seen[local]; {
		case again && earlier == def.Digest():
			continue // servers without pages list the first one again
		case again && err == nil:
			err = fmt.Errorf("listed twice, with different definitions")
		case !again:
			seen[local] = def.Digest()
		}
		var t *gate.Tool
		if err == nil {
			t, err = newTool(gate.ToolName{Server: server, Tool: mangled(local, def.Digest(), taken)}, def, o)
		}
		if err == nil && (s.ByName[t.Offered] != nil || s.ByName[t.Name.String()] != nil) {
			err = fmt.Errorf("it would be offered as %s, which is the name of another tool", t.Offered)
		}
		if err != nil {
			s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(local), Quarantined: true, Text: err.Error()})
			continue
		}
		s.add(t)
		s.scan(t, def, until)
		s.Declared = append(s.Declared, def)
	}
	return s
}

func (s *Tools) add(t *gate.Tool) {
	s.All = append(s.All, t)
	s.ByName[t.Name.String()] = t
	s.ByName[t.Offered] = t
	if t.Offered != t.Name.String() && t.Offered != t.Name.Tool || t.Name.Tool != t.Local {
		s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(t.Local), Text: "offered as " + t.Offered})
	}
	for _, f := range t.Findings {
		s.Notes = append(s.Notes, status.Note{Tool: mcp.QuoteName(t.Local), Text: f})
	}
}

var (
	legal   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	illegal = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// brailleBlank is a symbol to Unicode, and looks like a space.
const brailleBlank = '\u2800'

// maxDefinition bounds one definition, in bytes: it goes into the context of models.
const maxDefinition = 1 << 20

// checkSize refuses definitions that no model could read.
func checkSize(def gate.Doc) error {
	if n := len(def.Raw()); n > maxDefinition {
		return fmt.Errorf("its definition has %s, more than the %s that are allowed, so the tool is not offered", mcp.Bytes(int64(n)), mcp.Bytes(maxDefinition))
	}
	return nil
}

// checkLocal refuses names that cannot be shown for what they are.
func checkLocal(name string) error {
	if name == "" {
		return fmt.Errorf("the tool has no name")
	}
	if utf8.RuneCountInString(name) > mcp.MaxName {
		return fmt.Errorf("the name has more than %d characters", mcp.MaxName)
	}
	return checkShown("its name", name)
}

// checkShown refuses what has characters that a reader would not see.
func checkShown(what, text string) error {
	for _, r := range text {
		if !unicode.IsGraphic(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
			unicode.IsSpace(r) && r != ' ' || r == brailleBlank {
			return fmt.Errorf("%s has a hidden character, %U", what, r)
		}
	}
	return nil
}

// mangled makes the name one of the letters that clients accept. If that name is
// another tool's, six hex digits of the tool's digest tell them apart.
func mangled(local, digest string, taken map[string]bool) string {
	if legal.MatchString(local) {
		return local
	}
	name := illegal.ReplaceAllString(local, "_")
	if taken[name] {
		name += "_" + digest[:6]
	}
	taken[name] = true
	return name
}

// Shorten keeps an offered name within maxOffered.
func Shorten(name, digest string) string {
	if len(name) <= maxOffered {
		return name
	}
	return name[:maxOffered-7] + "_" + digest[:6]
}

// offeredName returns the name by which clients know what a server has named.
func offeredName(name gate.ToolName, digest string, bare bool) string {
	if bare && !strings.Contains(name.Tool, "__") { // else it could pass for another server's
		return Shorten(name.Tool, digest)
	}
	return Shorten(name.String(), digest)
}

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

// absent reports whether a value says nothing: it is not there, or what some servers write for that.
func absent(d gate.Doc) bool {
	return d.IsZero() || d.Kind() == doc.Null || d.Kind() == doc.Array && string(d.Raw()) == "[]"
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
