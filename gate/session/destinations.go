package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// maxDestinations bounds what people approve for one session: who has approved more is
// asked again.
const maxDestinations = 256

// Approve has a session keep destinations until it ends, is reset or forgotten. They are
// in memory alone, and what is more than 256 is not kept.
func (s *Sessions) Approve(_ context.Context, k gate.SessionKey, all []gate.Destination) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.view(key{SessionKey: k})
	kept := slices.Clone(state.Destinations)
	for _, d := range all {
		same := func(one gate.Destination) bool { return one.Server == d.Server && one.Value == d.Value }
		if len(kept) < maxDestinations && !slices.ContainsFunc(kept, same) {
			kept = append(kept, d)
		}
	}
	state.Destinations = kept
	state.Version++
	s.keep(key{SessionKey: k}, state, lesson{}, time.Now())
	return nil
}

// Revoke takes back what the approval with an ID has approved as destinations, and returns
// it; calls under way go on. The error says that there is nothing.
func (s *Sessions) Revoke(id string) ([]gate.Destination, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(d gate.Destination) bool { return d.ID == id }
	for _, e := range s.kept {
		i := slices.IndexFunc(e.state.Destinations, of)
		if i < 0 {
			continue
		}
		var gone []gate.Destination
		for _, d := range e.state.Destinations {
			if of(d) {
				gone = append(gone, d)
			}
		}
		e.state.Destinations = slices.DeleteFunc(slices.Clone(e.state.Destinations), of)
		e.state.Version++
		return gone, nil
	}
	return nil, fmt.Errorf("approval %q has no destinations to revoke; see `wasmgate approvals destinations`", id)
}
