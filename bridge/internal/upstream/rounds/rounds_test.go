package rounds

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

func TestMoreOf(t *testing.T) {
	const asks = `"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}`
	for answer, why := range map[string]string{
		`{"content":[]}`:                         "",
		`{"resultType":"complete","content":[]}`: "",
		`{` + asks + `,"requestState":"s"}`:      "",
		`{` + asks + `,"content":[]}`:            "", // which the Go SDK writes
		`{` + asks + `,"content":[{}]}`:          "but also has content",
		`{` + asks + `,"requestState":1}`:        "not a string",
		`{"resultType":"task"}`:                  "not declared",
		`{"resultType":"other"}`:                 "which MCP does not define",
		`{"resultType":"input_required"}`:        "neither inputRequests nor requestState",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"system/exec"}}}`:            "which a server cannot ask of a client",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":[]}}}`: "not an object",
		`{"resultType":"input_required","inputRequests":[]}`:                                        "not an object",
	} {
		m, err := MoreOf(gate.CallTool, gate.MustDoc(answer))
		switch {
		case why != "" && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s: %v, want %q", answer, err, why)
		case why == "" && (err != nil || (m != nil) != strings.Contains(answer, "input_required")):
			t.Errorf("%s: asks for more: %t, %v", answer, m != nil, err)
		}
	}
	if _, err := MoreOf(gate.Complete, gate.MustDoc(`{`+asks+`}`)); err == nil {
		t.Error("a completion may ask for more")
	}
}

func TestBrought(t *testing.T) {
	params := []byte(`{"name":"t"}`)
	if got := string(BroughtBy(&gate.Call{}).With(params)); got != string(params) {
		t.Errorf("nothing is brought: %s", got)
	}
	c := &gate.Call{Brought: gate.Brought{Responses: gate.MustDoc(`{"a":{"roots":[]}}`), State: `"s"`}}
	if got := string(BroughtBy(c).With(params)); got != `{"name":"t","inputResponses":{"a":{"roots":[]}},"requestState":"\"s\""}` {
		t.Errorf("got %s", got)
	}
}
