// Package parking lends places to calls that wait for their clients, which were asked something by
// the answers to their requests. A [Lot] decides which calls may wait, and which make room for
// others.
//
// The host decides what a call is, how it goes on and how it ends.
package parking

import (
	"fmt"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Bounds of calls that wait for their clients. While it waits a call takes memory and a
// goroutine, and at its server what the server makes of that.
const (
	maxParked   = 256 // of a host
	maxParkedBy = 64  // of a principal
	maxParkedOf = 16  // of a client that has a connection
	// grace is the part of its time to wait in which a call does not make room for others: a person
	// gets that long to answer, half a minute of ten.
	grace = 20
)

// A Call waits for its client.
type Call interface {
	// ID names it among all that wait.
	ID() string
	// As returns the call as it was sent.
	As() *gate.Call
	// Expire ends it, if it waits still.
	Expire()
}

// A Lot is where calls wait for their clients.
//
// Without authentication all clients are one principal. Without sessions, everything that tells
// clients over HTTP apart can be made up by a client. To prevent one client from keeping the others
// from waiting, places are lent. At a limit, the client that has the most of them gives one up: the
// call whose client has not come back for the longest time ends, and its client gets an error. Only
// a call that has waited for its grace makes room; otherwise the fastest caller would take all the
// places.
//
// Use it from several goroutines.
type Lot[C Call] struct {
	grace time.Duration

	mu     sync.Mutex
	closed bool
	calls  map[string]*stay[C]
}

// A stay is a call that is kept.
type stay[C Call] struct {
	call  C
	since time.Time // when its client got the question; zero while a request attends it
}

// New returns a lot for calls that wait as long as idle.
func New[C Call](idle time.Duration) *Lot[C] {
	return &Lot[C]{grace: idle / grace, calls: make(map[string]*stay[C])}
}

// client is the client of a call, as far as it is known.
func client(k Call) gate.SessionKey { return k.As().Session }

// Keep keeps a call until Leave is called; it may be kept already.
func (p *Lot[C]) Keep(k C) error {
	victim, err := p.admit(k)
	if victim != nil {
		go victim.call.Expire() // ends at once; it may wait for the answer to a request of its own
	}
	return err
}

// admit takes a call in, and returns the one that makes room for it, which is out; nil if
// none had to.
func (p *Lot[C]) admit(k C) (victim *stay[C], err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.calls[k.ID()] != nil:
		return nil, nil
	case p.closed:
		return nil, &gate.Refusal{Step: step.Busy, Name: k.As().Name, Reason: "the gateway is shutting down"}
	}
	if competes, whose := p.full(k); competes != nil {
		if victim = p.longest(competes); victim == nil {
			return nil, &gate.Refusal{Step: step.Busy, Name: k.As().Name, Reason: "too many calls wait for their clients: " + whose + "; try again later"}
		}
		delete(p.calls, victim.call.ID())
	}
	p.calls[k.ID()] = &stay[C]{call: k}
	return victim, nil
}

// full returns with which calls another competes for a place, and how many they are; nil
// if there is room. The caller holds mu.
func (p *Lot[C]) full(k C) (competes func(C) bool, whose string) {
	of, owner := client(k), k.As().Who.Owner
	mine, by := 0, 0
	for _, s := range p.calls {
		if client(s.call) == of {
			mine++
		}
		if s.call.As().Who.Owner == owner {
			by++
		}
	}
	switch {
	case of.ID != "" && mine >= maxParkedOf:
		return func(o C) bool { return client(o) == of }, fmt.Sprintf("this client has %d", mine)
	case by >= maxParkedBy:
		return func(o C) bool { return o.As().Who.Owner == owner }, fmt.Sprintf("this principal has %d", by)
	case len(p.calls) >= maxParked:
		return func(C) bool { return true }, fmt.Sprintf("there are %d", len(p.calls))
	}
	return nil, ""
}

// longest returns the call, of some, whose client has not come back for the longest time,
// of the client that has the most; nil if none has waited for its grace. The caller holds
// mu.
func (p *Lot[C]) longest(some func(C) bool) (first *stay[C]) {
	has := make(map[gate.SessionKey]int)
	for _, s := range p.calls {
		has[client(s.call)]++
	}
	for _, s := range p.calls {
		if s.since.IsZero() || time.Since(s.since) < p.grace || !some(s.call) {
			continue
		}
		if first == nil || has[client(s.call)] > has[client(first.call)] || has[client(s.call)] == has[client(first.call)] && s.since.Before(first.since) {
			first = s
		}
	}
	return first
}

// Rest says that the client of a call has got the question.
func (p *Lot[C]) Rest(k C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.calls[k.ID()]; s != nil {
		s.since = time.Now()
	}
}

// Attend says that the client has come back. It is false of a call that is not kept any
// more.
func (p *Lot[C]) Attend(k C) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.calls[k.ID()]
	if s != nil {
		s.since = time.Time{}
	}
	return s != nil
}

// Leave says that a call waits no more.
func (p *Lot[C]) Leave(k C) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, k.ID())
}

// Find returns the call of an ID; false if none waits.
func (p *Lot[C]) Find(id string) (call C, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.calls[id]; s != nil {
		return s.call, true
	}
	return call, false
}

// End ends the calls that wait for a client whose connection has ended.
func (p *Lot[C]) End(of gate.SessionKey) {
	p.expire(func(k C) bool { return client(k) == of })
}

// Close ends the calls that wait, and lets no more wait.
func (p *Lot[C]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.expire(func(C) bool { return true })
}

// expire ends those of some calls that wait.
func (p *Lot[C]) expire(some func(C) bool) {
	p.mu.Lock()
	var its []C
	for _, s := range p.calls {
		if some(s.call) {
			its = append(its, s.call)
		}
	}
	p.mu.Unlock()
	for _, k := range its {
		k.Expire()
	}
}
