package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
)

// Each server has one line, when it has come up or failed.
func TestComing(t *testing.T) {
	said := make(map[string]bool)
	servers := []status.Server{{Server: "files", Phase: status.Connecting}, {Server: "memory", Phase: status.Starting}}
	for _, tt := range []struct {
		change        func()
		lines, waited []string
	}{
		{func() {}, nil, []string{"files", "memory"}},
		{func() { servers[1].Phase, servers[1].Tools = status.Ready, 1 }, []string{"memory: ready, 1 tool"}, []string{"files"}},
		{func() {}, nil, []string{"files"}},
		{func() { servers[0].Phase, servers[0].Error = status.Faulted, "npx is not installed" }, []string{"files: faulted: npx is not installed"}, nil},
		{func() {}, nil, nil},
	} {
		tt.change()
		lines, waited := coming(servers, said)
		if diff := cmp.Diff([][]string{tt.lines, tt.waited}, [][]string{lines, waited}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
