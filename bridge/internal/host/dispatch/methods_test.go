package dispatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/gate"
)

// The table has each request that message.Served names, and no other: only those are looked at as
// methods of MCP.
func TestMethods(t *testing.T) {
	d, err := New(Config{
		Do:    func(context.Context, gate.Call) (gate.Result, error) { return gate.Result{}, nil },
		Tools: func(context.Context, *gate.Principal) ([]*gate.Tool, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	served := slices.DeleteFunc(slices.Clone(message.Served), func(name string) bool { return strings.HasPrefix(name, "notifications/") })
	slices.Sort(served)
	if has := slices.Sorted(maps.Keys(d.methods)); !slices.Equal(has, served) {
		t.Errorf("the table has %q, and served are %q", has, served)
	}
}
