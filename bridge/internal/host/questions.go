package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// maxQuestions bounds what the server of a call waits for at one time.
const maxQuestions = maxResponses

// questions are what the server of a call asks a client that comes for them.
type questions struct {
	mu      sync.Mutex
	last    int         // number of a question: no key comes twice
	open    []*question // without an answer, the first one in front
	news    chan struct{}
	changed time.Time // when one was asked or answered last
}

// question is what the server waits for.
type question struct {
	key    string
	method gate.Action
	params gate.Doc
	answer chan reply // has room for the only one
	taken  bool       // a client is being asked
}

// reply is a client's answer, or why there is none.
type reply struct {
	doc gate.Doc
	err error
}

// add asks one more question. It does not wait for the answer.
func (s *questions) add(method gate.Action, params gate.Doc) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == maxQuestions {
		return nil, &gate.Refusal{Step: gate.StepBusy, Name: string(method), Reason: fmt.Sprintf("the server has asked %d things without waiting for an answer", maxQuestions)}
	}
	s.last++
	q := &question{key: "ask-" + strconv.Itoa(s.last), method: method, params: params, answer: make(chan reply, 1)}
	s.open = append(s.open, q)
	s.tell()
	return q, nil
}

// await waits for the answer to a question, which is withdrawn when ctx ends.
func (s *questions) await(ctx context.Context, q *question) (gate.Doc, error) {
	select {
	case r := <-q.answer:
		return r.doc, r.err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(q)
		return gate.Doc{}, ctx.Err()
	}
}

// remove takes a question off the list, and reports whether it was there. The caller
// holds mu.
func (s *questions) remove(q *question) bool {
	i := slices.Index(s.open, q)
	if i < 0 {
		return false
	}
	s.open = slices.Delete(s.open, i, i+1)
	s.tell()
	return true
}

// tell wakes who waits for a change. The caller holds mu.
func (s *questions) tell() {
	s.changed = time.Now()
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// change returns what is closed once there are other questions than now.
func (s *questions) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news
}

// requests are the open questions in the words of MCP 2026-07-28: inputRequests. asks is
// false if there are none; changed is when there were others.
func (s *questions) requests() (requests gate.Doc, asks bool, changed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests = gate.MustDoc("{}")
	for _, q := range s.open {
		one := gate.MustDoc("{}").With("method", mcp.MustJSON(q.method)).With("params", q.params.Raw())
		requests = requests.With(q.key, one.Raw())
	}
	return requests, len(s.open) > 0, s.changed
}

// answer gives a client's inputResponses to who waits for them, and returns how many
// that were. Others are of no question that is open.
func (s *questions) answer(responses gate.Doc) (answered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range slices.Clone(s.open) {
		if r := responses.Get(q.key); !r.IsZero() && s.remove(q) {
			answered++
			q.answer <- reply{doc: r}
		}
	}
	return answered
}

// take returns a question that no client is asked, for one to be; nil if there is none.
func (s *questions) take() *question {
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

// put answers a question that was taken. One that the client could not be asked stays
// open, for another time.
func (s *questions) put(q *question, r reply, asked bool) {
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
