package link_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
)

// A server that says nothing is pinged; one that answers nothing twice in a row is
// connected anew.
func TestHealth(t *testing.T) {
	tests := map[string]struct {
		answer string // to a ping
		alive  bool
	}{
		"an answer":                 {"{}", true},
		"an error is an answer too": {"?no such method", true},
		"no answer":                 {"-", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"ping": tt.answer})
				cfg := s.Config("s")
				cfg.Health = 30 * time.Second
				e := rig.Ready(t, cfg)
				time.Sleep(49 * time.Second)
				if n := s.Count("ping"); n == 0 {
					t.Error("not pinged")
				}
				if s.Count("dial") != 1 {
					t.Error("given up too early")
				}
				time.Sleep(2 * time.Second) // 30 s, and twice 10 s
				if again := s.Count("dial") == 2; again == tt.alive {
					t.Errorf("connected anew: %v", again)
				}
				if e.Phase() != status.Ready {
					t.Errorf("phase %s", e.Phase())
				}
				if got := e.Status().Circuit; got != "" || s.Count("tools/call") != 0 {
					t.Errorf("pings count as calls: circuit %q", got)
				}
				e.Close()
			})
		})
	}
}

// A server that says something is not asked whether it lives, one that works on a call may leave
// that unanswered, and one in this process is not asked unless it is configured.
func TestHealthOfTheBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"ping": "-", "tools/call": "-"})
		cfg := s.Config("s")
		cfg.Health, cfg.CallTimeout = 30*time.Second, time.Hour
		e := rig.Ready(t, cfg)
		for range 600 {
			time.Sleep(time.Second)
			s.Tell(&jsonrpc.Request{Method: "notifications/message"})
		}
		done := make(chan error)
		go func() { _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); done <- err }()
		time.Sleep(59 * time.Minute)
		if s.Count("dial") != 1 {
			t.Error("given up while it worked")
		}
		e.Close()
		<-done

		s = rig.NewScript(nil)
		e = rig.NewEndpoint(t, s.Config("s"))
		if err := e.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := s.Count("ping"); n != 0 {
			t.Errorf("%d pings to a server in this process", n)
		}
		e.Close()
	})
}

// The connection to a server that does not answer pings ends with that reason, and a call
// that waits for the new one passes.
func TestSilentServerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"ping": "-"})
		cfg := s.Config("s")
		cfg.Health = 30 * time.Second
		e := rig.Ready(t, cfg)
		s.Answer("initialize", "-")
		time.Sleep(55 * time.Second)
		if got := e.Status(); got.Fault != fault.TimedOut || !strings.Contains(got.Error, "2 pings in a row") {
			t.Errorf("status %+v", got)
		}
		e.Close()
	})
}

// A server that has answered pings during a call is given up if it answers none during a later
// one.
func TestHealthOfLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		s.Answer("ping", "{}")
		cfg := s.Config("s")
		cfg.Health, cfg.CallTimeout = 30*time.Second, 5*time.Minute
		e := rig.Ready(t, cfg)
		call := func() (string, time.Duration) {
			began := time.Now()
			_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			return rig.Kind(err), time.Since(began)
		}
		if kind, took := call(); kind != string(fault.TimedOut) || took != 5*time.Minute {
			t.Errorf("the first call: %s after %s", kind, took)
		}
		time.Sleep(2 * time.Minute) // a ping that is answered while nothing is under way
		s.Answer("ping", "-")
		if kind, took := call(); kind != string(fault.TimedOut) && kind != string(fault.Transport) || took > 90*time.Second {
			t.Errorf("the second call: %s after %s", kind, took)
		}
		e.Close()
	})
}
