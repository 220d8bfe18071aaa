package transport

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/gate"
)

func sentBy(f *Front, who string, n int, announced bool) *body {
	text := strings.NewReader(strings.Repeat("a", n))
	r := httptest.NewRequest(http.MethodPost, "/mcp", text)
	if !announced {
		r.ContentLength = -1
	}
	return f.newBody(r, text, sessions.Client{Who: &gate.Principal{Owner: gate.Owner{ID: who}}})
}

// TestBodies: one principal's bodies leave room for those of others, and those that wait are read
// when there is room.
func TestBodies(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "not announced": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &Front{bodies: newBodies()}
				f.Change(Terms{MaxBody: 1 << 20})
				read := func(b *body) error { _, err := io.ReadAll(b); return err }
				var all []*body
				for i := range largestBodies {
					b := sentBy(f, "alice", 1<<20, announced)
					if err := read(b); err != nil {
						t.Fatalf("body %d: %v", i, err)
					}
					all = append(all, b)
				}
				began, more := time.Now(), sentBy(f, "alice", 1<<20, announced)
				if err := read(more); !errors.Is(err, errBodies) || time.Since(began) != bodyWait {
					t.Errorf("one more: %v after %v", err, time.Since(began))
				}
				more.end()
				bob := sentBy(f, "bob", 1<<20, announced)
				if began := time.Now(); read(bob) != nil || time.Since(began) > 0 {
					t.Error("another principal's body waits")
				}
				bob.end()
				done := make(chan error)
				waits := sentBy(f, "alice", 1<<20, announced)
				go func() { done <- read(waits) }()
				synctest.Wait()
				for _, b := range all[:largestBodies/2+1] { // it has less than half then
					b.end()
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				waits.end()
				for _, b := range all[largestBodies/2+1:] {
					b.end()
				}
				if taken, waiting := f.bodies.State(struct{}{}); taken != 0 || waiting != 0 {
					t.Errorf("%d bytes taken, %d wait", taken, waiting)
				}
			})
		})
	}
}

// TestSmallBodies: a short body that is not announced takes no share.
func TestSmallBodies(t *testing.T) {
	f := &Front{bodies: newBodies()}
	f.Change(Terms{})
	b := sentBy(f, "alice", smallBody-1, false)
	if _, err := io.ReadAll(b); err != nil || b.has {
		t.Errorf("has a share: %t, %v", b.has, err)
	}
}
