package listing

import (
	"errors"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
)

// shaped returns a tool's definition in a form that clients with strict parsers accept: one
// definition that they reject would cost them the whole list. A member is left out if its type is
// not the one of MCP (MCP 2025-11-25, schema: Tool), and the two schemas become those of objects.
// Members that are left out are added to the findings of t. Calls and results are checked against
// the schemas as they were declared.
func shaped(t *gate.Tool, def gate.Doc) (gate.Doc, error) {
	input, err := objectSchema(def.Get("inputSchema"))
	if err != nil {
		return gate.Doc{}, errors.New("input schema: " + err.Error())
	}
	without := leaveOut(t)
	return rebuilt(def, func(name string, v gate.Doc) []byte {
		switch name {
		case "inputSchema":
			return input.Raw()
		case "outputSchema":
			if absent(v) {
				return nil
			}
			output, err := objectSchema(v)
			if err != nil {
				return without("output schema")
			}
			return output.Raw()
		case "title", "description":
			if v.Kind() != doc.String {
				return without(name)
			}
		case "_meta":
			if v.Kind() != doc.Object {
				return without(name)
			}
		case "annotations":
			return members(v, without, name, annotationKinds).Raw()
		case "execution":
			if support := v.Get("taskSupport"); v.Kind() != doc.Object || !support.IsZero() && !slices.Contains(taskSupport, support.Text()) {
				return without(name)
			}
		case "icons":
			return icons(v, without).Raw()
		}
		return v.Raw()
	}), nil
}

// leaveOut returns what notes that something is left out of a definition.
func leaveOut(t *gate.Tool) func(what string) []byte {
	return func(what string) []byte {
		t.Findings = append(t.Findings, what+": left out, since it is not what MCP says and some clients would lose the whole list by it")
		return nil
	}
}

// shapedFeature is as shaped, of a prompt, a resource or a template (MCP 2025-11-25, schema:
// Prompt, Resource, ResourceTemplate). One without a name gets its URI as one.
func shapedFeature(t *gate.Tool, def gate.Doc) gate.Doc {
	without := leaveOut(t)
	if t.Feature != gate.FeaturePrompt && def.Get("name").Kind() != doc.String {
		def = def.With("name", doc.AppendString(nil, t.Local))
		t.Findings = append(t.Findings, "name: its URI, since it has none")
	}
	return rebuilt(def, func(name string, v gate.Doc) []byte {
		switch kind, known := featureKinds[t.Feature][name]; {
		case known && v.Kind() != kind:
			return without(name)
		case !known:
		case name == "annotations":
			return members(v, without, name, contentKinds).Raw()
		case name == "icons":
			return icons(v, without).Raw()
		case name == "arguments":
			return arguments(v, without).Raw()
		}
		return v.Raw()
	})
}

// arguments returns those of a prompt that have names, with what MCP says of them.
func arguments(d gate.Doc, without func(string) []byte) gate.Doc {
	kept := []byte{'['}
	for a := range d.Elements() {
		if a.Get("name").Kind() != doc.String {
			without("an argument has no name")
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, members(a, without, "arguments", argumentKinds).Raw()...)
	}
	return gate.MustDoc(string(append(kept, ']')))
}

var (
	featureKinds = map[gate.Feature]map[string]doc.Kind{
		gate.FeaturePrompt: {"title": doc.String, "description": doc.String, "arguments": doc.Array, "icons": doc.Array, "_meta": doc.Object},
		gate.FeatureResource: {
			"title": doc.String, "description": doc.String, "mimeType": doc.String, "size": doc.Number,
			"annotations": doc.Object, "icons": doc.Array, "_meta": doc.Object,
		},
		gate.FeatureTemplate: {
			"title": doc.String, "description": doc.String, "mimeType": doc.String,
			"annotations": doc.Object, "icons": doc.Array, "_meta": doc.Object,
		},
	}
	argumentKinds   = map[string]doc.Kind{"title": doc.String, "description": doc.String, "required": doc.Bool}
	contentKinds    = map[string]doc.Kind{"audience": doc.Array, "priority": doc.Number, "lastModified": doc.String}
	annotationKinds = map[string]doc.Kind{
		"title": doc.String, "readOnlyHint": doc.Bool, "destructiveHint": doc.Bool, "idempotentHint": doc.Bool, "openWorldHint": doc.Bool,
	}
	iconKinds   = map[string]doc.Kind{"src": doc.String, "mimeType": doc.String, "sizes": doc.Array, "theme": doc.String}
	taskSupport = []string{"forbidden", "optional", "required"}
)

