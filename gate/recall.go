package gate

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// eventLabel is not of a call but of a session: it was shown a listing by which its labels
// rise.
const eventLabel Event = "label"

// maxKnownListings bounds how many listings are remembered to be shared.
const maxKnownListings = 64

// listingSeed keys the hashes of listings, for the life of the process.
var listingSeed = maphash.MakeSeed()

// of returns what a listing shows.
func (k *knownListings) of(p *Parts, tools []*Tool) *provenance.Shown {
	var h maphash.Hash
	h.SetSeed(listingSeed)
	some := false
	for _, t := range tools {
		if !t.Vetted {
			some = true
			fmt.Fprintf(&h, "%s %t %q ", t.Digest, p.pins(t), t.Local)
		}
	}
	if !some {
		return nil
	}
	key := h.Sum64()
	k.mu.Lock()
	s := k.by[key]
	k.mu.Unlock()
	if s != nil {
		return s
	}
	s = provenance.NewShown(func(yield func(Doc, bool) bool) {
		for _, t := range tools {
			if !t.Vetted && !yield(t.Definition, p.pins(t)) {
				return
			}
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil || len(k.by) >= maxKnownListings {
		k.by = make(map[uint64]*provenance.Shown)
	}
	k.by[key] = s
	return s
}

// pins reports whether the definitions of a tool's kind are pinned: approved, or there when the
// server was first seen. If they are, a tool that was neither is not listed.
func (p *Parts) pins(t *Tool) bool { return p.Pins != nil && t.Feature.pinned() }

// Shown has a session learn what it is shown of a listing, before its client sees it. If titles and
// descriptions are neither pinned nor vetted, they raise its labels, which is recorded. It looks at
// the client of the call, and gives the call an ID.
func (g *Gate) Shown(ctx context.Context, c Call, tools []*Tool) error {
	c.ID = NewID()
	return g.parts.Load().show(ctx, &g.known, &c, tools)
}

// Shown has the session of the call learn what a tool with Relay shows it of other tools.
func (p Permit) Shown(ctx context.Context, tools []*Tool) error {
	if p.of == nil || p.of.relay == nil {
		return errors.New("only a tool that calls other tools may show their definitions to a session")
	}
	return p.of.parts.show(ctx, &p.of.relay.gate.known, &Call{
		ID: NewID(), Parent: p.of.call.ID, Who: p.of.call.Who, ClientName: p.of.call.ClientName, Session: p.of.call.Session, Connection: p.of.call.Connection,
	}, tools)
}

func (p *Parts) show(ctx context.Context, known *knownListings, c *Call, tools []*Tool) error {
	l := Lesson{Call: c.ID, Program: c.Program(), Connection: c.Connected(), Labels: p.shows(tools)}
	if p.TrackValues {
		l.Shown = known.of(p, tools)
	}
	if l.Labels == nil && l.Shown == nil {
		return nil
	}
	s, err := p.Sessions.View(ctx, c.Session)
	if err == nil && !s.Labels.Cover(l.Labels) {
		rec := Record{
			Event: eventLabel, Call: c, Session: s, After: s.Labels.Join(l.Labels), Code: codes.OK, Snapshot: p.Snapshot,
			Decision: Decision{Reasons: []string{"titles or descriptions were listed that nobody has pinned"}},
		}
		t := trail{Parts: p}
		err = t.record(ctx, &rec)
	}
	if err == nil {
		err = p.Sessions.Learn(ctx, c.Session, l)
	}
	if err != nil {
		return fmt.Errorf("the labels of the listing cannot be added to the session: %w", err)
	}
	return nil
}

// shows returns the labels that a session gets from a listing.
func (p *Parts) shows(tools []*Tool) Labels {
	for _, t := range tools {
		if !t.Vetted && !p.pins(t) && speaks(t.Definition) {
			return Labels{provenance.Untrusted}
		}
	}
	return nil
}

// speaks reports whether a definition says more than a name.
func speaks(d Doc) bool {
	for _, at := range [...]Doc{d, d.Get("annotations")} {
		if at.Get("title").Text() != "" || at.Get("description").Text() != "" {
			return true
		}
	}
	for a := range d.Get("arguments").Elements() { // of a prompt
		if speaks(a) {
			return true
		}
	}
	return false
}

// Recall has the session of a call learn what a kept result teaches, before the result is
// read in it: of a call that was made earlier, and in another session perhaps, and whose ID
// the call has.
func (g *Gate) Recall(ctx context.Context, c Call, kept Result) error {
	return g.parts.Load().recall(ctx, &c, kept)
}

func (p *Parts) recall(ctx context.Context, c *Call, kept Result) error {
	l := Lesson{Call: c.ID, Program: c.Program(), Connection: c.Connected(), Labels: kept.Labels}
	if p.TrackValues && kept.Labels.Cover(Labels{provenance.Untrusted}) { // what is not learnt is not trusted either
		l.From, l.Source = kept.Doc, provenance.FromUntrusted
	}
	if err := p.Sessions.Learn(ctx, c.Session, l); err != nil {
		return fmt.Errorf("the session's state cannot be stored: %w", err)
	}
	return nil
}
