package session

// Change puts other numbers in the place of [LimitOptions].Concurrent and Session, which
// mean what they mean there. What is taken stays taken, and rates stay as used up as
// they are: a change gives nobody anything back. Calls that are under way beyond a
// smaller limit go on, and no others begin before they have ended.
func (l *Limits) Change(concurrent, session int) {
	if concurrent <= 0 {
		concurrent = usualConcurrent
	}
	l.session.Store(int64(session))
	l.calls.change(int64(concurrent))
	l.relays.change(more(concurrent))
	l.away.change(more(concurrent))
}

// Places returns how many calls are at upstreams, how many wait for a place there, and how many
// places there are.
func (l *Limits) Places() (taken, waiting, most int64) {
	l.calls.mu.Lock()
	defer l.calls.mu.Unlock()
	return l.calls.taken, int64(l.calls.waiting.Len()), l.calls.most
}

// change has so many places from now on.
func (p *places) change(most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = most
	p.admit()
}

// size returns how many places there are.
func (p *places) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}
