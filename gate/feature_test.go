package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// newUse returns a rig whose one thing is a prompt or a resource, and a call that
// uses it.
func newUse(f gate.Feature, a gate.Action, result string) (*rig, gate.Call) {
	r := newRig()
	t := *r.tool
	t.Feature, t.Output = f, nil
	r.tool = &t
	r.invoke = func(context.Context, *gate.Call) (gate.Result, error) { return answer(result), nil }
	c := newCall()
	c.Action = a
	return r, c
}

// TestUnknownFeatures: what is unknown and what is hidden is said in the same words.
func TestUnknownFeatures(t *testing.T) {
	for a, want := range map[gate.Action]string{
		gate.GetPrompt: "no such prompt", gate.ReadResource: "no such resource", gate.Complete: "no such prompt or template of resources", gate.CallTool: "no such tool",
	} {
		for name, change := range map[string]func(*rig){
			"unknown": func(r *rig) { r.tool = nil },
			"hidden": func(r *rig) {
				r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Deny, Hidden: true} }
			},
		} {
			r, c := newUse(gate.FeaturePrompt, a, `{}`)
			change(r)
			_, err := r.do(t, c)
			refused, ok := errors.AsType[*gate.Refusal](err)
			if !ok || !refused.Hidden || refused.Reason != want {
				t.Errorf("%s, %s: %v", a, name, err)
			}
		}
	}
}

// TestContentsOfFeatures: contents of prompts and resources are judged as those of
// tools are, and what takes their place has the form that the method has.
func TestContentsOfFeatures(t *testing.T) {
	check := checkerFunc(func(c gate.Content) string {
		if c.Tool != "" {
			return "a tool's name for what is none"
		}
		if c.Data == "BAD=" || c.URI == "bad:x" {
			return "a bad thing"
		}
		return ""
	})
	const (
		messages = `{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"image","data":"BAD="}},` +
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"bad:x"}]}]}`
		contents = `{"contents":[{"uri":"bad:x","text":"a"},{"uri":"doc://a","mimeType":"image/png","blob":"BAD="},{"uri":"doc://b","blob":"GOOD"}]}`
		removed  = `{"text":"[removed: a bad thing]","type":"text"}`
	)
	for a, tt := range map[gate.Action]struct {
		feature       gate.Feature
		name, in, out string
	}{
		gate.GetPrompt: {gate.FeaturePrompt, "p", messages, `[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":` + removed + `},{"role":"user","content":` + removed + `}]`},
		// bad:x is what was asked for, and no link that leads on
		gate.ReadResource: {gate.FeatureResource, "bad:x", contents, `[{"uri":"bad:x","text":"a"},{"mimeType":"text/plain","text":"[removed: a bad thing]","uri":"doc://a"},{"uri":"doc://b","blob":"GOOD"}]`},
	} {
		r, c := newUse(tt.feature, a, tt.in)
		c.Name = tt.name
		p := r.parts()
		p.ContentChecker = check
		g := newGate(t, p)
		res, err := g.Do(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		member := map[gate.Action]string{gate.GetPrompt: "messages", gate.ReadResource: "contents"}[a]
		if got := res.Doc.Get(member).String(); got != tt.out {
			t.Errorf("%s:\n%s, want\n%s", a, got, tt.out)
		}
	}
}

// TestFeaturesAreNoTools: nothing that is said of tools by name counts for a prompt
// of the same name: no label, no approval. Pins know it by its own kind.
func TestFeaturesAreNoTools(t *testing.T) {
	r, c := newUse(gate.FeaturePrompt, gate.GetPrompt, `{"messages":[]}`)
	p := r.parts()
	p.Labeler = labelerFunc(func(*gate.Tool) (provenance.ToolLabels, bool) {
		return provenance.ToolLabels{Result: provenance.ResultTrusted}, true
	})
	p.Pins = pinsFunc(func(t *gate.Tool) error {
		if t.Feature != gate.FeaturePrompt {
			return errors.New("asked of a tool")
		}
		return nil
	})
	p.Approver = approverFunc(func(context.Context, gate.Question) (gate.Approval, error) {
		return gate.Approval{ID: "a", By: "test"}, nil
	})
	g := newGate(t, p)
	if _, err := g.Do(t.Context(), c); err != nil || !r.taught.Cover(gate.Labels{provenance.Untrusted}) {
		t.Errorf("taught %v, %v", r.taught, err)
	}
	r.decide = func(gate.Query) gate.Decision { return gate.Decision{Effect: gate.Ask} }
	before := r.count("invoke")
	if _, err := g.Do(t.Context(), c); gate.Code(err) != "refused_approve" || r.count("invoke") != before {
		t.Errorf("asked: %v", err)
	}
}

// TestQuarantinedFeature: it is neither listed nor usable.
func TestQuarantinedFeature(t *testing.T) {
	r, c := newUse(gate.FeaturePrompt, gate.GetPrompt, `{"messages":[]}`)
	r.tool.Quarantine = "it looks like another"
	if _, err := r.do(t, c); gate.Code(err) != "refused_pin" || !strings.Contains(err.Error(), "it looks like another") {
		t.Error(err)
	}
}

// listing is an upstream that offers features.
type listing struct {
	*rig
	all []*gate.Tool
}

func (l listing) Features(context.Context, gate.Feature) []*gate.Tool { return l.all }

func TestFeaturesAreListed(t *testing.T) {
	r, _ := newUse(gate.FeaturePrompt, gate.GetPrompt, `{}`)
	held := *r.tool
	held.Quarantine = "held"
	p := r.parts()
	all := []*gate.Tool{r.tool, &held}
	p.Upstream = listing{r, all}
	g := newGate(t, p)
	if got, err := g.Visible(t.Context(), gate.Local(), all); err != nil || len(got) != 1 || got[0] != r.tool {
		t.Errorf("visible are %v, %v", got, err)
	}
	if got, err := g.Features(t.Context(), gate.Local(), gate.FeaturePrompt); err != nil || len(got) != 1 || got[0] != r.tool {
		t.Errorf("listed %v, %v", got, err)
	}
	r.at = func(method string) error {
		if method == "visible" {
			return errInternal
		}
		return nil
	}
	if got, err := g.Features(t.Context(), gate.Local(), gate.FeaturePrompt); err == nil || got != nil {
		t.Errorf("listed %v, %v though nobody could say what may be", got, err)
	}
	if got, err := g.Visible(t.Context(), gate.Local(), all); err == nil || got != nil {
		t.Errorf("visible are %v, %v though nobody could say what may be", got, err)
	}
}
