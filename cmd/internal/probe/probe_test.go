package probe_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/cmd/internal/probe"
)

// With nothing in between, all that attacks comes through and all that must
// survive does: so a check that finds otherwise behind a gateway says something
// of the gateway.
func TestAPlainConnectionStopsNothingAndLosesNothing(t *testing.T) {
	liar := httptest.NewServer(new(probe.Liar))
	defer liar.Close()
	found, err := probe.Run(t.Context(), probe.Options{URL: liar.URL + "/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	checks := 0
	for _, f := range found {
		switch {
		case f.Verdict == probe.Untried && f.Check == "headers" && f.Revision == probe.WithSessions:
		case f.Verdict == probe.Untried && f.Check == "apart": // this server is not on standard input and output
		case f.Verdict == probe.Untried && f.Check == "module": // nothing here runs modules
		case f.Check == "trailing" && f.Verdict == probe.Stopped: // a JSON parser does that
		case (f.Check == "callers" || f.Check == "neighbour") && f.Verdict == probe.Stopped:
		case f.Verdict == probe.Untried && f.Check == "neighbour" && f.Revision == probe.WithoutSessions:
		case f.Verdict == probe.Through, f.Verdict == probe.Kept:
		default:
			t.Errorf("%s (%s): %s %s", f.Check, f.Revision, f.Verdict, f.Seen)
		}
		checks++
	}
	if checks < 40 {
		t.Errorf("only %d checks", checks)
	}
}

func TestTheLiarSpeaksStdio(t *testing.T) {
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"probe_progress","_meta":{"progressToken":7}}}
`
	if err := new(probe.Liar).ServeStdio(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 7 || !strings.Contains(lines[0], `"id":1`) || !strings.Contains(lines[1], `"progressToken":7`) || !strings.Contains(lines[6], `"id":"a"`) {
		t.Errorf("got %q", lines)
	}
}

func TestAGatewayWithoutTheLiarIsAnError(t *testing.T) {
	down := httptest.NewServer(nil)
	defer down.Close()
	if _, err := probe.Run(t.Context(), probe.Options{URL: down.URL}); err == nil {
		t.Error("no error")
	}
}
