package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestShipping sends the audit log of a gateway that runs to where its configuration says,
// beginning with what it had before, and status says how far that is.
func TestShipping(t *testing.T) {
	unraced.Long(t)
	var got atomic.Pointer[string]
	var refuses atomic.Bool
	refuses.Store(true)
	siem := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if refuses.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		all := string(b)
		if before := got.Load(); before != nil {
			all = *before + all
		}
		got.Store(&all)
	}))
	defer siem.Close()
	cfg := load(t, "version: 1\n")
	a := start(t, cfg)
	run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Fatal(err)
	}
	write(t, cfg.File, "version: 1\ntelemetry: {ship: {siem: {to: http, url: \""+siem.URL+"\", compression: none}}}\n")
	timelimit.Wait(t, "a failure", func() bool {
		return strings.Contains(strings.Join(a.Overview.Status().Problems, "\n"), "ship siem: it answered with status 503")
	})
	if s := a.Overview.Status().Shipping; len(s) != 1 || s[0].Target != "siem" || s[0].Lag < 3 {
		t.Errorf("shipping %v", s)
	}
	if _, err := a.Calls.Call(t.Context(), calls.Request{Tool: "local__hash", Args: hello}); err != nil {
		t.Errorf("a call while the target is down: %v", err)
	}
	refuses.Store(false)
	timelimit.Wait(t, "all records", func() bool { s := a.Overview.Status(); return s.Shipping[0].Lag == 0 && len(s.Problems) == 0 })
	if n := strings.Count(*got.Load(), `"event":"done"`); n != 2 {
		t.Errorf("%d calls came: %s", n, *got.Load())
	}
}
