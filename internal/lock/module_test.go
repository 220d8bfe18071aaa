package lock_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// inModule returns a tool of the module words, with a description.
func inModule(description string) lock.Item {
	i := named("a", description)
	i.Module = "words"
	return i
}

// words returns the module words, with a file and arguments.
func words(file, args string) lock.Item {
	return lock.Item{Kind: lock.Module, Name: "words", Doc: lock.ModuleOf(file, gate.MustDoc(`{"args":["`+args+`"]}`))}
}

// A tool of a module is callable if its definition and its module are approved, as they are
// now. The refusal says which of them has changed, and the difference of the module stands
// once.
func TestModule(t *testing.T) {
	for name, tt := range map[string]struct {
		module, tool lock.Item
		reason       string
		differ       []string
	}{
		"nothing":        {words("1", "x"), inModule("reads"), "", nil},
		"the file":       {words("2", "x"), inModule("reads"), "the tool's module has changed since it was approved", []string{"s module words /code"}},
		"the arguments":  {words("1", "y"), inModule("reads"), "the tool's module has changed since it was approved", []string{"s module words /args/0"}},
		"the definition": {words("1", "x"), inModule("writes"), "the tool's definition has changed since it was approved", []string{"s__a /description"}},
	} {
		for _, lockfile := range []bool{false, true} {
			r := newRig(t, options.PinTrustFirst)
			r.connected("s", words("1", "x"), inModule("reads"))
			if lockfile {
				r.approve(t, "s")
			}
			r.connected("s", tt.module, tt.tool)
			now := tool("s", tt.tool.Doc)
			now.Module, now.ModuleDigest = "words", tt.module.Doc.Digest()
			if err := r.Check(now); (err == nil) != (tt.reason == "") || err != nil && err.Error() != tt.reason {
				t.Errorf("%s: %v, want %s", name, err, tt.reason)
			}
			if r.Pinned(now) != (lockfile && tt.reason == "") {
				t.Errorf("%s: pinned by a person: %v", name, r.Pinned(now))
			}
			var differ []string
			for _, d := range r.differ(t) {
				for _, c := range d.Changes {
					differ = append(differ, d.Label+" "+c.Pointer)
				}
			}
			want(t, name, differ, tt.differ...)
		}
	}
}

// A module in use that was not declared yet is not approved by what was declared before.
func TestModuleBeforeItIsDeclared(t *testing.T) {
	r := newRig(t, options.PinTrustFirst)
	r.connected("s", words("1", "x"), inModule("reads"))
	early := tool("s", inModule("reads").Doc)
	early.Module, early.ModuleDigest = "words", words("2", "x").Doc.Digest()
	if r.Check(early) == nil {
		t.Error("a tool is callable in a module that was not declared")
	}
}

// The approval of a tool has its module with it.
func TestApprovalOfAToolInAModule(t *testing.T) {
	r := newRig(t, options.PinStrict)
	r.connected("s", words("1", "x"), inModule("reads"), named("b", "is in none"))
	review, err := r.Review("s__a", nil)
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, p := range review.Approval {
		labels = append(labels, p.String())
	}
	want(t, "approval", labels, "s module words", "s__a")
}

// Of a definition that is known by its digests alone, as of a lockfile from another machine,
// only the parts are shown that differ.
func TestDifferenceByDigests(t *testing.T) {
	first := newRig(t, options.PinTrustFirst)
	first.connected("s", item(`{"name":"a","title":"A","description":"reads","inputSchema":{"type":"object"}}`))
	first.approve(t, "s")
	elsewhere := first.options
	elsewhere.Dir = t.TempDir()
	r := rigOn(t, elsewhere)
	r.connected("s", item(`{"name":"a","description":"writes","inputSchema":{"type":"object"}}`))
	all := r.differ(t)
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	d := all[0]
	if got := strings.Join(d.Unchanged, " "); got != "inputSchema name" || d.Known {
		t.Errorf("unchanged: %s; known: %v", got, d.Known)
	}
	var places []string
	for _, c := range d.Changes {
		places = append(places, c.Pointer+" "+c.New)
		if !strings.HasPrefix(c.Old, "sha256:") {
			t.Errorf("%s was %q, want a digest", c.Pointer, c.Old)
		}
	}
	want(t, "changes", places, `/description "writes"`, "/title ")
}
