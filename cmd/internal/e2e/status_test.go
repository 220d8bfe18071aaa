//go:build unix

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testStatusCheck: a server that is still connecting is neither fine nor faulted, and the
// check waits for as long as it may take to start.
func testStatusCheck(t *testing.T, p *program) {
	let := make(chan bool)
	good := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, answer: answerFine}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
			good.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	pl := p.place(t, "servers:\n  good: {url: "+good.start(t)+"}\n  slow: {url: "+slow.URL+", start: 5m, protocol: \"2025-11-25\"}\n")
	pl.serve()
	if o := pl.run("status"); o.code != 0 || !strings.Contains(o.stdout, "connecting") {
		t.Errorf("without --check: exit %d: %s", o.code, o.stdout)
	}
	check := start(t, pl.command(context.WithoutCancel(t.Context()), p.plain, pl.args("status", "--check")...))
	timelimit.Wait(t, "it says what it waits for", func() bool { return strings.Contains(check.stderr.String(), "waiting for slow, for 5m0s at most") })
	close(let)
	if code := check.wait(); code != 0 {
		t.Errorf("exit %d, want 0: %s", code, check.stderr)
	}
}
