package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// TestPacks runs the tests that the shipped policies bring with them.
func TestPacks(t *testing.T) {
	unraced.Long(t)
	results, coverage, err := policy.Test(t.Context(), nil, policy.Options{Packs: policy.Packs()})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 10 {
		t.Errorf("%d tests, want those of all packs", len(results))
	}
	for _, r := range results {
		if r.Outcome != policy.Passed {
			t.Errorf("%s:%d: %s: %s %s\n%s", r.File, r.Line, r.Name, r.Outcome, r.Error, r.Output)
		}
	}
	for _, f := range coverage.Files {
		if f.File != "pack://decision.rego" && len(f.Uncovered) > 0 { // which declares sets that nothing is in
			t.Errorf("%s: no test evaluates lines %v", f.File, f.Uncovered)
		}
	}
}

func TestTest(t *testing.T) {
	files := tree(map[string]string{
		"p.rego": `package wasmgate

deny contains "no" if {
	input.tool.name == "a__b"
	print("denied", input.tool.name)
}

ask contains "why" if {
	input.arguments.never_tested == 1
}
`,
		"p_test.rego": `package wasmgate_test

import data.wasmgate

test_pass if "no" in wasmgate.deny with input as {"tool": {"name": "a__b"}}

test_fail if "no" in wasmgate.deny with input as {"tool": {"name": "a__c"}}

test_error if to_number("x") == 1

todo_test_later if false

test_own_grants if {
	wasmgate.decision.effect == "allow" with input as call
}

test_other_grants if {
	wasmgate.decision.effect == "deny" with input as call with data.grants as []
}

call := {
	"action": "tools/call", "principal": {"id": "alice", "roles": []},
	"tool": {"name": "files__read_x", "sandboxed": false, "capabilities": {}}, "arguments": {},
}

test_broken_grants if {
	wasmgate.decision.effect == "deny" with input as call with data.grants as [{"for": "alice"}]
}
`,
	})
	results, coverage, err := policy.Test(t.Context(), files, policy.Options{Grants: someone})
	if err != nil {
		t.Fatal(err)
	}
	var got []policy.TestResult
	for _, r := range results {
		if strings.HasPrefix(r.File, "pack://") {
			continue
		}
		r.Error, _, _ = strings.Cut(r.Error, "\n")
		got = append(got, r)
	}
	want := []policy.TestResult{
		{Name: "data.wasmgate_test.test_pass", Line: 5, Outcome: policy.Passed, Output: "denied a__b\n"},
		{Name: "data.wasmgate_test.test_fail", Line: 7, Outcome: policy.Failed},
		{Name: "data.wasmgate_test.test_error", Line: 9, Outcome: policy.Errored},
		{Name: "data.wasmgate_test.todo_test_later", Line: 11, Outcome: policy.Skipped},
		{Name: "data.wasmgate_test.test_own_grants", Line: 13, Outcome: policy.Passed},
		{Name: "data.wasmgate_test.test_other_grants", Line: 17, Outcome: policy.Passed},
		{Name: "data.wasmgate_test.test_broken_grants", Line: 26, Outcome: policy.Errored},
	}
	for i := range want {
		want[i].File = "p_test.rego"
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(policy.TestResult{}, "Took", "Error")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, r := range got {
		if (r.Outcome == policy.Errored) != (r.Error != "") {
			t.Errorf("%s: outcome %s with error %q", r.Name, r.Outcome, r.Error)
		}
	}
	for _, f := range coverage.Files {
		if f.File == "p.rego" {
			if diff := cmp.Diff([]policy.Lines{{From: 8, To: 9}}, f.Uncovered); diff != "" {
				t.Errorf("uncovered (-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("no coverage of p.rego in %+v", coverage)
}

func TestTestsThatDoNotCompile(t *testing.T) {
	unraced.Long(t)
	_, _, err := policy.Test(t.Context(), tree(map[string]string{"a_test.rego": "package a_test\n\ntest_a if nonsense(1)"}), policy.Options{})
	var ce *policy.CompileError
	if !errors.As(err, &ce) || ce.Problems[0].File != "a_test.rego" || ce.Problems[0].Line != 3 {
		t.Errorf("error = %v, want a problem at a_test.rego:3", err)
	}
}
