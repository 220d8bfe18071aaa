package session

import (
	"sync"

	"github.com/wasmgate/wasmgate/gate"
)

// maxAdmitted is how many admissions are remembered, over all sessions, to know
// a call that is admitted again. It is what a busy gateway admits in a second. A
// call that comes back later is admitted like a new one: it is held against the
// labels of then.
const maxAdmitted = 4096

// admission is one call in one session.
type admission struct {
	session gate.SessionKey
	call    string
}

// admitted are the last admissions, by the last character of the call, so that few wait for each other.
type admitted [16]admissions

// share returns those among which one is remembered.
func (all *admitted) share(a admission) *admissions {
	if a.call == "" {
		return &all[0]
	}
	return &all[int(a.call[len(a.call)-1])%len(all)]
}

// admissions are the last ones of their share of maxAdmitted.
type admissions struct {
	mu   sync.Mutex // held for a moment
	at   map[admission]struct{}
	ring []admission
	next int // in ring, the oldest once it is full
}

func (as *admissions) has(a admission) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	_, ok := as.at[a]
	return ok
}

// add adds an admission that may be there.
func (as *admissions) add(a admission) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if _, ok := as.at[a]; ok {
		return
	}
	if as.at == nil {
		as.at = make(map[admission]struct{})
	}
	as.at[a] = struct{}{}
	if len(as.ring) < maxAdmitted/len(admitted{}) {
		as.ring = append(as.ring, a)
		return
	}
	delete(as.at, as.ring[as.next])
	as.ring[as.next] = a
	as.next = (as.next + 1) % len(as.ring)
}