// objectSchema returns a schema as one of an object, which is all that arguments can be.
func objectSchema(s gate.Doc) (gate.Doc, error) {
	if s.Kind() == doc.Bool && s.True() {
		return gate.MustDoc(`{"type":"object"}`), nil
	}
	if s.Kind() != doc.Object {
		return gate.Doc{}, errors.New("the value is not of the declared type")
	}
	is := s.Get("type").Text() == "object" || s.Get("type").IsZero()
	for name := range s.Get("type").Elements() {
		is = is || name.Text() == "object"
	}
	if !is {
		return gate.Doc{}, errors.New("it describes something other than an object")
	}
	if s.Get("type").Text() != "object" {
		s = s.With("type", []byte(`"object"`))
	}
	return rebuilt(s, func(name string, v gate.Doc) []byte {
		if name != "properties" {
			return v.Raw()
		}
		return rebuilt(v, func(_ string, p gate.Doc) []byte {
			switch {
			case p.Kind() != doc.Bool:
				return p.Raw()
			case p.True():
				return []byte(`{}`)
			}
			return []byte(`{"not":{}}`)
		}).Raw()
	}), nil
}

// members returns an object without the members that have another kind than they should,
// or an absent value if it is no object.
func members(d gate.Doc, without func(string) []byte, at string, kinds map[string]doc.Kind) gate.Doc {
	if d.Kind() != doc.Object {
		without(at)
		return gate.Doc{}
	}
	return rebuilt(d, func(name string, v gate.Doc) []byte {
		if kind, ok := kinds[name]; ok && v.Kind() != kind {
			return without(at + "." + mcp.QuoteName(name))
		}
		return v.Raw()
	})
}

// icons returns those of a list that are icons, or an absent value if none is.
func icons(d gate.Doc, without func(string) []byte) gate.Doc {
	var kept []byte
	for icon := range d.Elements() {
		icon = members(icon, without, "icons", iconKinds)
		theme := icon.Get("theme").Text()
		strings := true
		for size := range icon.Get("sizes").Elements() {
			strings = strings && size.Kind() == doc.String
		}
		if icon.Get("src").IsZero() || !strings || theme != "" && theme != "light" && theme != "dark" {
			without("an icon")
			continue
		}
		kept = append(append(kept, ','), icon.Raw()...)
	}
	if kept == nil {
		return gate.Doc{}
	}
	kept[0] = '['
	return gate.MustDoc(string(append(kept, ']')))
}

// rebuilt returns an object with what becomes of its members, without those that become
// nothing; d itself if nothing changes, or if it is no object.
func rebuilt(d gate.Doc, f func(name string, v gate.Doc) []byte) gate.Doc {
	if d.Kind() != doc.Object {
		return d
	}
	out, changed := []byte{'{'}, false
	for name, v := range d.Members() {
		raw := f(name, v)
		if len(raw) == 0 {
			changed = true
			continue
		}
		changed = changed || string(raw) != string(v.Raw())
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, mcp.MustJSON(name)...), ':'), raw...)
	}
	if !changed {
		return d
	}
	return gate.MustDoc(string(append(out, '}')))
}

// absent reports whether a value says nothing: it is not there, or what some servers write for that.
func absent(d gate.Doc) bool {
	return d.IsZero() || d.Kind() == doc.Null || d.Kind() == doc.Array && string(d.Raw()) == "[]"
}

// withoutApp returns a definition without what it says of an app. Clients that show pages get
// it for approved pages only, by [gate.Tool.App].
func withoutApp(def gate.Doc) gate.Doc {
	meta := def.Get("_meta")
	if meta.Get("ui").IsZero() && meta.Get(apps.LegacyURI).IsZero() {
		return def
	}
	return def.With("_meta", mcp.Without(meta, "ui", apps.LegacyURI).Raw())
}
