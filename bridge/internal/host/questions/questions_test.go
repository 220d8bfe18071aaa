package questions

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

func TestQuestions(t *testing.T) {
	var s Questions
	params := gate.MustDoc(`{"message":"why"}`)
	news := s.Change()
	first, err := s.Add("elicitation/create", params)
	if err != nil {
		t.Fatal(err)
	}
	<-news
	if all, asks, _ := s.Requests(); !asks || all.String() != `{"ask-1":{"method":"elicitation/create","params":{"message":"why"}}}` {
		t.Errorf("asks %t: %s", asks, all)
	}
	if n := s.Answer(gate.MustDoc(`{"ask-2":{}}`)); n != 0 {
		t.Errorf("%d questions were answered by what nobody asked", n)
	}
	if n := s.Answer(gate.MustDoc(`{"ask-1":{"action":"accept"}}`)); n != 1 {
		t.Errorf("%d questions were answered", n)
	}
	if got, err := s.Await(t.Context(), first); err != nil || got.String() != `{"action":"accept"}` {
		t.Errorf("got %s, %v", got, err)
	}

	for range Max {
		if _, err := s.Add("roots/list", params); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Add("roots/list", params); err == nil {
		t.Error("one question more than can be open")
	}
	taken := s.Take()
	s.Put(taken, Reply{}, false)
	if again := s.Take(); again != taken {
		t.Error("a question that could not be put is not open any more")
	}
	gone := errors.New("refused")
	s.Put(taken, Reply{Err: gone}, true)
	if _, err := s.Await(t.Context(), taken); err != gone {
		t.Errorf("got %v", err)
	}
	withdrawn, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Await(withdrawn, s.Take()); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if _, err := s.Add("roots/list", params); err != nil {
		t.Errorf("two questions are closed, and there is no room: %v", err)
	}
}
