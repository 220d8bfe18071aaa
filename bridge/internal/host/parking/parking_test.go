package parking

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

type call struct {
	id      string
	sent    gate.Call
	expired chan string // gets the ID
}

func (c call) ID() string     { return c.id }
func (c call) As() *gate.Call { return &c.sent }
func (c call) Expire()        { c.expired <- c.id }

// At a limit the call makes room whose client got its question the longest ago, and none
// whose client is here, or had no time to answer.
func TestLot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, expired := New[call](grace*time.Minute), make(chan string, maxParkedOf)
		one := func(n int) call {
			return call{fmt.Sprint(n), gate.Call{Name: "x__y", Who: gate.Local(), Session: gate.SessionKey{ID: "s"}}, expired}
		}
		for n := range maxParkedOf {
			if err := p.Keep(one(n)); err != nil {
				t.Fatal(err)
			}
			p.Rest(one(n))
			time.Sleep(time.Second)
		}
		if err := p.Keep(one(3)); err != nil {
			t.Errorf("one that is kept already: %v", err)
		}
		if err := p.Keep(one(100)); err == nil || !strings.Contains(err.Error(), "this client has 16") {
			t.Errorf("nobody had a minute to answer, and one too many got %v", err)
		}
		time.Sleep(time.Minute)
		if !p.Attend(one(0)) {
			t.Error("the first is not kept")
		}
		if err := p.Keep(one(100)); err != nil {
			t.Error(err)
		}
		if got := <-expired; got != "1" {
			t.Errorf("call %s made room", got)
		}
		if _, ok := p.Find("1"); ok || p.Attend(one(1)) {
			t.Error("the call that made room is kept")
		}
		if got, ok := p.Find("100"); !ok || got.ID() != "100" {
			t.Errorf("got call %q, %t", got.ID(), ok)
		}
		p.Leave(one(100))
		if _, ok := p.Find("100"); ok {
			t.Error("a call that has left is kept")
		}
		p.End(gate.SessionKey{ID: "of another"})
		if len(expired) > 0 {
			t.Errorf("with another client ended call %s", <-expired)
		}
		p.Close()
		if n := len(expired); n != maxParkedOf-1 {
			t.Errorf("%d calls were ended", n)
		}
		if err := p.Keep(one(200)); err == nil {
			t.Error("one was taken in after the end")
		}
	})
}
