package wants

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Subscriptions are the resources whose updates clients want to hear of, over one connection. The
// first client of a resource makes the server's subscription to it, and the last one that leaves
// ends it. All are subscribed to again over the next connection.
type Subscriptions struct {
	turn chan struct{} // has room while no request to the server is under way; one at a time keeps both of one mind

	mu sync.Mutex
	by map[string][]string // URI to the IDs of the calls that subscribed
}

// NewSubscriptions returns none.
func NewSubscriptions() *Subscriptions { return &Subscriptions{turn: make(chan struct{}, 1)} }

// Any reports whether there are any.
func (s *Subscriptions) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by) > 0
}

// Of returns the IDs of the calls that have subscribed to a resource.
func (s *Subscriptions) Of(uri string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.by[uri])
}

// Add adds the subscription of a call.
func (s *Subscriptions) Add(uri, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string][]string)
	}
	s.by[uri] = append(s.by[uri], call)
}

// Remove takes out one that a call has added, and reports whether it did, and whether
// that was the last of the resource.
func (s *Subscriptions) Remove(uri, call string) (had, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.by[uri], call)
	if i < 0 {
		return false, false
	}
	if len(s.by[uri]) == 1 {
		delete(s.by, uri)
		return true, true
	}
	s.by[uri] = slices.Delete(slices.Clone(s.by[uri]), i, i+1)
	return true, false
}

// URIs returns all resources, sorted.
func (s *Subscriptions) URIs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.by))
}

// Alone waits for the turn to ask the server.
func (s *Subscriptions) Alone(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
