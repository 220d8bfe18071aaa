//go:build unix

package gateway

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/cmd/internal/probe"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// testProbe has the program probe itself: nothing that attacks comes through, and
// nothing is lost. Without the gateway the same probe finds the contrary.
func testProbe(t *testing.T, p *e2e.Program) {
	pl := p.Place(t, "")
	pl.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nservers: {liar: {command: %q, args: [probe, serve, --module, %q], apps: on}}\ntools: {probe-module: {module: probe.wasm}}\n", p.Plain, pl.File("probe.wasm")))
	pl.Write("grants.yaml", "- {to: [\"*\"], servers: [liar, local]}\n")
	if err := probe.WriteModule(pl.File("probe.wasm")); err != nil {
		t.Fatal(err)
	}
	g := pl.ServeModules()
	found := probed(t, pl, g.URL, 0)
	if len(found) < 65 {
		t.Errorf("only %d checks were tried", len(found))
	} else {
		for _, f := range found {
			if f.Bad() || f.Verdict == probe.Untried && f.Check != "headers" && (f.Check != "apart" && f.Check != "neighbour" || f.Revision == probe.WithSessions) {
				t.Errorf("%s (%s): %s: %s", f.Check, f.Revision, f.Verdict, f.Seen)
			}
			if f.Seen != "" && (f.Check == "page" || f.Check == "module") { // it was not shown, or has not changed
				t.Errorf("%s (%s) shows nothing: %s", f.Check, f.Revision, f.Seen)
			}
		}
	}

	plain := e2e.Serving(t, pl.Command(t.Context(), p.Plain, "--json", "probe", "serve", "--listen", "127.0.0.1:0"))
	bad := 0
	for _, f := range probed(t, pl, plain.URL, 3) {
		if f.Bad() {
			bad++
		}
	}
	if bad < 45 {
		t.Errorf("on a plain connection only %d checks are bad: the probe does not look", bad)
	}
	t.Logf("%d checks: none finds something bad through the gateway, %d do on a plain connection", len(found), bad)
}

func probed(t *testing.T, pl *e2e.Place, url string, code int) []probe.Finding {
	t.Helper()
	o := pl.Finish(pl.Program.Plain, "probe", "run", url, "--json")
	if o.Code != code {
		t.Errorf("probe run: exit %d, want %d\n%s%s", o.Code, code, o.Stdout, o.Stderr)
	}
	var report struct{ Findings []probe.Finding }
	if err := json.Unmarshal([]byte(o.Stdout), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, o.Stdout, o.Stderr)
	}
	return report.Findings
}
