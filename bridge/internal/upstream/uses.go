package upstream

import "sync"

// uses counts the calls under way at an endpoint.
type uses struct {
	mu      sync.Mutex
	n       int
	retired chan struct{} // nil until it is; closed when the last call has ended
}

// begin counts a call, or reports that no more may begin.
func (u *uses) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.retired != nil {
		return false
	}
	u.n++
	return true
}

func (u *uses) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.n == 0 && u.retired != nil {
		close(u.retired)
	}
}

// retire lets no more calls begin, and returns what is closed when none is left. It
// is called once.
func (u *uses) retire() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retired = make(chan struct{})
	if u.n == 0 {
		close(u.retired)
	}
	return u.retired
}

// Enter counts a call that a fleet makes of the endpoint, until Leave, or reports that it
// was retired.
func (e *Endpoint) Enter() bool { return e.uses.begin() }

// Leave ends a call that has entered.
func (e *Endpoint) Leave() { e.uses.end() }

// Retire lets no more calls enter, and returns what is closed when none is left. It is
// called once.
func (e *Endpoint) Retire() <-chan struct{} { return e.uses.retire() }
