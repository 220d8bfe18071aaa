//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/cmd/internal/probe"
)

// testProbe has the program probe itself: nothing that attacks comes through, and
// nothing is lost. Without the gateway the same probe finds the contrary.
func testProbe(t *testing.T, p *program) {
	pl := p.place(t, "")
	pl.write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\nservers: {liar: {command: %q, args: [probe, serve, --module, %q], apps: on}}\ntools: {probe-module: {module: probe.wasm}}\n", p.plain, pl.file("probe.wasm")))
	pl.write("grants.yaml", "- {to: [\"*\"], servers: [liar, local]}\n")
	if err := probe.WriteModule(pl.file("probe.wasm")); err != nil {
		t.Fatal(err)
	}
	g := pl.serveModules()
	found := probed(t, pl, g.url, 0)
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

	plain := serving(t, pl.command(t.Context(), p.plain, "--json", "probe", "serve", "--listen", "127.0.0.1:0"))
	bad := 0
	for _, f := range probed(t, pl, plain.url, 3) {
		if f.Bad() {
			bad++
		}
	}
	if bad < 45 {
		t.Errorf("on a plain connection only %d checks are bad: the probe does not look", bad)
	}
	t.Logf("%d checks: none finds something bad through the gateway, %d do on a plain connection", len(found), bad)
}

func probed(t *testing.T, pl *place, url string, code int) []probe.Finding {
	t.Helper()
	o := pl.finish(pl.program.plain, "probe", "run", url, "--json")
	if o.code != code {
		t.Errorf("probe run: exit %d, want %d\n%s%s", o.code, code, o.stdout, o.stderr)
	}
	var report struct{ Findings []probe.Finding }
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, o.stdout, o.stderr)
	}
	return report.Findings
}
