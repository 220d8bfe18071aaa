package host

import (
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Bounds of calls that wait for their clients. While it waits a call takes memory and a
// goroutine, and at its server what the server makes of that.
const (
	maxParked   = 256 // of a host
	maxParkedBy = 64  // of a principal
	maxParkedOf = 16  // of a client that has a connection
	// parkGrace is which part of its time to wait a call is let wait whoever else comes:
	// a person gets as long as that, half a minute of ten, to answer.
	parkGrace = 20
)

// parking is where calls wait for their clients.
//
// Without authentication all clients are one principal, and without sessions nothing
// that a client cannot make up tells those over HTTP apart. So that none of them can keep
// the others from waiting, the places are lent: at a limit the call makes room whose
// client has not come back for the longest time, of the client that has the most of them.
// It ends, and its client is told so. Only what has waited for its grace makes room, or
// whoever calls fastest would have all the places.
type parking struct {
	grace time.Duration

	mu     sync.Mutex
	closed bool
	calls  map[string]*stay
}

// A stay is a call that is kept.
type stay struct {
	*parked
	since time.Time // when its client got the question; zero while a request attends it
}

// client is the client of a parked call, as far as it is known.
func (k *parked) client() gate.SessionKey { return k.call.Session }

// keep keeps a call until leave is called; it may be kept already.
func (p *parking) keep(k *parked) error {
	victim, err := p.admit(k)
	if victim != nil {
		go victim.expire() // ends at once; it may wait for the answer to a request of its own
	}
	return err
}

// admit takes a call in, and returns the one that makes room for it, which is out; nil if
// none had to.
func (p *parking) admit(k *parked) (victim *parked, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.calls[k.id] != nil:
		return nil, nil
	case p.closed:
		return nil, &gate.Refusal{Step: gate.StepBusy, Name: k.call.Name, Reason: "the gateway is shutting down"}
	}
	if competes, whose := p.full(k); competes != nil {
		if victim = p.longest(competes); victim == nil {
			return nil, &gate.Refusal{Step: gate.StepBusy, Name: k.call.Name, Reason: "too many calls wait for their clients: " + whose + "; try again later"}
		}
		delete(p.calls, victim.id)
	}
	if p.calls == nil {
		p.calls = make(map[string]*stay)
	}
	p.calls[k.id] = &stay{parked: k}
	return victim, nil
}

// full returns with which calls another competes for a place, and how many they are; nil
// if there is room. The caller holds mu.
func (p *parking) full(k *parked) (competes func(*parked) bool, whose string) {
	client, owner := k.client(), k.call.Who.Owner
	of, by := 0, 0
	for _, s := range p.calls {
		if s.client() == client {
			of++
		}
		if s.call.Who.Owner == owner {
			by++
		}
	}
	switch {
	case client.ID != "" && of >= maxParkedOf:
		return func(o *parked) bool { return o.client() == client }, fmt.Sprintf("this client has %d", of)
	case by >= maxParkedBy:
		return func(o *parked) bool { return o.call.Who.Owner == owner }, fmt.Sprintf("this principal has %d", by)
	case len(p.calls) >= maxParked:
		return func(*parked) bool { return true }, fmt.Sprintf("there are %d", len(p.calls))
	}
	return nil, ""
}

// longest returns the call, of some, whose client has not come back for the longest time,
// of the client that has the most; nil if none has waited for its grace. The caller holds
// mu.
func (p *parking) longest(some func(*parked) bool) *parked {
	has := make(map[gate.SessionKey]int)
	for _, s := range p.calls {
		has[s.client()]++
	}
	var first *stay
	for _, s := range p.calls {
		if s.since.IsZero() || time.Since(s.since) < p.grace || !some(s.parked) {
			continue
		}
		if first == nil || has[s.client()] > has[first.client()] || has[s.client()] == has[first.client()] && s.since.Before(first.since) {
			first = s
		}
	}
	if first == nil {
		return nil
	}
	return first.parked
}

// rest says that the client of a call has got the question.
func (p *parking) rest(k *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.calls[k.id]; s != nil {
		s.since = time.Now()
	}
}

// attend says that the client has come back. It is false of a call that is not kept any
// more.
func (p *parking) attend(k *parked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.calls[k.id]
	if s != nil {
		s.since = time.Time{}
	}
	return s != nil
}

func (p *parking) leave(k *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, k.id)
}

func (p *parking) find(id string) *parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.calls[id]; s != nil {
		return s.parked
	}
	return nil
}

// end ends the calls that wait for a client whose connection has ended.
func (p *parking) end(client gate.SessionKey) {
	p.expire(func(k *parked) bool { return k.client() == client })
}

// close ends the calls that wait, and lets no more wait.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.expire(func(*parked) bool { return true })
}

// expire ends those of some calls that wait.
func (p *parking) expire(some func(*parked) bool) {
	p.mu.Lock()
	var its []*parked
	for _, s := range p.calls {
		if some(s.parked) {
			its = append(its, s.parked)
		}
	}
	p.mu.Unlock()
	for _, k := range its {
		k.expire()
	}
}
