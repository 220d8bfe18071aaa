package fleet

import (
	"slices"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// features are the prompts, resources and templates of all servers at one time,
// immutable. The zero features are none.
type features struct {
	prompts   *catalog
	resources []*gate.Tool
	byURI     map[string]*gate.Tool
	pages     []*gate.Tool // of apps, as far as they are approved
	skills    catalogSkills
	templates []ownedTemplate // in order of configuration
	listed    []*gate.Tool    // templates
	methods   []*gate.Tool
	byMethod  map[string]*gate.Tool // by method, and by server__method

	paged     map[string]map[string]string // by server: URIs of pages to those under which they are offered
	opaque    map[string]map[string]string // by server: URIs to those under which they are offered
	yielded   map[string][]ownedTemplate   // by server: templates that are offered by opaque ones
	conflicts []status.Conflict            // about URIs

	completing map[*gate.Tool]*gate.Tool // what completing an argument of it is held against
	offers     map[gate.Feature]bool
	completes  bool
	logs       bool
	updates    bool
	apps       bool
}

type ownedTemplate struct {
	*listing.Template
	tool *gate.Tool
}

// newFeatures joins what all servers offer in addition to tools. Prompts are named like tools. If
// two servers have the same URI or template, the server that is earlier in the configuration keeps
// it. The other one's resource is offered by an opaque URI, and the status of that server says so.
func newFeatures(members []member, groups options.Groups, pins Pins, notes map[string][]status.Note) *features {
	f := &features{
		prompts: &catalog{byName: make(map[string]*gate.Tool), notes: notes}, byURI: make(map[string]*gate.Tool), opaque: make(map[string]map[string]string),
		paged:      make(map[string]map[string]string),
		yielded:    make(map[string][]ownedTemplate),
		completing: make(map[*gate.Tool]*gate.Tool), offers: make(map[gate.Feature]bool), byMethod: make(map[string]*gate.Tool),
	}
	names, owners := newNames(), make(map[string]string)
	for _, m := range members {
		f.addMethods(m, groups, notes)
		s := m.features()
		if s == nil {
			continue
		}
		for one, has := range s.Offers {
			f.offers[one] = f.offers[one] || has
		}
		f.completes, f.logs, f.updates = f.completes || s.Completes, f.logs || s.Logs, f.updates || s.Updates
		f.apps = f.apps || s.Apps || len(s.Pages) > 0
		for _, t := range s.Prompts {
			if other, why := names.like(t); other != nil {
				f.prompts.hold(m, t, other, why)
				continue
			}
			names.add(t)
			f.prompts.add(m, listing.Grouped(t, groups))
		}
		for _, t := range slices.Concat(s.Resources, s.Templates) {
			owner, taken := owners[t.Local]
			if taken {
				t = f.yield(m, t, owner, notes)
			} else {
				owners[t.Local] = m.id
			}
			if t != nil {
				f.addResource(listing.Grouped(t, groups))
			}
		}
	}
	for _, m := range members {
		if s := m.features(); s != nil {
			f.addPages(s.Pages, groups, pins)
		}
	}
	var skilled []serverSkills
	for _, m := range members {
		if s := m.features(); s != nil {
			skilled = append(skilled, serverSkills{m.id, s})
		}
	}
	f.skills = newSkills(skilled, groups, pins, notes)
	f.prompts.knowHeld()
	for _, t := range f.prompts.tools {
		f.knowCompletion(t, t.Input.(listing.PromptSchema).Declared)
	}
	return f
}

// addPages adds the pages of a server. Each is known by the URI that says its server, and by
// its own if no other resource has that.
func (f *features) addPages(pages []*gate.Tool, groups options.Groups, pins Pins) {
	for _, t := range pages {
		t = listing.Grouped(t, groups)
		if pins == nil || pins.Check(t) == nil {
			f.pages = append(f.pages, t)
		}
		f.byURI[t.Offered] = t
		if f.byURI[t.Local] == nil {
			f.byURI[t.Local] = t
		}
		if f.paged[t.Name.Server] == nil {
			f.paged[t.Name.Server] = make(map[string]string)
		}
		f.paged[t.Name.Server][t.Local] = t.Offered
	}
}

func (f *features) addResource(t *gate.Tool) {
	if t.Feature == gate.FeatureResource {
		f.resources, f.byURI[t.Offered] = append(f.resources, t), t
		return
	}
	compiled, err := listing.NewTemplate(t.Local)
	if err != nil {
		return // it was read when it was listed
	}
	f.listed = append(f.listed, t)
	if t.Offered == t.Local {
		f.templates = append(f.templates, ownedTemplate{compiled, t})
	} else {
		f.yielded[t.Name.Server] = append(f.yielded[t.Name.Server], ownedTemplate{compiled, t})
	}
	f.knowCompletion(t, compiled.Variables)
}

// knowCompletion keeps what stands for the completion of arguments.
func (f *features) knowCompletion(t *gate.Tool, declared []string) {
	c := *t
	c.Input = listing.CompletionSchema{Declared: declared}
	f.completing[t] = &c
}

// yield offers what an earlier server has the URI, or the template, of by an opaque one.
func (f *features) yield(m member, t *gate.Tool, owner string, notes map[string][]status.Note) *gate.Tool {
	var its *gate.Tool
	if t.Feature == gate.FeatureResource {
		its = f.opaquely(t)
	} else {
		one := *t
		one.Offered = listing.OpaqueScheme + "//" + t.Name.Server + opaqueTemplate + t.Local
		one.Definition = t.Definition.With("uriTemplate", mcp.MustJSON(one.Offered))
		its = &one
	}
	conflict, note := newConflict(t, owner, t.Local, its.Offered)
	f.conflicts, notes[m.id] = append(f.conflicts, conflict), append(notes[m.id], note)
	return its
}

func (f *features) opaquely(t *gate.Tool) *gate.Tool {
	its := *t
	its.Offered = opaqueURI(t.Name.Server, t.Local)
	its.Definition = t.Definition.With("uri", mcp.MustJSON(its.Offered))
	of := f.opaque[t.Name.Server]
	if of == nil {
		of = make(map[string]string)
		f.opaque[t.Name.Server] = of
	}
	of[t.Local] = its.Offered
	return &its
}

// features returns what a member offers in addition to tools; nil if that is nothing.
func (m member) features() *listing.Features {
	if l, local := m.upstream.(*local.Server); local {
		return l.ListedFeatures()
	}
	if m.endpoint == nil {
		return nil
	}
	return m.endpoint.ListedFeatures()
}

// lookup finds what an action other than a tool's names; nil if there is no such
// thing.
func (f *features) lookup(action gate.Action, name string) *gate.Tool {
	if t := f.skills.lookup(action, name); t != nil {
		return t
	}
	switch action {
	case gate.GetPrompt:
		return f.prompts.byName[name]
	case gate.ReadResource, gate.Subscribe:
		return f.owner(name)
	case gate.Complete:
		if t := f.prompts.byName[name]; t != nil {
			return f.completion(t)
		}
		for _, t := range f.listed { // no name of a prompt is a URI
			if t.Offered == name {
				return f.completion(t)
			}
		}
	default:
		return f.method(action, name)
	}
	return nil
}

// completion returns what stands for the completion of t; what is quarantined is
// that for completion, too.
func (f *features) completion(t *gate.Tool) *gate.Tool {
	if c := f.completing[t]; c != nil {
		return c
	}
	return t
}

// owner returns the resource of a URI, or else the template that could have made it:
// of several the one that begins with the longest literal, and of those the first.
func (f *features) owner(uri string) *gate.Tool {
	if t := f.byURI[uri]; t != nil {
		return t
	}
	if server, own := templated(uri); own != "" {
		if t := best(f.yielded[server], own); t != nil && listing.CheckURI(own) == nil {
			its := *t
			its.URI = own
			return &its
		}
	}
	if t := f.made(uri); t != nil {
		return t
	}
	for _, other := range listing.Spellings(uri) {
		t := f.byURI[other]
		if t == nil {
			t = f.made(other)
		}
		if t != nil { // policies and the server see the spelling that the server listed
			its := *t
			its.URI = other
			return &its
		}
	}
	return nil
}

// made returns the template that could have made a URI; nil if none could.
func (f *features) made(uri string) *gate.Tool {
	if listing.CheckURI(uri) != nil {
		return nil
	}
	return best(f.templates, uri)
}

// best returns the template that could have made a URI; nil if none could.
func best(templates []ownedTemplate, uri string) *gate.Tool {
	var best *ownedTemplate
	for i := range templates {
		t := &templates[i]
		if (best == nil || len(t.Prefix) > len(best.Prefix)) && t.Matches(uri) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	return best.tool
}

// list returns all of a feature, in the order in which clients see it.
func (f *features) list(one gate.Feature) []*gate.Tool {
	switch one {
	case gate.FeaturePrompt:
		return f.prompts.tools
	case gate.FeatureResource:
		return f.resources
	case gate.FeaturePage:
		return f.pages
	case gate.FeatureSkill:
		return f.skills.listed()
	case gate.FeatureTemplate:
		return f.listed
	case gate.FeatureMethod:
		return f.methods
	default:
		return nil
	}
}

// addMethods adds the methods of a server. One that an earlier server has is reached by
// its full name alone.
func (f *features) addMethods(m member, groups options.Groups, notes map[string][]status.Note) {
	if m.endpoint == nil {
		return
	}
	for _, t := range m.endpoint.Methods() {
		t = listing.Grouped(t, groups)
		f.methods, f.byMethod[t.Name.String()] = append(f.methods, t), t
		first := f.byMethod[t.Local]
		if first == nil {
			f.byMethod[t.Local] = t
			continue
		}
		conflict, note := newConflict(t, first.Name.Server, t.Local, t.Offered)
		f.conflicts, notes[m.id] = append(f.conflicts, conflict), append(notes[m.id], note)
	}
}

// method returns what a method of a client's request names: at its server it is the action.
func (f *features) method(action gate.Action, name string) *gate.Tool {
	if t := f.byMethod[name]; t != nil && t.Local == string(action) {
		return t
	}
	return nil
}
