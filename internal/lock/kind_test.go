package lock_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// things has one thing of each kind.
func things(t testing.TB) []lock.Item {
	program, _ := lock.Program{Command: write(t, filepath.Join(t.TempDir(), "server"), "v1"), Args: []string{"--x"}}.Identity()
	return []lock.Item{
		program,
		{Kind: lock.Instructions, Doc: gate.MustDoc(`"be kind"`)},
		{Kind: lock.Module, Name: "words", Doc: lock.ModuleOf("1", gate.MustDoc(`{"args":["-c","print(1)"],"stdin":"{{x}}","stdout":"text","imports":{"stub":["env.*"]},
			"snapshot":"warm","warm":{"tool":"a","arguments":{"n":1}},"limits":{"fuel":1,"memory":"1MiB"},"isolation":"call","wants":{"kv":true,"http":[{"origin":"https://example.com"}]}}`))},
		{Kind: lock.Tool, Name: "a", Doc: gate.MustDoc(`{"name":"a","title":"A","description":"reads","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":1},"icons":[{"src":"https://example.com"}]}`)},
		{Kind: lock.Prompt, Name: "p", Doc: gate.MustDoc(`{"name":"p","description":"writes","arguments":[{"name":"x","required":true}]}`)},
		{Kind: lock.Template, Name: "f:///{x}", Doc: gate.MustDoc(`{"uriTemplate":"f:///{x}","name":"f","mimeType":"text/plain"}`)},
	}
}

// state returns that of a thing in a listing.
func state(r *rig, k lock.Key) lock.State {
	for _, e := range r.Entries() {
		if e.Key == k {
			return e.State
		}
	}
	return ""
}

// A change of any part of a thing of any kind is caught, trusted or approved, and shown in
// that part. Nothing else of the server is quarantined by it, and what is written in another
// order is no change.
func TestEveryPartOfEachKind(t *testing.T) {
	m := mutator{seed.Rand(t)}
	all := things(t)
	for n, thing := range all {
		r, approved := newRig(t, options.PinTrustFirst), newRig(t, options.PinTrustFirst)
		r.connected("s", all...)
		approved.connected("s", all...)
		approved.approve(t, "s")
		var parts []string
		for name := range thing.Doc.Members() {
			parts = append(parts, name)
		}
		slices.Sort(parts)
		if parts == nil { // a text is one part
			parts = []string{""}
		}
		for _, part := range parts {
			changed := thing
			place := ""
			if part == "" {
				changed.Doc = m.mutate(t, thing.Doc)
			} else {
				place = "/" + part
				changed.Doc = thing.Doc.With(part, m.mutate(t, thing.Doc.Get(part)).Raw())
			}
			now := slices.Clone(all)
			now[n] = changed
			for _, r := range []*rig{r, approved} {
				r.connected("s", now...)
				for i, other := range all {
					k := lock.Key{Server: "s", Kind: other.Kind, Name: other.Name}
					if got := state(r, k).Quarantined(); got != (i == n) {
						t.Errorf("%s of %s: %s is quarantined: %v\n%s\n%s", part, thing.Kind, k, got, thing.Doc, changed.Doc)
					}
				}
				differ := r.differ(t)
				if len(differ) != 1 {
					t.Fatalf("%s of %s: %v", part, thing.Kind, differ)
				}
				for _, c := range differ[0].Changes {
					if len(c.Pointer) < len(place) || c.Pointer[:len(place)] != place {
						t.Errorf("%s of %s: a change at %s", part, thing.Kind, c.Pointer)
					}
				}
			}
		}
		now := slices.Clone(all)
		now[n].Doc = m.shuffle(t, thing.Doc)
		r.connected("s", now...)
		if differ := r.differ(t); len(differ) > 0 {
			t.Errorf("%s in another order: %v", thing.Kind, differ)
		}
	}
}

// The findings of a scan are shown with the change that they are in, or else by themselves.
func TestFindingsBesideChanges(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.connected("s", item(`{"name":"a","title":"A","description":"reads"}`))
	r.connected("s", item(`{"name":"a","title":"A","description":"writes"}`))
	review, err := r.Review("", func(k lock.Key, d gate.Doc) []scan.Finding {
		if k.Server != "s" || k.Kind != lock.Tool || d.Get("description").Text() != "writes" {
			t.Errorf("scanned: %s of %s", d, k)
		}
		return []scan.Finding{{Rule: "one", At: "/description"}, {Rule: "two", At: "/title"}}
	})
	if err != nil || len(review.Differences) != 1 {
		t.Fatalf("%v, %v", review, err)
	}
	d := review.Differences[0]
	if len(d.Changes) != 1 || len(d.Changes[0].Findings) != 1 || d.Changes[0].Findings[0].Rule != "one" || len(d.Findings) != 1 || d.Findings[0].Rule != "two" {
		b, _ := json.Marshal(d)
		t.Error(string(b))
	}
}

// A lockfile that two branches have added versions to is merged line by line.
func TestEachVersionIsOneLine(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.connected("s", things(t)...)
	r.approve(t, "s")
	f, err := lock.Load(r.options.File)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make(map[string]bool)
	for _, p := range f.Pins() {
		blocks[fmt.Sprint(p.Key)] = true
		if p.Parts == "" && p.Kind != lock.Instructions {
			t.Errorf("%s has no parts", p)
		}
	}
	if len(blocks) != len(things(t)) {
		t.Errorf("approved: %v", blocks)
	}
}
