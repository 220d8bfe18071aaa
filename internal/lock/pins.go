package lock

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// windowAfter is how long after the last announcement of new tools the first
	// trust of a server closes; windowMax is how long it can be kept open.
	windowAfter = 2 * time.Second
	windowMax   = 10 * time.Second
)

// Options configure [Pins].
type Options struct {
	options.Pins
	// Record keeps the evidence of an event before it takes effect; nil keeps none.
	// An error of it trusts and approves of nothing.
	Record func(Event) error
	Log    *slog.Logger // nil discards
}

// An Event is something that became of a definition.
type Event struct {
	Pin
	Code string // EventFirstSeen, EventQuarantined or EventApproved
	Why  string
	By   string // the approver; "" if the lockfile was changed otherwise
}

// The codes of events.
const (
	EventFirstSeen   = "first_seen"
	EventQuarantined = "quarantined"
	EventApproved    = "approved"
)

// A Listing is all that a server is and declares, at one time.
type Listing struct {
	Server string
	Items  []Item
	// Announced is when the server said that its tools have changed. Zero says that
	// it has just been connected.
	Announced time.Time
	// Notes are what an operator should know about the server's identity.
	Notes []string
}

// Pins holds what servers declare against what is approved. It is a [gate.Pins].
// Use it from several goroutines.
type Pins struct {
	o     Options
	store store
	view  atomic.Pointer[view]
	turn  sync.Mutex // held over Observe and Reload, which read and write files: one at a time
}

var _ gate.Pins = (*Pins)(nil)

