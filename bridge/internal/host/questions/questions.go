// Package questions keeps the questions that the server of a call asks a client which fetches them.
// Each question is open until the client brings the answer, with any request.
package questions

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Max bounds what the server of a call waits for at one time.
const Max = gate.RoundRequests

// Questions are those that the server of a call asks a client that fetches them. The zero value has
// none. Use it from several goroutines.
type Questions struct {
	mu      sync.Mutex
	last    int         // number of a question: no key comes twice
	open    []*Question // without an answer, the first one in front
	news    chan struct{}
	changed time.Time // when one was asked or answered last
}

// A Question is what the server waits for.
type Question struct {
	key    string
	Method gate.Action
	Params gate.Doc
	answer chan Reply // has room for the only one
	taken  bool       // a client is being asked
}

// A Reply is a client's answer, or why there is none.
type Reply struct {
	Doc gate.Doc
	Err error
}

// Add asks one more question. It does not wait for the answer.
func (s *Questions) Add(method gate.Action, params gate.Doc) (*Question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == Max {
		return nil, &gate.Refusal{Step: step.Busy, Name: string(method), Reason: fmt.Sprintf("the server has asked %d questions without waiting for an answer", Max)}
	}
	s.last++
	q := &Question{key: "ask-" + strconv.Itoa(s.last), Method: method, Params: params, answer: make(chan Reply, 1)}
	s.open = append(s.open, q)
	s.tell()
	return q, nil
}

// Await waits for the answer to a question, which is withdrawn when ctx ends.
func (s *Questions) Await(ctx context.Context, q *Question) (gate.Doc, error) {
	select {
	case r := <-q.answer:
		return r.Doc, r.Err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(q)
		return gate.Doc{}, ctx.Err()
	}
}

// remove takes a question off the list, and reports whether it was there. The caller
// holds mu.
func (s *Questions) remove(q *Question) bool {
	i := slices.Index(s.open, q)
	if i < 0 {
		return false
	}
	s.open = slices.Delete(s.open, i, i+1)
	s.tell()
	return true
}

// tell wakes the goroutines that wait for a change. The caller holds mu.
func (s *Questions) tell() {
	s.changed = time.Now()
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// Change returns a channel that is closed once the questions change.
func (s *Questions) Change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news
}

// Requests are the open questions in the words of MCP 2026-07-28: inputRequests. asks is
// false if there are none; changed is when there were others.
func (s *Questions) Requests() (requests gate.Doc, asks bool, changed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests = gate.MustDoc("{}")
	for _, q := range s.open {
		one := gate.MustDoc("{}").With("method", mcp.MustJSON(q.Method)).With("params", q.Params.Raw())
		requests = requests.With(q.key, one.Raw())
	}
	return requests, len(s.open) > 0, s.changed
}

// Answer gives a client's inputResponses to the questions that wait for them, and returns how many
// were answered. Other responses belong to no open question.
func (s *Questions) Answer(responses gate.Doc) (answered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range slices.Clone(s.open) {
		if r := responses.Get(q.key); !r.IsZero() && s.remove(q) {
			answered++
			q.answer <- Reply{Doc: r}
		}
	}
	return answered
}

// Take returns a question that no client is asked, for one to be; nil if there is none.
func (s *Questions) Take() *Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.open {
		if !q.taken {
			q.taken = true
			return q
		}
	}
	return nil
}

// Put answers a question that was taken. One that the client could not be asked stays
// open, for another time.
func (s *Questions) Put(q *Question, r Reply, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case asked && s.remove(q):
		q.answer <- r
	case !asked:
		q.taken = false
		s.tell()
	}
}
