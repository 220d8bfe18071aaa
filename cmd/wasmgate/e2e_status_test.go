//go:build unix

package main_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// testStatusCheck: a server that is still connecting is neither fine nor faulted.
func testStatusCheck(t *testing.T, p *program) {
	let := make(chan bool)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(let) })
	good := &stub{tools: `[{"name":"echo","inputSchema":{"type":"object"}}]`, answer: answerFine}
	pl := p.place(t, "servers:\n  good: {url: "+good.start(t)+"}\n  silent: {url: "+silent.URL+", start: 6s}\n")
	pl.serve()
	o := pl.run("status", "--check")
	if o.code != 1 || !strings.Contains(o.stderr, "wasmgate: not ready yet: silent; ") || !strings.Contains(o.stdout, "connecting") {
		t.Errorf("exit %d, want 1: %s%s", o.code, o.stdout, o.stderr)
	}
	if o := pl.run("status"); o.code != 0 {
		t.Errorf("without --check: exit %d", o.code)
	}
}
