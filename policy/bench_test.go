package policy_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// thousand are 1,000 grants: 50 roles with 18 tools, a pattern and a server
// each.
func thousand() []policy.Grant {
	var grants []policy.Grant
	for r := range 50 {
		to := []string{fmt.Sprintf("role:role%d", r)}
		for i := range 18 {
			grants = append(grants, policy.Grant{To: to, Tools: []string{fmt.Sprintf("srv%d__tool%d", r, i)}})
		}
		grants = append(grants,
			policy.Grant{To: to, Tools: []string{fmt.Sprintf("srv%d__read_*", r)}},
			policy.Grant{To: to, Servers: []string{fmt.Sprintf("whole%d", r)}, Except: []string{fmt.Sprintf("whole%d__delete_*", r)}})
	}
	return grants
}

// conditional is a user's policy with a rule on arguments.
var conditional = fstest.MapFS{"user.rego": {Data: []byte(`package wasmgate

deny contains "only below /srv" if {
	input.tool.local_name == "write_file"
	not startswith(input.arguments.path, "/srv/")
}

deny contains "never" if input.tool.server == "forbidden"
`)}}

var benchCaller = &gate.Principal{Owner: gate.Owner{ID: "user7"}, Auth: "local", Roles: []string{"role1", "role2", "role3"}}

// BenchmarkAuthorize measures a decision with 1,000 grants, from the query to
// the decoded decision. The promise is 2 us if it does not depend on the call,
// and 30 us of CPU if it does. Rows that begin with "in full" do without what is
// kept of earlier decisions.
func BenchmarkAuthorize(b *testing.B) {
	args := gate.MustDoc(`{"path":"/srv/docs/a.txt","lines":[1,2,3],"options":{"follow":true,"depth":4}}`)
	files := fstest.MapFS{"user.rego": conditional["user.rego"], "more.rego": {Data: []byte(`package wasmgate

labels contains "wrote" if {
	input.tool.local_name == "append_file"
	startswith(input.arguments.path, "/srv/")
}
`)}}
	e := load(b, files, policy.Options{Grants: thousand()})
	for _, c := range []struct{ name, tool string }{
		{"fixed/exact", "srv2__tool4"}, {"fixed/prefix", "srv2__read_file"}, {"fixed/server", "whole3__list"}, {"fixed/denied", "srv9__tool1"},
		{"guarded/allowed", "whole3__write_file"}, {"guarded/denied", "srv9__write_file"}, {"open", "whole3__append_file"},
	} {
		q := gate.Query{Call: &gate.Call{Action: gate.CallTool, Who: benchCaller, Args: args}, Tool: newTool(c.tool)}
		measure := func(name string, authorize func(context.Context, gate.Query) (gate.Decision, error)) {
			b.Run(name+c.name, func(b *testing.B) {
				b.ReportAllocs()
				began := cpuTime()
				for b.Loop() {
					if _, err := authorize(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64((cpuTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
		measure("in full/", func(ctx context.Context, q gate.Query) (gate.Decision, error) { return policy.InFull(e, ctx, q) })
		measure("", e.Authorize)
	}
}

// BenchmarkVisible measures the listing of 1,000 tools with 1,000 grants.
func BenchmarkVisible(b *testing.B) {
	var tools []*gate.Tool
	for i := range 1000 {
		tools = append(tools, newTool(fmt.Sprintf("srv%d__tool%d", i%50, i/50)))
	}
	for _, p := range []struct {
		name  string
		files fstest.MapFS
	}{{"grants", nil}, {"grants and a deny rule", conditional}} {
		e := load(b, p.files, policy.Options{Grants: thousand(), Timeout: 5 * time.Second})
		b.Run(p.name+"/cold", func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				who := *benchCaller
				who.ID = fmt.Sprintf("user%d", n)
				if _, err := e.Visible(b.Context(), &who, tools); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(p.name+"/warm", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Visible(b.Context(), benchCaller, tools); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVisibleToAnother measures the first list of 1,000 tools of somebody whose roles
// another has, with 1,000 grants to roles.
func BenchmarkVisibleToAnother(b *testing.B) {
	var tools []*gate.Tool
	for i := range 1000 {
		tools = append(tools, newTool(fmt.Sprintf("srv%d__tool%d", i%50, i/50)))
	}
	grants := thousand()
	for i := range grants {
		grants[i].To = []string{"role:dev"}
	}
	e := load(b, nil, policy.Options{Grants: grants, Timeout: 5 * time.Second})
	n := 0
	list := func() {
		n++
		who := &gate.Principal{Owner: gate.Owner{ID: fmt.Sprintf("user%d", n)}, Auth: "bearer", Client: fmt.Sprint(n), Roles: []string{"dev"}}
		if visible, err := e.Visible(b.Context(), who, tools); err != nil || len(visible) != len(tools) {
			b.Fatal(visible, err)
		}
	}
	list()
	b.ReportAllocs()
	for b.Loop() {
		list()
	}
}

// BenchmarkLoad measures what a reload costs.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	grants := thousand()
	for b.Loop() {
		load(b, conditional, policy.Options{Grants: grants})
	}
}
