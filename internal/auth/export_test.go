package auth

// Remembers tells how many tokens and people are known.
func (a *Authenticator) Remembers() (tokens, people int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen) + len(a.bad), len(a.people)
}
