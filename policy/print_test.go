package policy_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/policy"
)

// TestPrint: what rules print reaches the caller that wants it, and changes no decision.
func TestPrint(t *testing.T) {
	files := tree(map[string]string{"p.rego": "package wasmgate\n\nallow contains \"yes\" if {\n\tprint(\"tool\", input.tool.name)\n\tinput.tool.name == \"a__b\"\n}\n"})
	var said strings.Builder
	var decisions, revisions []string
	for _, o := range []policy.Options{{}, {Print: &said}} {
		e, err := policy.Load(t.Context(), files, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := policy.Eval(t.Context(), e, []byte(`{"action":"tools/call","tool":{"name":"a__b"}}`))
		if err != nil {
			t.Fatal(err)
		}
		decisions, revisions = append(decisions, string(b)), append(revisions, e.Revision())
	}
	if decisions[0] != decisions[1] || revisions[0] != revisions[1] || said.String() != "tool a__b\n" {
		t.Errorf("decisions %q, revisions %q, printed %q", decisions, revisions, said.String())
	}
}

// TestFailedCases: of a test with cases those that failed are named.
func TestFailedCases(t *testing.T) {
	files := tree(map[string]string{
		"p.rego":      "package wasmgate\n",
		"p_test.rego": "package wasmgate_test\n\ntest_sizes[name] if {\n\tsome name, n in {\"small\": 1, \"large\": 20, \"huge\": 30}\n\tn < 10\n}\n",
	})
	results, _, err := policy.Test(t.Context(), files, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if strings.HasSuffix(r.Name, "test_sizes") {
			if r.Outcome != policy.Failed || !strings.Contains(r.Error, "huge") || !strings.Contains(r.Error, "large") || strings.Contains(r.Error, "small") {
				t.Errorf("%+v", r)
			}
			return
		}
	}
	t.Errorf("no such test among %d", len(results))
}
