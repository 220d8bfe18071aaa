package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Features are what one server offers in addition to tools, immutable once listed.
type Features struct {
	Server  string
	Options options.Tools

	Offers    map[gate.Feature]bool // as the server declares; also while it lists none
	Completes bool
	Logs      bool // can be told what to log
	Updates   bool // tells of resources that change
	Apps      bool // knows of apps

	Prompts, Resources, Templates []*gate.Tool
	Pages                         []*gate.Tool                // of apps; they are none of Resources
	Skills                        []*gate.Tool                // also quarantined ones
	HasSkills                     bool                        // as the server declares
	Declared                      map[gate.Feature][]gate.Doc // the definitions of those, as the server wrote them
	Notes                         []status.Note
}

// Add makes features of the definitions that a server listed. It quarantines only those that cannot
// be sanitized.
func (s *Features) Add(f gate.Feature, defs []gate.Doc) {
	taken, seen := map[string]bool{}, map[string]string{} // taken by prompts whose names need no change; digests by name
	for _, def := range defs {
		if local := localOf(f, def); legal.MatchString(local) {
			taken[local] = true
		}
	}
	for _, def := range defs {
		local := localOf(f, def)
		err := errors.New("listed twice, with different definitions")
		switch earlier, again := seen[local]; {
		case again && earlier == def.Digest():
			continue
		case !again:
			seen[local] = def.Digest()
			err = s.addOne(f, def, taken)
		}
		if err == nil {
			s.declare(f, def)
		} else {
			s.Notes = append(s.Notes, status.Note{Feature: f, Tool: mcp.QuoteName(local), Quarantined: true, Text: err.Error()})
		}
	}
}

func (s *Features) declare(f gate.Feature, def gate.Doc) {
	if s.Declared == nil {
		s.Declared = make(map[gate.Feature][]gate.Doc)
	}
	s.Declared[f] = append(s.Declared[f], def)
}

func (s *Features) addOne(f gate.Feature, def gate.Doc, taken map[string]bool) (err error) {
	defer func() { // a definition that a sanitizer stumbles over hurts itself alone
		if v := recover(); v != nil {
			err = fmt.Errorf("the definition cannot be sanitized: %v", v)
		}
	}()
	if err := checkSize(def); err != nil {
		return err
	}
	switch f {
	case gate.FeaturePrompt:
		return s.addPrompt(def, taken)
	case gate.FeatureResource:
		return s.addResource(def)
	default:
		return s.addTemplate(def)
	}
}

// localOf returns what a definition is known by at its server.
func localOf(f gate.Feature, def gate.Doc) string {
	switch f {
	case gate.FeatureResource:
		return def.Get("uri").Text()
	case gate.FeatureTemplate:
		return def.Get("uriTemplate").Text()
	default:
		return def.Get("name").Text()
	}
}

// same reports whether the server offers what it offered before.
func (s *Features) same(old *Features) bool {
	if s == nil || old == nil {
		return s == old
	}
	return sameTools(s.Prompts, old.Prompts) && sameTools(s.Resources, old.Resources) && sameTools(s.Templates, old.Templates) && sameTools(s.Pages, old.Pages) && sameTools(s.Skills, old.Skills) && slices.Equal(s.Notes, old.Notes)
}

func sameTools(a, b []*gate.Tool) bool {
	return slices.EqualFunc(a, b, func(a, b *gate.Tool) bool {
		return a.Digest == b.Digest && a.Definition.String() == b.Definition.String()
	})
}

// newFeature returns what stands for a definition on the way through the gate.
func newFeature(f gate.Feature, name gate.ToolName, def gate.Doc) *gate.Tool {
	return &gate.Tool{
		Feature: f, Name: name, Local: localOf(f, def), MIME: def.Get("mimeType").Text(), Annotations: def.Get("annotations"),
		Digest: def.Digest(), Teaches: gate.NewLabels(provenance.Untrusted),
	}
}

