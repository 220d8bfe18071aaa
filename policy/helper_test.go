package policy_test

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// load compiles a policy. Unless told otherwise it may take 5 s to decide, so
// that a busy machine fails no test.
func load(tb testing.TB, files fstest.MapFS, o policy.Options) *policy.Engine {
	tb.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	var fsys fs.FS
	if files != nil {
		fsys = files
	}
	e, err := policy.Load(tb.Context(), fsys, o)
	if err != nil {
		tb.Fatal(err)
	}
	policy.Hurry(e, time.Hour) // steps bound the decisions of tests: what else runs on the machine does not count
	return e
}

// user is a tree of one file with the given rules.
func user(rules string) fstest.MapFS {
	return fstest.MapFS{"user.rego": {Data: []byte("package wasmgate\n\n" + rules)}}
}

func newTool(name string) *gate.Tool {
	n, err := gate.ParseToolName(name)
	if err != nil {
		panic(err)
	}
	return &gate.Tool{Name: n, Local: n.Tool, Offered: name}
}
