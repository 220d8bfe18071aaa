package local_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A module that is replaced while the policy decides on a call of its tool does not carry out the
// call: what was approved and decided on was the one before.
func TestReplacedMeanwhile(t *testing.T) {
	tool := func(runs, answer string) options.LocalTool {
		return options.LocalTool{
			Definition: gate.MustDoc(rig.Tool("tool")), Module: options.ToolModule{Name: "m", Runs: gate.MustDoc(runs)},
			Call: func(context.Context, *gate.Call, gate.Permit) (gate.Result, error) {
				return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"` + answer + `"}]}`)}, nil
			},
		}
	}
	l, err := local.New("s", rig.Options(), tool(`{"sha256":"1"}`, "approved"))
	if err != nil {
		t.Fatal(err)
	}
	replace := func() {}
	g, err := gate.New(gate.Parts{
		Upstream: l, Sessions: rig.Sessions{}, Sanitizer: rig.SanitizerFunc(rig.Unchanged), Recorder: new(rig.Records),
		Authorizer: rig.AuthorizerFunc(func(gate.Query) gate.Decision { replace(); return gate.Decision{Effect: gate.Allow} }),
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := g.Do(t.Context(), rig.NewCall("s__tool", "{}")); err != nil || !strings.Contains(res.Doc.String(), "approved") {
		t.Fatalf("before: %v, %v", res.Doc, err)
	}
	replace = func() {
		if err := l.Set(tool(`{"sha256":"2"}`, "changed")); err != nil {
			t.Error(err)
		}
	}
	if res, err := g.Do(t.Context(), rig.NewCall("s__tool", "{}")); err == nil || !strings.Contains(err.Error(), "the tool was replaced") {
		t.Errorf("meanwhile: %v, %v", res.Doc, err)
	}
	if res, err := g.Do(t.Context(), rig.NewCall("s__tool", "{}")); err != nil || !strings.Contains(res.Doc.String(), "changed") {
		t.Errorf("afterwards: %v, %v", res.Doc, err)
	}
}
