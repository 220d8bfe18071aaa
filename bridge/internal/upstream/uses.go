package upstream

// Enter counts a call that a fleet makes of the endpoint, until Leave, or reports that it
// was retired.
func (e *Endpoint) Enter() bool { return e.uses.Begin() }

// Leave ends a call that has entered.
func (e *Endpoint) Leave() { e.uses.End() }

// Retire lets no more calls enter, and returns a channel that is closed when none is left.
func (e *Endpoint) Retire() <-chan struct{} { return e.uses.Close() }
