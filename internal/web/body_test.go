package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/web"
)

// TestBoundBody: the time that a body has is not that of its answer.
func TestBoundBody(t *testing.T) {
	timelimit.Grow(t, 100*time.Millisecond, func(within time.Duration) error {
		srv := httptest.NewServer(web.Bounded(within, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(within * 5 / 4):
				fmt.Fprint(w, "done")
			}
		})))
		defer srv.Close()
		for range 2 { // the connection is kept
			resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("all of it"))
			if err != nil {
				return err
			}
			said, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(said) != "done" {
				return fmt.Errorf("%q, %v", said, err)
			}
		}
		return nil
	})
}
