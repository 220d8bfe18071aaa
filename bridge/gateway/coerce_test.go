package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
)

// Arguments as models write them reach policy, log and server as what the schema says;
// what loses something is refused with what would pass, and counted.
func TestArgumentsAreCoerced(t *testing.T) {
	const definition = `{"name":"shoot","inputSchema":{"type":"object","properties":{"scale":{"type":"string","enum":["css","device"],"default":"css"},
		"n":{"type":"integer"},"full":{"type":"boolean"},"of":{"type":"array","items":{"type":"string"}}},"required":["scale"]}}`
	got := ""
	shoot := options.LocalTool{Definition: gate.MustDoc(definition), Call: func(_ context.Context, c *gate.Call, _ gate.Permit) (gate.Result, error) {
		got = c.Args.String()
		return text("ok"), nil
	}}
	const rego = `package wasmgate
allow contains "a" if { input.tool.local_name == "shoot"; input.arguments.n < 5; input.arguments.scale == "css" }
allow contains "b" if { input.tool.server == "warn" }`
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	cfg := gateway.Config{
		Audit: path, AuditOptions: audit.Options{Node: "n", Record: "full"},
		Functions: map[string][]options.LocalTool{"coerce": {shoot}, "enforce": {shoot}, "warn": {shoot}, "bytool": {shoot}},
		Inputs: map[string]*gateway.InputRules{
			"enforce": {Mode: "enforce"}, "warn": {Mode: "warn"},
			"bytool": {Tools: []gateway.InputRule{{Pattern: "sh*", Mode: "enforce"}}},
		},
	}
	cfg.Policy.Files = fstest.MapFS{"a.rego": {Data: []byte(rego)}}
	g := start(t, cfg)

	tests := map[string]struct{ tool, args, want, reason string }{
		"all":                      {"coerce__shoot", `{"n":"2","full":"true","of":"a"}`, `{"n":2,"full":true,"of":["a"],"scale":"css"}`, ""},
		"nothing":                  {"coerce__shoot", `{"n":2, "scale":"css"}`, `{"n":2, "scale":"css"}`, ""},
		"the policy sees a number": {"coerce__shoot", `{"n":"7"}`, "", "no policy allows"},
		"no number":                {"coerce__shoot", `{"n":2,"full":"yes"}`, "", `/full: expected boolean, found string; it takes {scale: "css" | "device", full?: boolean, n?: integer, of?: list of string}`},
		"enforced":                 {"enforce__shoot", `{"n":2}`, "", "no policy allows"},
		"enforced for the tool":    {"bytool__shoot", `{"n":2,"scale":"css","full":"true"}`, "", "/full: expected boolean"},
		"warned":                   {"warn__shoot", `{"n":"2"}`, `{"n":"2"}`, ""},
	}
	for name, tt := range tests {
		got = ""
		res, err := call(g, tt.tool, tt.args)
		if got != tt.want {
			t.Errorf("%s: the server got %s, want %s: %v", name, got, tt.want, err)
		}
		if refused, ok := errors.AsType[*gate.Refusal](err); ok != (tt.reason != "") || ok && !strings.Contains(refused.Reason, tt.reason) {
			t.Errorf("%s: %v", name, err)
		}
		if found := res.Doc.At("/_meta").String(); err == nil && (got != tt.args || name == "warned") != (found != "") {
			t.Errorf("%s: found %s", name, found)
		}
	}
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"args_sha256":"` + gate.MustDoc(tests["all"].want).Digest() + `"`, `"arguments":` + tests["all"].want,
		`{"rule":"input/coerced","at":"arguments:/n","count":1,"removed":true}`, `{"rule":"schema/input","at":"arguments:","count":1,"removed":false}`,
	} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log does not hold %s", want)
		}
	}
	broken := g.Operator().BrokenInputs()
	if len(broken) != 2 || broken[0].Tool != "bytool__shoot" || broken[0].Calls != 1 || !strings.Contains(broken[1].Last, "/full") {
		t.Errorf("counted %+v", broken)
	}
}
