package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// serverFeatures are what one server offers beside tools, immutable once listed.
type serverFeatures struct {
	server  string
	options ToolOptions

	offers    map[gate.Feature]bool // as the server declares; also while it lists none
	completes bool
	logs      bool // can be told what to log
	updates   bool // tells of resources that change

	prompts, resources, templates []*gate.Tool
	notes                         []Note
}

// add makes features of the definitions that a server listed. One that cannot be
// made safe is quarantined alone.
func (s *serverFeatures) add(f gate.Feature, defs []gate.Doc) {
	taken, seen := map[string]bool{}, map[string]bool{} // taken by prompts whose names need no change
	for _, def := range defs {
		if local := localOf(f, def); legal.MatchString(local) {
			taken[local] = true
		}
	}
	for _, def := range defs {
		local := localOf(f, def)
		err := errors.New("listed twice")
		if !seen[local] {
			err = s.addOne(f, def, taken)
		}
		seen[local] = true
		if err != nil {
			s.notes = append(s.notes, Note{Feature: f, Tool: quotedName(local), Quarantined: true, Text: err.Error()})
		}
	}
}

func (s *serverFeatures) addOne(f gate.Feature, def gate.Doc, taken map[string]bool) (err error) {
	defer func() { // a definition that a sanitizer stumbles over hurts itself alone
		if v := recover(); v != nil {
			err = fmt.Errorf("its definition cannot be read: %v", v)
		}
	}()
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
func (s *serverFeatures) same(old *serverFeatures) bool {
	if s == nil || old == nil {
		return s == old
	}
	equal := func(a, b []*gate.Tool) bool {
		return slices.EqualFunc(a, b, func(a, b *gate.Tool) bool { return a.Digest == b.Digest })
	}
	return equal(s.prompts, old.prompts) && equal(s.resources, old.resources) && equal(s.templates, old.templates) && slices.Equal(s.notes, old.notes)
}

// newFeature returns what stands for a definition on the way through the gate.
func newFeature(f gate.Feature, name gate.ToolName, def gate.Doc) *gate.Tool {
	return &gate.Tool{
		Feature: f, Name: name, Local: localOf(f, def), MIME: def.Get("mimeType").Text(), Annotations: def.Get("annotations"),
		Digest: def.Digest(), Teaches: gate.NewLabels(gate.Untrusted),
	}
}

// addPrompt adds a prompt, whose name follows the rules of tools' names.
func (s *serverFeatures) addPrompt(def gate.Doc, taken map[string]bool) error {
	local := def.Get("name").Text()
	if err := checkLocal(local); err != nil {
		return err
	}
	name := gate.ToolName{Server: s.server, Tool: mangled(local, def.Digest(), taken)}
	t := newFeature(gate.FeaturePrompt, name, def)
	t.Groups = s.options.Groups.of(name)
	t.Offered, t.Input = offeredName(name, t.Digest, s.options.Bare), newPromptSchema(def.Get("arguments"))
	var err error
	if t.Definition, err = cleaned(t, def.With("name", mustJSON(t.Offered)), s.options, readOfFeature); err != nil {
		return err
	}
	if t.Offered != name.String() && t.Offered != name.Tool || name.Tool != local {
		s.notes = append(s.notes, Note{Feature: t.Feature, Tool: quotedName(local), Text: "offered as " + t.Offered})
	}
	s.prompts = append(s.prompts, t)
	s.noteFindings(t)
	return nil
}

// addResource adds a resource. Its URI stays as the server wrote it.
func (s *serverFeatures) addResource(def gate.Doc) error {
	if err := checkURI(def.Get("uri").Text()); err != nil {
		return err
	}
	t, err := s.newResource(gate.FeatureResource, def)
	if err != nil {
		return err
	}
	s.resources = append(s.resources, t)
	return nil
}

// addTemplate adds a template of resources.
func (s *serverFeatures) addTemplate(def gate.Doc) error {
	if len(s.templates) == maxTemplates {
		return fmt.Errorf("the server lists more than %d templates", maxTemplates)
	}
	if _, err := newTemplate(def.Get("uriTemplate").Text()); err != nil {
		return err
	}
	t, err := s.newResource(gate.FeatureTemplate, def)
	if err != nil {
		return err
	}
	s.templates = append(s.templates, t)
	return nil
}

// maxTemplates bounds the templates of one server, each of which is tried for a URI
// that nobody lists.
const maxTemplates = 1000

func (s *serverFeatures) newResource(f gate.Feature, def gate.Doc) (t *gate.Tool, err error) {
	t = newFeature(f, gate.ToolName{Server: s.server}, def)
	t.Groups = s.options.Groups.of(t.Name)
	t.Offered, t.Input = t.Local, noArguments{}
	if t.Definition, err = cleaned(t, def, s.options, readOfFeature); err != nil {
		return nil, err
	}
	s.noteFindings(t)
	return t, nil
}

func (s *serverFeatures) noteFindings(t *gate.Tool) {
	for _, f := range t.Findings {
		s.notes = append(s.notes, Note{Feature: t.Feature, Tool: quotedName(t.Local), Text: f})
	}
}

// readOfFeature is as [machineRead], of prompts and resources.
func readOfFeature(at gate.Leaf) string {
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
