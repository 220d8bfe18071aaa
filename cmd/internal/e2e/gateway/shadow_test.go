//go:build unix

package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testShadow has a shadow policy decide along with the one in use. Differences are recorded,
// nothing is enforced, and when it breaks nothing else does.
func testShadow(t *testing.T, p *e2e.Program) {
	pl := p.Place(t, "audit: {record: full}\n")
	pl.Write("next/next.rego", "package wasmgate\n\ndeny contains \"no sha1 any more\" if input.arguments.algorithm == \"sha1\"\n")
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s, shadow: {paths: [next]}}\naudit: {record: full}\n")
	pl.Serve()
	hash := func(algorithm string) {
		t.Helper()
		pl.Must("call", "local__hash", `{"text":"hello","algorithm":"`+algorithm+`"}`)
	}
	differences := func() []e2e.Logged {
		return slices.DeleteFunc(pl.Log(), func(e e2e.Logged) bool { return e.Event != "shadow" })
	}
	hash("sha256")
	hash("sha1")
	timelimit.Wait(t, "the difference is recorded", func() bool { return len(differences()) == 1 })
	d, call := differences()[0], pl.LastDone("local__hash")
	if d.ID != call.ID || d.Effect != "allow" || !strings.Contains(d.Raw, `"shadow":{"effect":"deny","reasons":["no sha1 any more"],"revision":"`) || !strings.Contains(d.Raw, `"differs":["effect"]`) {
		t.Errorf("the difference of call %s: %s", call.ID, d.Raw)
	}
	if table := pl.Must("audit"); !strings.Contains(table, "allow here, deny by the shadow policy: no sha1 any more") {
		t.Errorf("audit does not show the difference: %s", table)
	}
	if s := pl.Must("status"); !strings.Contains(s, ": 2 calls compared, 1 differed, 0 dropped") {
		t.Errorf("status does not tell of the shadow policy: %s", s)
	}
	checkDecisionLog(t, pl, call)

	pl.Write("next/next.rego", "package wasmgate\n\ndeny contains nonsense(1)\n")
	timelimit.Wait(t, "status tells that the shadow policy does not compile", func() bool {
		return strings.Contains(pl.Must("status"), "shadow policy: next/next.rego:3: ")
	})
	hash("sha1") // the one before it still decides
	timelimit.Wait(t, "the difference is recorded", func() bool { return len(differences()) == 2 })
	pl.Verify()
}

// checkDecisionLog reads the decisions as a tool for OPA would.
func checkDecisionLog(t *testing.T, pl *e2e.Place, call e2e.Logged) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(pl.Must("audit", "--format", "decision-log")), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d decisions, want one for each call: %q", len(lines), lines)
	}
	var d struct {
		DecisionID string `json:"decision_id"`
		Path       string
		Bundles    map[string]struct{ Revision string }
		Input      struct {
			Action    string
			Principal struct{ ID string }
			Arguments struct{ Algorithm string }
		}
		Result  struct{ Effect string }
		Erased  []string
		Metrics map[string]int64
	}
	if err := json.Unmarshal([]byte(lines[1]), &d); err != nil {
		t.Fatal(err)
	}
	if d.DecisionID != call.ID || d.Path != "wasmgate/decision" || d.Result.Effect != "allow" || d.Bundles["wasmgate"].Revision == "" ||
		d.Input.Action != "tools/call" || d.Input.Principal.ID != "local" || d.Input.Arguments.Algorithm != "sha1" || d.Metrics["timer_rego_query_eval_ns"] <= 0 {
		t.Errorf("the decision: %s", lines[1])
	}
	if slices.Contains(d.Erased, "/input/arguments") || !slices.Contains(d.Erased, "/input/provenance") {
		t.Errorf("erased %q, want what is not recorded", d.Erased)
	}
}
