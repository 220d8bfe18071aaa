package policy_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// A user's file adds a condition to what a grant allows.
func Example() {
	files := fstest.MapFS{"docs.rego": {Data: []byte(`package wasmgate

import data.wasmgate.paths

deny contains "only files below /srv/docs" if {
	input.tool.server == "files"
	not paths.within(input.arguments.path, "/srv/docs")
}
`)}}
	engine, err := policy.Load(context.Background(), files, policy.Options{
		Packs:  []string{"grants", "paths"},
		Grants: []policy.Grant{{To: []string{"role:dev"}, Tools: []string{"files__read_*"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	alice := &gate.Principal{Owner: gate.Owner{ID: "alice"}, Roles: []string{"dev"}}
	tool := &gate.Tool{Name: gate.ToolName{Server: "files", Tool: "read_text"}, Local: "read_text"}
	for _, args := range []string{`{"path":"/srv/docs/a.txt"}`, `{"path":"/etc/passwd"}`, `{}`} {
		d, err := engine.Authorize(context.Background(), gate.Query{
			Call: &gate.Call{Action: gate.CallTool, Who: alice, Args: gate.MustDoc(args)},
			Tool: tool,
		})
		fmt.Println(d.Effect, d.Reasons, err)
	}
	// Output:
	// allow [files__read_* is granted to role:dev] <nil>
	// deny [only files below /srv/docs] <nil>
	// deny [only files below /srv/docs] <nil>
}
