package upstream_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// A circuit opens after five faults in a row, fails calls at once for a second, lets one
// through then, and closes when that one succeeds; if it fails it stays open for longer.
func TestCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		cfg := s.Config("s")
		cfg.CallTimeout = time.Second
		e := rig.Ready(t, cfg)
		// call makes a call and tells how it ended, and how long that took.
		call := func() (string, time.Duration) {
			before := time.Now()
			_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
			return rig.Kind(err), time.Since(before)
		}
		for i := range 5 {
			if e.Status().Circuit != "" {
				t.Fatalf("open after %d faults", i)
			}
			if got, took := call(); got != "timeout" || took != time.Second {
				t.Fatalf("%s after %v", got, took)
			}
		}
		for _, coolOff := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if got := e.Status().Circuit; got != status.CircuitOpen {
				t.Errorf("circuit %q, want open", got)
			}
			if got, took := call(); got != "not_connected" || took != 0 {
				t.Errorf("of an open circuit: %s after %v", got, took)
			}
			time.Sleep(coolOff - time.Millisecond)
			if got, _ := call(); got != "not_connected" {
				t.Errorf("before the end of %v: %s", coolOff, got)
			}
			time.Sleep(time.Millisecond)
			if got := e.Status().Circuit; got != status.CircuitHalfOpen {
				t.Errorf("circuit %q, want half-open", got)
			}
			second := make(chan string)
			go func() {
				time.Sleep(time.Millisecond) // the first is under way
				got, _ := call()
				second <- got
			}()
			if got, _ := call(); got != "timeout" {
				t.Errorf("the call that tries it: %s", got)
			}
			if got := <-second; got != "not_connected" {
				t.Errorf("a second call beside the one that tries it: %s", got)
			}
		}
		s.Answer("tools/call", `{"content":[]}`)
		time.Sleep(8 * time.Second)
		for range 2 {
			if got, _ := call(); got != "ok" {
				t.Errorf("of a server that answers again: %s", got)
			}
		}
		if got := e.Status().Circuit; got != "" {
			t.Errorf("circuit %q after a success", got)
		}
		e.Close()
	})
}

// What a client reads of an open circuit says until when, and nothing of the server's.
func TestCircuitSaysUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		cfg := s.Config("s")
		cfg.CallTimeout = time.Second
		e := rig.Ready(t, cfg)
		for range 5 {
			_, _ = rig.Do(t.Context(), t, e, "s__echo", "{}")
		}
		_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
		until := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
		if got := message.Public(err); !strings.Contains(got, until) {
			t.Errorf("%q does not name %s", got, until)
		}
		e.Close()
	})
}

// What a server answers closes a circuit, and never opens it: errors of tools, and errors
// of JSON-RPC.
func TestAnswersAreNoFaults(t *testing.T) {
	for name, answer := range map[string]string{"an error of the tool": `{"content":[],"isError":true}`, "an error of JSON-RPC": "?no"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rig.NewScript(map[string]string{"tools/call": answer})
				e := rig.Ready(t, s.Config("s"))
				for range 20 {
					if res, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil || !res.IsError {
						t.Fatalf("%v, isError %v", err, res.IsError)
					}
				}
				if got := e.Status().Circuit; got != "" {
					t.Errorf("circuit %q", got)
				}
				e.Close()
			})
		})
	}
}

// A server that cannot be reached opens the circuit by itself, and closes it when it
// comes back: no call is needed for either.
func TestCircuitOfConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{s.Config("s")}})
		var changes atomic.Int32
		f.Watch(func(status.Lists) { changes.Add(1) })
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Cut(errors.New("the cable is out"))
		time.Sleep(time.Hour)
		before := changes.Load()
		is := f.Status()[0]
		if is.Circuit == "" || is.Phase != status.Faulted || is.Fault != fault.Transport {
			t.Errorf("after an hour: %+v", is)
		}
		if n := s.Count("dial"); n < 60 || n > 600 { // full jitter: every 15 s on average
			t.Errorf("%d attempts in an hour", n)
		}
		time.Sleep(time.Hour)
		if now := changes.Load(); now != before {
			t.Errorf("who watches was told %d times of nothing new", now-before)
		}
		s.Cut(nil)
		time.Sleep(31 * time.Second)
		if got := f.Status()[0]; got.Phase != status.Ready || got.Circuit != "" {
			t.Errorf("after it came back: %+v", got)
		}
		if _, err := rig.Do(t.Context(), t, f, "s__echo", "{}"); err != nil {
			t.Error(err)
		}
		f.Close()
	})
}

// Calls that break together count once: what ended them is one fault.
func TestOneBreakIsOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		e := rig.Ready(t, s.Config("s"))
		broken := make(chan string, 50)
		for range cap(broken) {
			go func() {
				_, err := rig.Do(t.Context(), t, e, "s__echo", "{}")
				broken <- rig.Kind(err)
			}()
		}
		time.Sleep(time.Millisecond)
		s.Cut(nil)
		for range cap(broken) {
			if got := <-broken; got != "transport" {
				t.Error(got)
			}
		}
		if got := e.Status().Circuit; got != "" {
			t.Errorf("circuit %q after one break of the connection", got)
		}
		e.Close()
	})
}
