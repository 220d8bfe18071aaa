package host_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/fair"
)

// At the bound the connection makes room that was not used for the longest time; one with
// subscriptions only when there is no other, and it was not used for half an hour.
func TestOwnConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newAsker()
		var dialled atomic.Int64
		cfg := upstreams["one stream"](t, up)
		dial := cfg.Dial
		cfg.Dial = func() (mcp.Transport, error) { dialled.Add(1); return dial() }
		cfg.Server, cfg.Tools = "up", rig.Options()
		f := rig.NewFleet(t, fleet.Config{Servers: []options.Endpoint{cfg}})
		if err := f.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, _ := rig.NewGate(t, f)
		do := func(session string, c gate.Call) error {
			time.Sleep(time.Second) // so that one is used before the other
			c.Session, c.Client = gate.SessionKey{Owner: c.Who.Owner, ID: session}, answering("accept")
			_, err := g.Do(t.Context(), c)
			return err
		}
		// connects reports whether a call of a session needs a new connection.
		connects := func(session string) bool {
			t.Helper()
			before := dialled.Load()
			if err := do(session, rig.NewCall("up__log", "{}")); err != nil {
				t.Fatal(err)
			}
			return dialled.Load() > before
		}
		for i := range upstream.MaxAudiences {
			connects(fmt.Sprint(i))
		}
		if connects("0") || !connects("new") {
			t.Fatal("the sessions have no connections of their own")
		}
		if connects("0") || connects("2") || !connects("1") { // which makes room for 1 by 3
			t.Error("another connection has made room than the one that was not used for the longest time")
		}

		subscribe := func(session string) error {
			return do(session, gate.Call{ID: gate.NewID(), Action: gate.Subscribe, Name: watched, Who: gate.Local()})
		}
		for i := range upstream.MaxAudiences + fair.Extras { // of others than before: each gets its first one
			if err := subscribe(fmt.Sprint("s", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := subscribe("late"); rig.Kind(err) != string(fault.Busy) {
			t.Errorf("subscriptions have made room: %v", err)
		}
		time.Sleep(time.Hour)
		if err := subscribe("later"); err != nil {
			t.Errorf("connections that were not used for an hour make no room: %v", err)
		}
	})
}

// A client over HTTP that goes without a word has its connections until the host ends its
// session, and not longer.
func TestOwnConnectionsEndWithAForgottenSession(t *testing.T) {
	up := newAsker()
	x := newFront(t, up, upstreams["one stream"](t, up))
	x.host.Clients().Bound(1, 1024)
	gone := x.dial(t, "ann", rig.Old, false, false)
	if got := gone.use(t, "ask"); got != "accept ann" {
		t.Fatal(got)
	}
	if n := up.connections(); n != 2 {
		t.Fatalf("%d connections, want that of all and ann's", n)
	}
	x.dial(t, "ben", rig.Old, false, false)
	rig.Within(t, "the connection of the session that had to make room is closed", func() bool { return up.connections() == 1 })
}
