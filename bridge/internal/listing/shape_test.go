package listing_test

import (
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// TestOddFeatures: a member of another type than MCP says is left out of what clients are offered.
func TestOddFeatures(t *testing.T) {
	odd := []string{"null", "[]", "{}", "7", "true", `"text"`}
	kinds := map[string]doc.Kind{
		"title": doc.String, "description": doc.String, "mimeType": doc.String, "size": doc.Number,
		"icons": doc.Array, "arguments": doc.Array, "annotations": doc.Object, "_meta": doc.Object,
	}
	base := map[gate.Feature]string{gate.FeaturePrompt: `{"name":"p"}`, gate.FeatureResource: `{"uri":"doc://a","name":"n"}`, gate.FeatureTemplate: `{"uriTemplate":"doc://{a}","name":"n"}`}
	has := map[gate.Feature][]string{
		gate.FeaturePrompt:   {"title", "description", "icons", "arguments", "_meta"},
		gate.FeatureResource: {"title", "description", "mimeType", "size", "icons", "annotations", "_meta"},
		gate.FeatureTemplate: {"title", "description", "mimeType", "icons", "annotations", "_meta"},
	}
	for f, members := range has {
		for _, member := range members {
			for _, value := range odd {
				def := gate.MustDoc(base[f]).With(member, []byte(value))
				got := offeredFeature(t, f, def)
				switch v := got.Get(member); {
				case v.IsZero():
				case v.Kind() != kinds[member]:
					t.Errorf("%s: %s is offered as %s", f, def, got)
				}
			}
		}
	}
	if got := offeredFeature(t, gate.FeatureResource, gate.MustDoc(`{"uri":"doc://a"}`)); got.Get("name").Text() != "doc://a" {
		t.Errorf("a resource without a name is offered as %s", got)
	}
	got := offeredFeature(t, gate.FeaturePrompt, gate.MustDoc(`{"name":"p","arguments":[{"name":"a","description":null,"required":"yes"},{"title":"no name"},null]}`))
	if want := `[{"name":"a"}]`; got.Get("arguments").String() != want {
		t.Errorf("arguments are offered as %s, want %s", got.Get("arguments"), want)
	}
	got = offeredFeature(t, gate.FeatureResource, gate.MustDoc(`{"uri":"doc://a","name":"n","annotations":{"audience":null,"priority":0.5}}`))
	if want := `{"priority":0.5}`; got.Get("annotations").String() != want {
		t.Errorf("annotations are offered as %s, want %s", got.Get("annotations"), want)
	}
}

// offeredFeature returns a definition as clients are offered it.
func offeredFeature(t *testing.T, f gate.Feature, def gate.Doc) gate.Doc {
	t.Helper()
	s := &listing.Features{Server: "s", Options: rig.Options()}
	s.Add(f, []gate.Doc{def})
	all := slices.Concat(s.Prompts, s.Resources, s.Templates)
	if len(all) != 1 {
		t.Fatalf("%s: %+v", def, s.Notes)
	}
	return all[0].Definition
}
