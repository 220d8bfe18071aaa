package study_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/internal/engine"
)

var (
	noPacks = []string{}
	alice   = &gate.Principal{Owner: gate.Owner{ID: "alice"}, Auth: "local", Roles: []string{"dev"}}
	someone = []policy.Grant{{To: []string{"alice"}, Tools: []string{"files__read_*"}}}
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
	engine.Of(e).Wall = time.Hour // steps bound the decisions of tests: what else runs on the machine does not count
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

// query is a call of a tool by alice.
func query(tool, args string) gate.Query {
	return gate.Query{
		Call: &gate.Call{Action: gate.CallTool, Name: tool, Args: gate.MustDoc(args), Who: alice},
		Tool: newTool(tool),
	}
}

func newPrompt(name string) *gate.Tool {
	t := newTool(name)
	t.Feature = gate.FeaturePrompt
	return t
}

func newResource(f gate.Feature, server, uri string) *gate.Tool {
	return &gate.Tool{Feature: f, Name: gate.ToolName{Server: server}, Local: uri, Offered: uri, MIME: "text/plain"}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
