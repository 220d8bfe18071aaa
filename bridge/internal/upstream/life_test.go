package upstream_test

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

func TestCancellationReachesServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"tools/call": "-"})
		e := rig.Ready(t, s.Config("s"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := rig.Do(ctx, t, e, "s__echo", "{}"); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || rig.Kind(err) != "cancelled" {
			t.Errorf("the caller got %v", err)
		}
		synctest.Wait()
		if s.Count("notifications/cancelled 3") != 1 { // after initialize and tools/list
			t.Errorf("the server saw %v", s.Seen)
		}
		if e.Phase() != status.Ready {
			t.Errorf("phase %s", e.Phase())
		}
		e.Close()
	})
}

// TestReconnect: an endpoint connects again by itself, and calls wait for that: at once if
// it had worked for a while, else after a pause, and not for longer than five seconds.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		e := rig.Ready(t, s.Config("s"))
		time.Sleep(time.Minute)
		s.Cut(nil)
		synctest.Wait()
		if got := e.Phase(); got != status.Ready {
			t.Errorf("phase %s: no attempt at once after a minute of work", got)
		}
		s.Cut(nil)
		synctest.Wait()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.Dials != 3 || s.Count("tools/call") != 10 {
			t.Errorf("%d dials, %d calls", s.Dials, s.Count("tools/call"))
		}
		s.Answer("initialize", "-")
		s.Cut(nil)
		synctest.Wait()
		before := time.Now()
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); rig.Kind(err) != "not_connected" || time.Since(before) != 5*time.Second {
			t.Errorf("while connecting hangs: %v after %v", err, time.Since(before))
		} else if got, want := public(err), "the server is being connected again (for 5s so far); call again in 5s"; got != want {
			t.Errorf("a client is told %q, want %q", got, want)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := rig.Do(short, t, e, "s__echo", "{}"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller with a deadline of its own: %v", err)
		}
		e.Close()
	})
}

// public is the text of a fault for clients.
func public(err error) string {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return ""
	}
	return f.Public()
}

// TestAwayUntil: the error of a call to a server that is away says when it is tried again.
func TestAwayUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(map[string]string{"initialize": "!"})
		e := rig.NewEndpoint(t, s.Config("s"))
		for range 3 {
			_ = e.Connect(t.Context())
		}
		f := e.Unready()
		if f == nil || f.Kind != fault.NotConnected || !regexp.MustCompile(`^the server is not connected, and is tried again in [1-4]s; call again then$`).MatchString(f.Public()) {
			t.Errorf("%v, told as %q", f, public(f))
		}
		if !strings.Contains(f.Error(), "handshake: transport") {
			t.Errorf("the operator does not hear why: %v", f)
		}
		e.Close()
	})
}

// TestCloseInEveryPhase closes twice and concurrently.
func TestCloseInEveryPhase(t *testing.T) {
	tests := map[string]struct {
		cfg     options.Endpoint
		connect bool
		phase   status.Phase
	}{
		"idle":             {rig.NewScript(nil).Config("s"), false, status.Idle},
		"connecting":       {rig.NewScript(map[string]string{"initialize": "-"}).Config("s"), true, status.Connecting},
		"ready":            {rig.NewScript(nil).Config("s"), true, status.Ready},
		"faulted":          {options.Endpoint{Server: "s", Broken: "so"}, true, status.Faulted},
		"child ready":      {rig.Child("honest"), true, status.Ready},
		"child connecting": {rig.Child("mute"), true, status.Connecting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rig.NoLeaks(t)
			tt.cfg.Tools = rig.Options()
			e := rig.NewEndpoint(t, tt.cfg)
			var opening sync.WaitGroup
			if tt.connect {
				opening.Go(func() { _ = e.Connect(t.Context()) })
			}
			rig.Within(t, "it is "+string(tt.phase), func() bool { return e.Phase() == tt.phase })
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					e.Close()
					if e.Phase() != status.Closed {
						t.Errorf("Close returned in phase %s", e.Phase())
					}
				})
			}
			wg.Wait()
			opening.Wait()
			if err := e.Connect(t.Context()); rig.Kind(err) != "not_connected" {
				t.Errorf("connect after Close: %v", err)
			}
			if s := e.Status(); (s.Error != "") != (tt.phase == status.Faulted) {
				t.Errorf("closed, its status has the error %q", s.Error)
			}
		})
	}
}

// TestServerEndsAtOnce: a connection that ends right after the listing leaves no
// endpoint that looks ready.
func TestServerEndsAtOnce(t *testing.T) {
	unraced.Long(t)
	for range 200 {
		s := rig.NewScript(nil)
		cfg := s.Config("s")
		e := rig.NewEndpoint(t, cfg)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for s.Count("tools/list") == 0 {
				select {
				case <-stop:
					return
				default:
				}
			}
			s.Cut(nil)
		})
		_ = e.Connect(t.Context())
		close(stop)
		wg.Wait()
		s.Cut(io.EOF) // or it would be connected again before anybody looks
		rig.Within(t, "a dead connection is noticed", func() bool { return e.Phase() == status.Faulted })
		e.Close()
	}
}

// TestRelist: a listing is read again when the server says so, and no more often
// than once a second however often it does.
func TestRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		var changes atomic.Int32
		f, err := fleet.New(fleet.Config{Servers: []options.Endpoint{s.Config("s")}})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Watch(func(status.Lists) { changes.Add(1) })
		s.List(rig.EchoTool + `,{"name":"new","inputSchema":{"type":"object"}}`)
		for range 10_000 {
			s.Tell(&jsonrpc.Request{Method: "notifications/tools/list_changed"})
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := s.Count("tools/list"); n < 3 || n > 13 {
			t.Errorf("%d listings in 10 s", n)
		}
		if len(f.Tools(t.Context())) != 2 {
			t.Error("the new tool is not offered")
		}
		if changes.Load() != 1 {
			t.Errorf("%d changes told of one", changes.Load())
		}
	})
}

// TestServerAsks: a server's own requests are answered, and a flood of them
// blocks nothing.
func TestServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.NewScript(nil)
		e := rig.Ready(t, s.Config("s"))
		for i := range 1000 {
			id, _ := jsonrpc.MakeID(float64(i))
			s.Tell(&jsonrpc.Request{ID: id, Method: "ping"})
		}
		id, _ := jsonrpc.MakeID(strings.Repeat("x", 1000))
		s.Tell(&jsonrpc.Request{ID: id, Method: "roots/list"})
		if _, err := rig.Do(t.Context(), t, e, "s__echo", "{}"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.Count("answer 0") != 1 || s.Count("answer "+strings.Repeat("x", 1000)) != 0 {
			t.Errorf("%d answers to the first ping", s.Count("answer 0"))
		}
		e.Close()
	})
}

func TestEndpointConfig(t *testing.T) {
	tests := map[string]options.Endpoint{
		"no way":            {Server: "s"},
		"two ways":          {Server: "s", Command: "x", URL: "http://x/"},
		"a bad id":          {Server: "a_b", Command: "x"},
		"a bad URL":         {Server: "s", URL: "ftp://x/"},
		"no host":           {Server: "s", URL: "http:///x"},
		"no such transport": {Server: "s", URL: "http://x/", Transport: "carrier-pigeon"},
		"a negative limit":  {Server: "s", Command: "x", MaxMessage: -1},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			cfg.Tools = rig.Options()
			if _, err := upstream.New(cfg); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := upstream.New(options.Endpoint{Server: "s", Command: "x"}); err == nil {
		t.Error("no error without a sanitizer")
	}
}