// addPrompt adds a prompt, whose name follows the rules of tools' names.
func (s *Features) addPrompt(def gate.Doc, taken map[string]bool) error {
	local := def.Get("name").Text()
	if err := checkLocal(local); err != nil {
		return err
	}
	name := gate.ToolName{Server: s.Server, Tool: mangled(local, def.Digest(), taken)}
	t := newFeature(gate.FeaturePrompt, name, def)
	t.Vetted, t.Login = s.Options.Vetted, s.Options.Login
	t.Groups = groupsOf(s.Options.Groups, name)
	t.Offered, t.Input = offeredName(name, t.Digest, s.Options.Bare), newPromptSchema(def.Get("arguments"))
	var err error
	if t.Definition, err = cleaned(t, shapedFeature(t, def.With("name", mcp.MustJSON(t.Offered))), s.Options, readOfFeature); err != nil {
		return err
	}
	if t.Offered != name.String() && t.Offered != name.Tool || name.Tool != local {
		s.Notes = append(s.Notes, status.Note{Feature: t.Feature, Tool: mcp.QuoteName(local), Text: "offered as " + t.Offered})
	}
	s.Prompts = append(s.Prompts, t)
	s.noteFindings(t)
	return nil
}

// addResource adds a resource. Its URI stays as the server wrote it.
func (s *Features) addResource(def gate.Doc) error {
	if err := CheckURI(def.Get("uri").Text()); err != nil {
		return err
	}
	t, err := s.newResource(gate.FeatureResource, def)
	if err != nil {
		return err
	}
	s.Resources = append(s.Resources, t)
	return nil
}

// addTemplate adds a template of resources.
func (s *Features) addTemplate(def gate.Doc) error {
	if len(s.Templates) == maxTemplates {
		return fmt.Errorf("the server lists more than %d templates", maxTemplates)
	}
	if _, err := NewTemplate(def.Get("uriTemplate").Text()); err != nil {
		return err
	}
	t, err := s.newResource(gate.FeatureTemplate, def)
	if err != nil {
		return err
	}
	s.Templates = append(s.Templates, t)
	return nil
}

// maxTemplates bounds the templates of one server, because each of them is tried for a URI that is
// not listed.
const maxTemplates = 1000

func (s *Features) newResource(f gate.Feature, def gate.Doc) (t *gate.Tool, err error) {
	t = newFeature(f, gate.ToolName{Server: s.Server}, def)
	t.OnMachine, t.Vetted, t.Login = s.Options.OnMachine, s.Options.Vetted, s.Options.Login
	t.Groups = groupsOf(s.Options.Groups, t.Name)
	t.Offered, t.Input = t.Local, noArguments{}
	if why := refused(s.Options, gate.Content{Server: s.Server, URI: variables.ReplaceAllString(t.Local, "x")}); why != "" {
		return nil, errors.New("its URI: " + why)
	}
	if t.Definition, err = cleaned(t, shapedFeature(t, def), s.Options, readOfFeature); err != nil {
		return nil, err
	}
	s.noteFindings(t)
	return t, nil
}

func (s *Features) noteFindings(t *gate.Tool) {
	for _, f := range t.Findings {
		s.Notes = append(s.Notes, status.Note{Feature: t.Feature, Tool: mcp.QuoteName(t.Local), Text: f})
	}
}

// readOfFeature is as [machineRead], of prompts and resources.
func readOfFeature(at doc.Leaf) string {
	pointer := at.Pointer()
	switch {
	case at.Key:
		return "the name of a member"
	case pointer == "/uri" || pointer == "/uriTemplate":
		return "its URI"
	case pointer == "/mimeType":
		return "its media type"
	case strings.HasPrefix(pointer, "/arguments/") && strings.HasSuffix(pointer, "/name"):
		return "the name of an argument"
	default:
		return ""
	}
}
