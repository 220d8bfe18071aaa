//go:build unix

package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testStatusCheck: a server that is still connecting is neither fine nor faulted, and the
// check waits for as long as it may take to start.
func testStatusCheck(t *testing.T, p *e2e.Program) {
	let := make(chan bool)
	good := &e2e.Stub{Tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, Answer: e2e.AnswerFine}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
			good.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	pl := p.Place(t, "servers:\n  good: {url: "+good.Start(t)+"}\n  slow: {url: "+slow.URL+", start: 5m, protocol: \"2025-11-25\"}\n")
	pl.Listening()
	if o := pl.Run("status"); o.Code != 0 || !strings.Contains(o.Stdout, "connecting") {
		t.Errorf("without --check: exit %d: %s", o.Code, o.Stdout)
	}
	check := e2e.Start(t, pl.Command(context.WithoutCancel(t.Context()), p.Plain, pl.Args("status", "--check")...))
	timelimit.Wait(t, "it says what it waits for", func() bool { return strings.Contains(check.Stderr.String(), "slow, for 5m0s at most") })
	close(let)
	if code := check.Wait(); code != 0 {
		t.Errorf("exit %d, want 0: %s", code, check.Stderr)
	}
}