// New returns pins that have seen no server yet. The error is a [*SyntaxError] if
// the lockfile cannot be understood.
func New(o Options) (*Pins, error) {
	if o.Mode == "" {
		o.Mode = options.PinTrustFirst
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Record == nil {
		o.Record = func(Event) error { return nil }
	}
	p := &Pins{o: o, store: store{dir: o.Dir}}
	v, err := p.newView(o.Mode, o.File)
	if err != nil {
		return nil, err
	}
	p.view.Store(v)
	return p, nil
}

// newView reads a lockfile, if its mode needs one.
func (p *Pins) newView(mode options.PinMode, file string) (*view, error) {
	v := &view{off: mode == options.PinOff, file: new(File), servers: make(map[string]*server)}
	if mode != options.PinTrustFirst && mode != options.PinStrict && mode != options.PinOff {
		return nil, fmt.Errorf("unknown mode of pins %q", mode)
	}
	if v.off {
		return v, nil
	}
	var err error
	v.file, err = p.load(file)
	v.shared = p.store.shared != nil
	return v, err
}

// load reads the lockfile, and what all gateways have approved.
func (p *Pins) load(path string) (*File, error) { return LoadShared(path, p.store.shared) }

// LoadShared reads the lockfile at path, and what the gateways that share documents have approved; nil are none.
func LoadShared(path string, shared Shared) (*File, error) {
	f, err := Load(path)
	if err != nil || shared == nil {
		return f, err
	}
	doc := shared(approvedName)
	raw, _, err := doc.Load(context.Background(), 0)
	if err != nil {
		return nil, err
	}
	g, err := Parse(doc.Name(), raw)
	if err != nil {
		return nil, err
	}
	return f.With(g.Pins()...), nil
}

// Off reports whether the mode is [options.PinOff].
func (p *Pins) Off() bool { return p.view.Load().off }

// Change replaces the mode and the lockfile of [Options]. What servers have declared is compared with
// them as if it came now. On an error everything stays as it was.
func (p *Pins) Change(mode options.PinMode, file string) (changed bool, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if mode == "" {
		mode = options.PinTrustFirst
	}
	if mode == p.o.Mode && file == p.o.File {
		return false, nil
	}
	before := p.o.Pins
	p.o.Mode, p.o.File = mode, file
	if err := p.renew(); err != nil {
		p.o.Pins = before
		return false, err
	}
	return true, nil
}

// renew holds all that servers have declared against what is approved, as if it came now. Callers
// have the turn.
func (p *Pins) renew() error {
	next, err := p.newView(p.o.Mode, p.o.File)
	if err != nil {
		return err
	}
	for id, s := range p.view.Load().servers {
		p.observe(new(view), next, Listing{Server: id, Notes: s.notes, Items: s.declared()})
	}
	p.view.Store(next)
	return nil
}

// Check implements [gate.Pins]: the tool is known by its server, the name it has
// there, its digest, and the module in which it runs. A server that was not observed is
// approved of in nothing.
func (p *Pins) Check(t *gate.Tool) error {
	k, module := keys(t)
	return p.view.Load().check(k, t.Digest, module, t.ModuleDigest)
}

// CheckInstructions returns nil if what a server says of how it is used is approved, as
// [Pins.Check] does of a tool.
func (p *Pins) CheckInstructions(server string, text gate.Doc) error {
	return p.view.Load().check(Key{server, Instructions, ""}, text.Digest(), Key{}, "")
}

// Pinned reports whether a person has approved the definition of a tool.
func (p *Pins) Pinned(t *gate.Tool) bool {
	v := p.view.Load()
	k, module := keys(t)
	if v.off || v.check(k, t.Digest, module, t.ModuleDigest) != nil {
		return false
	}
	s := v.servers[k.Server]
	return v.state(s, k, t.Digest) == StatePinned && (t.Module == "" || v.state(s, module, t.ModuleDigest) == StatePinned)
}

// keys are those of a tool, or of the prompt or template in its place, and of its module.
func keys(t *gate.Tool) (tool, module Key) {
	kind := Tool
	switch {
	case t.Page != nil:
		kind = Page
	case t.Skill != nil:
		return Key{t.Name.Server, Skill, t.Skill.URI}, Key{}
	case t.Feature == gate.FeaturePrompt:
		kind = Prompt
	case t.Feature == gate.FeatureTemplate:
		kind = Template
	}
	return Key{t.Name.Server, kind, t.Local}, Key{t.Name.Server, Module, t.Module}
}

// Observe takes in what a server declares. It is called with each listing, before
// anything in it is offered.
func (p *Pins) Observe(l Listing) {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	next := old.clone()
	p.observe(old, next, l)
	p.view.Store(next)
}

// observe takes a listing into the next view.
func (p *Pins) observe(old, next *view, l Listing) {
	before := old.servers[l.Server]
	now := time.Now()
	s := &server{
		strict: p.o.Mode == options.PinStrict, notes: l.Notes,
		items: make(map[Key]declared, len(l.Items)),
	}
	for _, i := range l.Items {
		pin := i.pin(l.Server)
		s.items[pin.Key] = declared{i, pin}
	}
	next.servers[l.Server] = s
	if next.off {
		return
	}
	first := p.trust(s, before, l, next.file.Rules(l.Server), now)
	if err := p.tell(old, next, l.Server, first, ""); err != nil {
		p.o.Log.Error("pins not recorded", "server", l.Server, "error", err)
		s.trusted, s.fault = nil, fmt.Errorf("the audit log cannot be written: %w", err)
	}
	p.keepApproved(next, l.Server)
}

// trust decides which things of a server are trusted because they were there first. It returns the keys
// that are trusted from now on.
func (p *Pins) trust(s, before *server, l Listing, ruled bool, now time.Time) (first []Key) {
	if s.strict || ruled {
		return nil
	}
	more := false
	if before != nil && !l.Announced.IsZero() && !before.began.IsZero() {
		s.began, s.until = before.began, before.until
		if more = !l.Announced.After(s.until); more {
			s.until = minTime(l.Announced.Add(windowAfter), s.began.Add(windowMax))
		}
	}
	var had map[Key]seen
	if before != nil {
		had = before.trusted
	}
	var isNew bool
	s.trusted, isNew, s.fault = p.store.trust(l.Server, l.Items, more, now)
	if s.unkept = s.fault != nil; s.unkept {
		p.o.Log.Error("server quarantined", "server", l.Server, "error", s.fault)
		return nil
	}
	if isNew {
		s.began, s.until = now, now.Add(windowAfter)
	}
	if !isNew && !more {
		return p.trustPages(s, l, now)
	}
	for key := range s.trusted {
		if _, ok := had[key]; !ok {
			first = append(first, key)
		}
	}
	slices.SortFunc(first, Key.compare)
	return first
}

// trustPages trusts the first pages of a server that was seen before they could be shown: when
// the configuration has turned apps on since. It returns their keys.
func (p *Pins) trustPages(s *server, l Listing, now time.Time) (first []Key) {
	for key := range s.trusted {
		if key.Kind == Page {
			return nil
		}
	}
	var pages []Item
	for _, i := range l.Items {
		if i.Kind == Page && !i.Asks {
			pages, first = append(pages, i), append(first, i.key(l.Server))
		}
	}
	if pages == nil {
		return nil
	}
	if s.trusted, _, s.fault = p.store.trust(l.Server, pages, true, now); s.fault != nil {
		p.o.Log.Error("server quarantined", "server", l.Server, "error", s.fault)
		return nil
	}
	return first
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tell records the changes in the state of a server's definitions.
func (p *Pins) tell(old, next *view, id string, first []Key, by string) error {
	s, before := next.servers[id], old.servers[id]
	for _, key := range first {
		if err := p.o.Record(Event{Pin: Pin{Key: key, Digest: s.trusted[key].Digest}, Code: EventFirstSeen}); err != nil {
			return err
		}
	}
	var names []string
	for _, key := range sorted(s.items) {
		pin := s.items[key].pin
		state := next.state(s, key, pin.Digest)
		was := State("")
		if before != nil {
			if i, ok := before.items[key]; ok && i.pin.Digest == pin.Digest {
				was = old.state(before, key, pin.Digest)
			}
		}
		e := Event{Pin: pin, By: by}
		switch {
		case state.Quarantined() && state != was:
			e.Code, e.Why = EventQuarantined, why(state, s.fault)
			names = append(names, key.String())
		case state == StatePinned && (was.Quarantined() || was == StateTrusted):
			e.Code = EventApproved
		default:
			continue
		}
		if err := p.o.Record(e); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		p.o.Log.Warn("definitions quarantined", "server", id, "count", len(names), "names", Visible(strings.Join(names[:min(len(names), maxNames)], " ")))
	}
	return nil
}

// maxNames is how many names of quarantined things are logged at once.
const maxNames = 10

// keepApproved keeps the definitions that a person has approved, so that what
// comes after them can be compared with them. Without them a difference can be
// told, but not shown.
func (p *Pins) keepApproved(v *view, id string) {
	s := v.servers[id]
	for key, i := range s.items {
		if !i.Own && v.file.Approves(key, i.pin.Digest) {
			if err := p.store.keep(i.Doc); err != nil {
				p.o.Log.Warn("definition not kept", "server", id, "tool", Visible(key.Name), "error", err)
				return
			}
		}
	}
}

// Reload reads the lockfile again. If it cannot be read, or the change cannot be
// recorded, everything stays as it was. By is who has approved what is new in it;
// "" if that is not known.
func (p *Pins) Reload(by string) error { return p.reload(by, nil) }

// reload is Reload. The records of stale servers are read again, and what could not be kept is tried again.
func (p *Pins) reload(by string, stale []string) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	if old.off {
		return nil
	}
	f, err := p.load(p.o.File)
	if err != nil {
		return err
	}
	next := old.clone()
	next.file = f
	first := make(map[string][]Key)
	for id, s := range old.servers {
		free := old.file.Rules(id) && !f.Rules(id) // what was trusted first counts again
		if s.strict || !free && !s.unkept && !slices.Contains(stale, id) {
			continue
		}
		s := *s
		var items []Item
		if s.unkept {
			items = s.declared()
		}
		now := time.Now()
		var isNew bool
		s.trusted, isNew, s.fault = p.store.trust(id, items, false, now)
		if s.unkept = s.fault != nil; isNew && items != nil {
			s.began, s.until = now, now.Add(windowAfter)
			first[id] = slices.SortedFunc(maps.Keys(s.trusted), Key.compare)
		}
		next.servers[id] = &s
	}
	for _, id := range slices.Sorted(maps.Keys(next.servers)) {
		if err := p.tell(old, next, id, first[id], by); err != nil {
			return fmt.Errorf("the lockfile is not loaded: %w", err)
		}
		p.keepApproved(next, id)
	}
	p.view.Store(next)
	return nil
}

// Known reports whether a server has been seen before, in this run or an earlier one, or is approved:
// then its declarations are not trusted for being the first.
func (p *Pins) Known(server string) bool {
	v := p.view.Load()
	if v.off || v.servers[server] != nil || v.file.Rules(server) {
		return true
	}
	r, err := p.store.read(server)
	return err == nil && r != nil
}

// Forget forgets that a server was seen; the things that are trusted stay trusted.
func (p *Pins) Forget(id string) {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	next := old.clone()
	delete(next.servers, id)
	p.view.Store(next)
}

// Entries returns everything that is declared or approved, sorted. Of what is the
// gateway's own there is nothing to say.
func (p *Pins) Entries() []Entry { return p.view.Load().entries() }

// Notes returns what an operator should know of the identity of a server.
func (p *Pins) Notes(server string) []string {
	if s := p.view.Load().servers[server]; s != nil {
		return s.notes
	}
	return nil
}

// Faulted returns why nothing of a server can be trusted, or nil.
func (p *Pins) Faulted(server string) error {
	if s := p.view.Load().servers[server]; s != nil {
		return s.fault
	}
	return nil
}
