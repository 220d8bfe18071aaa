package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// sh is a server that a shell makes ready: it does something first, and is honest then.
func sh(t *testing.T, first string) options.Endpoint {
	t.Helper()
	cfg := rig.Child("honest")
	cfg.Args = append([]string{"-c", first + `; exec "$0" "$@"`, cfg.Command}, cfg.Args...)
	cfg.Command = "/bin/sh"
	return cfg
}

// TestStart: a child that works or talks gets longer than its time; one that does nothing
// does not, and the fault says how long it had, which key changes that, and what it said.
func TestStart(t *testing.T) {
	unraced.Long(t)
	for name, tt := range map[string]struct {
		first string // in which N is twice the time in seconds
		ok    bool
	}{
		"talks":  {`i=0; while [ $i -lt N ]; do sleep 0.5; echo "downloading $i" >&2; sleep 0.5; i=$((i+1)); done`, true},
		"works":  {`end=$(($(date +%s) + N)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done`, true},
		"sleeps": {`echo "waiting for a lock" >&2; sleep 600`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timelimit.Grow(t, 2*time.Second, func(limit time.Duration) error {
				cfg := sh(t, strings.ReplaceAll(tt.first, "N", fmt.Sprint(2*limit.Seconds())))
				cfg.ConnectTimeout = limit
				e := rig.NewEndpoint(t, cfg)
				defer e.Close()
				err := e.Connect(t.Context())
				if tt.ok {
					return err
				}
				if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Kind != fault.TimedOut || !strings.Contains(err.Error(), "servers.liar.start") {
					t.Errorf("%v", err)
				}
				if !strings.Contains(fmt.Sprint(err), `it said: "waiting for a lock"`) { // or it has not got so far
					return fmt.Errorf("%w: without what the server said", err)
				}
				return nil
			})
		})
	}
}

// While a child starts, its status says so, since when and what it has written last.
func TestStartingStatus(t *testing.T) {
	e := rig.NewEndpoint(t, sh(t, `echo "added 3 packages" >&2; sleep 60`))
	e.Start(t.Context())
	for giveUp := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s := e.Status()
		if s.Phase == status.Starting && len(s.Said) == 1 && s.Said[0] == "added 3 packages" {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("%+v", s)
		}
	}
}

// TestCancelledOverHTTP: net/http tells of a cancelled request by its cause alone. It is
// the end of the call, not of the connection, and nothing that can be tried again.
func TestCancelledOverHTTP(t *testing.T) {
	e, _ := rig.Dialled(t, &rig.Web{Call: func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }})
	cause := errors.New("the job was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := rig.Do(ctx, t, e, "s__echo", "{}"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	timed, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
	defer stop()
	if _, err := rig.Do(timed, t, e, "s__echo", "{}"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose time is up: %v", err)
	}
}
