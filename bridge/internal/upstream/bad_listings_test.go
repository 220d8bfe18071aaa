package upstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// TestBadListings: what is wrong with a listing is named in the status, costs no more than what
// is wrong, and never another server.
func TestBadListings(t *testing.T) {
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i)
	}
	many[5_000] = `{"name":"broken","inputSchema":{"type":"string"}}`
	files := make([]string, 200)
	for i := range files {
		files[i] = fmt.Sprintf(`"p%d":{"$ref":"file%d.json#/properties/p%d"}`, i, i, (i+1)%len(files))
	}
	tests := map[string]struct {
		tools   string
		offered int
		says    string
	}{
		"one of 10,000 is broken":              {strings.Join(many, ","), 9_999, "broken"},
		"a definition of 5 MB":                 {rig.EchoTool + `,{"name":"large","description":"` + strings.Repeat("x", 5_000_000) + `","inputSchema":{"type":"object"}}`, 1, "more than the 1 MiB"},
		"a schema that goes through 200 files": {rig.EchoTool + `,{"name":"files","inputSchema":{"type":"object","properties":{` + strings.Join(files, ",") + `}}}`, 1, "the schema refers to another document"},
		"a schema that refers to itself":       {rig.EchoTool + `,{"name":"loop","inputSchema":{"type":"object","$ref":"#"}}`, 1, "loop"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bad := rig.NewScript(nil)
			bad.List(tt.tools)
			f := rig.Connected(t, fleet.Config{Servers: []options.Endpoint{bad.Config("bad"), rig.NewScript(nil).Config("good")}})
			n := 0
			for _, tool := range f.KnownFeatures(gate.FeatureTool) {
				if tool.Name.Server == "bad" {
					n++
				}
			}
			if n != tt.offered {
				t.Errorf("%d tools, want %d", n, tt.offered)
			}
			if _, err := rig.Do(t.Context(), t, f, "good__echo", "{}"); err != nil {
				t.Errorf("the other server: %v", err)
			}
			st := f.Status()
			if st[0].Phase != status.Ready || !strings.Contains(fmt.Sprint(st[0].Notes), tt.says) || len(st[1].Notes) != 0 {
				t.Errorf("status %s, notes %.500s; the other's %v", st[0].Phase, fmt.Sprint(st[0].Notes), st[1].Notes)
			}
		})
	}
}
