package drain

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCounter(t *testing.T) {
	var c Counter
	for range 2 {
		if !c.Begin() {
			t.Fatal("an open counter lets nothing begin")
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Drain(over); !errors.Is(err, context.Canceled) {
		t.Errorf("drained with two under way: %v", err)
	}
	if c.Begin() {
		t.Error("something began after the end")
	}
	c.Split() // what is under way may have parts
	for range 3 {
		select {
		case <-c.Close():
			t.Error("closed with some under way")
		default:
		}
		c.End()
	}
	if err := c.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for range 50 {
		if err := new(Counter).Drain(over); err != nil {
			t.Fatalf("a counter of nothing: %v", err)
		}
	}
}

func TestCounterRefusesNonsense(t *testing.T) {
	for name, do := range map[string]func(*Counter){"end": (*Counter).End, "split": (*Counter).Split} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of nothing passes", name)
				}
			}()
			do(new(Counter))
		}()
	}
}

// Whatever begins before the end has ended when the counter is drained.
func TestCounterHammer(t *testing.T) {
	var c Counter
	var under atomic.Int32
	var all sync.WaitGroup
	begun := make(chan struct{}, 1)
	for range 8 {
		all.Go(func() {
			for c.Begin() {
				under.Add(1)
				select {
				case begun <- struct{}{}:
				default:
				}
				under.Add(-1)
				c.End()
			}
		})
	}
	<-begun
	if err := c.Drain(t.Context()); err != nil || under.Load() != 0 {
		t.Errorf("%d are under way after the end: %v", under.Load(), err)
	}
	all.Wait()
}
