package fleet_test

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A Go function as a tool, behind a gate.
func ExampleFleet() {
	double, err := local.New("local", rig.Options(), options.LocalTool{
		Definition: gate.MustDoc(`{
			"name": "double",
			"description": "Doubles a number.",
			"inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
		}`),
		Call: func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
			var n int
			fmt.Sscan(c.Args.Get("n").String(), &n)
			return gate.Result{Doc: gate.MustDoc(fmt.Sprintf(`{"content":[],"structuredContent":{"n":%d}}`, 2*n))}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := fleet.New(fleet.Config{Locals: []*local.Server{double}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()
	g, err := gate.New(gate.Parts{ // a program brings its own parts
		Upstream: fleet, Authorizer: rig.AuthorizerFunc(rig.Allow), Sessions: rig.Sessions{},
		Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: new(rig.Records),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"n": 21}`, `{"n": "many"}`} {
		res, err := g.Do(context.Background(), gate.Call{Action: gate.CallTool, Name: "local__double", Args: gate.MustDoc(args), Who: gate.Local()})
		fmt.Println(res.Doc, gate.Code(err))
	}
	// Output:
	// {"content":[],"structuredContent":{"n":42}} ok
	//  refused_validate_input
}
