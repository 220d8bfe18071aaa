package upstream

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// subscriptions are the resources whose updates clients want to hear of, over one
// connection: the server is asked once for each, by whoever comes first, and told when
// the last has gone. They are asked for again over the next connection.
type subscriptions struct {
	turn chan struct{} // has room while nobody asks the server; one at a time keeps both of one mind

	mu sync.Mutex
	by map[string][]string // URI to the IDs of the calls that subscribed
}

// any reports whether there are any.
func (s *subscriptions) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by) > 0
}

func (s *subscriptions) of(uri string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.by[uri])
}

func (s *subscriptions) add(uri, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = make(map[string][]string)
	}
	s.by[uri] = append(s.by[uri], call)
}

// remove takes out one that a call has added, and reports whether it did, and whether
// that was the last of the resource.
func (s *subscriptions) remove(uri, call string) (had, last bool) {
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

func (s *subscriptions) uris() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.by))
}

// alone waits for the turn to ask the server.
func (s *subscriptions) alone(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
