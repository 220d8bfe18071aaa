package lock_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// A refusal says whether the definition of a tool has changed, or the file of its module
// alone, and a difference tells both apart.
func TestModuleFile(t *testing.T) {
	tool := func(module, description string) lock.Item {
		return lock.Item{Kind: lock.Tool, Name: "a", Doc: gate.MustDoc(`{"name":"a","description":"` + description + `","module":"sha256:` + module + `"}`)}
	}
	for name, tt := range map[string]struct {
		now    lock.Item
		reason string
		others int
	}{
		"the file":                {tool("2", "x"), "the file of the tool's module has changed", 0},
		"the file and more":       {tool("2", "y"), "the tool's definition has changed", 1},
		"the definition":          {tool("1", "y"), "the tool's definition has changed", 1},
		"no file any more":        {lock.Item{Kind: lock.Tool, Name: "a", Doc: gate.MustDoc(`{"name":"a","description":"x"}`)}, "the tool's definition has changed", 1},
		"the file, in a lockfile": {tool("2", "x"), "the file of the tool's module has changed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lock.TrustFirst)
			r.connected("s", tool("1", "x"))
			if strings.Contains(name, "lockfile") {
				r.approve(t, "s")
				if err := r.Reload("me"); err != nil {
					t.Fatal(err)
				}
			}
			r.connected("s", tt.now)
			err := r.Check(&gate.Tool{Name: gate.ToolName{Server: "s", Tool: "a"}, Local: "a", Digest: tt.now.Doc.Digest()})
			if err == nil || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v, want %s", err, tt.reason)
			}
			all := r.Differences(r.Entries())
			if len(all) != 1 {
				t.Fatalf("%d differences", len(all))
			}
			if _, others, changed := all[0].Module(); len(others) != tt.others || changed != (tt.now.Doc.Get("module").Text() == "sha256:2") {
				t.Errorf("others %v, file changed: %v", others, changed)
			}
		})
	}
}
