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

// The calls of a client, and those of a principal, make room only for one another. If all places
// are taken, the client that has the most of them makes room.
func TestWhoMakesRoom(t *testing.T) {
	type some struct {
		who, client string
		calls       int
	}
	var crowd []some
	for n := range maxParked - 2 {
		crowd = append(crowd, some{fmt.Sprint("one of many ", n), "", 1})
	}
	for name, tt := range map[string]struct {
		before     []some // those of the first wait for the longest time
		comes      some
		says, room string
	}{
		"a client's":       {[]some{{"bob", "b", maxParkedOf}, {"alice", "a", maxParkedOf}}, some{"alice", "a", 1}, "this client has 16", "alice a 0"},
		"a principal's":    {[]some{{"bob", "", maxParkedBy}, {"alice", "", maxParkedBy}}, some{"alice", "", 1}, "this principal has 64", "alice  0"},
		"a greedy one's":   {append(crowd, some{"bob", "", 2}), some{"alice", "", 1}, "there are 256", "bob  0"},
		"nobody's":         {[]some{{"bob", "", maxParkedBy}, {"alice", "a", maxParkedOf}}, some{"alice", "b", 1}, "", ""},
		"nobody's, either": {[]some{{"bob", "", maxParkedBy}}, some{"alice", "", 1}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, expired := New[call](grace*time.Hour), make(chan string, 1)
				one := func(s some, n int) call {
					owner := gate.Owner{ID: s.who}
					return call{fmt.Sprint(s.who, " ", s.client, " ", n), gate.Call{Who: &gate.Principal{Owner: owner}, Session: gate.SessionKey{Owner: owner, ID: s.client}}, expired}
				}
				for _, s := range tt.before {
					for n := range s.calls {
						if err := p.Keep(one(s, n)); err != nil {
							t.Fatal(err)
						}
						p.Rest(one(s, n))
						time.Sleep(time.Second)
					}
				}
				if err := p.Keep(one(tt.comes, 100)); (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("nobody had an hour to answer, and one more got %v", err)
				}
				time.Sleep(time.Hour)
				if err := p.Keep(one(tt.comes, 100)); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				room := ""
				if len(expired) > 0 {
					room = <-expired
				}
				if room != tt.room {
					t.Errorf("room is made by %q, want %q", room, tt.room)
				}
			})
		})
	}
}
