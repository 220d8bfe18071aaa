package lock

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A Mode says what is approved of servers that the lockfile does not have.
type Mode string

const (
	// TrustFirst trusts what a server declares when it is first seen.
	TrustFirst Mode = "trust-first"
	// Strict trusts nothing.
	Strict Mode = "strict"
	// Off approves of everything, and keeps nothing.
	Off Mode = "off"
)

const (
	// windowAfter is how long after the last announcement of new tools the first
	// trust of a server closes; windowMax is how long it can be kept open.
	windowAfter = 2 * time.Second
	windowMax   = 10 * time.Second
)

// Options configure [Pins].
type Options struct {
	Mode Mode   // "" means TrustFirst
	File string // path of the lockfile, which need not exist; required
	Dir  string // folder for what is trusted first; required
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
	By   string // who approved; "" if the lockfile was changed otherwise
}

// The codes of events.
const (
	EventFirstSeen   = "first_seen"
	EventQuarantined = "quarantined"
	EventApproved    = "approved"
)

// A State says what is to be thought of a definition.
type State string

// The states. Only what is pinned or trusted is offered and can be called.
const (
	StatePinned  State = "pinned"              // a person has approved it
	StateTrusted State = "trusted"             // it was there when its server was first seen
	StateNew     State = "quarantined new"     // nothing of its name was approved
	StateChanged State = "quarantined changed" // something else of its name was approved
	StateGone    State = "gone"                // it was approved, and the server does not declare it any more
)

// Quarantined reports whether what is in the state is neither offered nor callable.
func (s State) Quarantined() bool { return s == StateNew || s == StateChanged }

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

// view is all that is known at one time, immutable.
type view struct {
	off     bool // see [Off]
	file    *File
	servers map[string]*server
}

// server is what is known of one server, immutable.
type server struct {
	strict  bool
	items   map[Key]Item
	own     map[Pin]struct{}
	trusted map[Key]seen // nil if nothing is
	fault   error        // why what is trusted is not known, or cannot be kept
	began   time.Time    // of the first trust, while it is open
	until   time.Time    // its end
	notes   []string
	files   map[Key]bool // what has changed by the file of its module alone
}

var _ gate.Pins = (*Pins)(nil)

// New returns pins that have seen no server yet. The error is a [*SyntaxError] if
// the lockfile cannot be understood.
func New(o Options) (*Pins, error) {
	if o.Mode == "" {
		o.Mode = TrustFirst
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Record == nil {
		o.Record = func(Event) error { return nil }
	}
	v, err := newView(o.Mode, o.File)
	if err != nil {
		return nil, err
	}
	p := &Pins{o: o, store: store{o.Dir}}
	p.view.Store(v)
	return p, nil
}

// newView reads a lockfile, if its mode needs one.
func newView(mode Mode, file string) (*view, error) {
	v := &view{off: mode == Off, file: new(File), servers: make(map[string]*server)}
	if mode != TrustFirst && mode != Strict && mode != Off {
		return nil, fmt.Errorf("unknown mode of pins %q", mode)
	}
	if v.off {
		return v, nil
	}
	var err error
	v.file, err = Load(file)
	return v, err
}

// Off reports whether the mode is [Off].
func (p *Pins) Off() bool { return p.view.Load().off }

// Change puts another mode and another lockfile in the place of those of [Options]. What
// servers have declared is held against them as if it came now. On an error all stays as it
// was.
func (p *Pins) Change(mode Mode, file string) (changed bool, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if mode == "" {
		mode = TrustFirst
	}
	if mode == p.o.Mode && file == p.o.File {
		return false, nil
	}
	next, err := newView(mode, file)
	if err != nil {
		return false, err
	}
	p.o.Mode, p.o.File = mode, file
	for id, s := range p.view.Load().servers {
		l := Listing{Server: id, Notes: s.notes}
		for _, key := range sorted(s.items) {
			l.Items = append(l.Items, s.items[key])
		}
		p.observe(new(view), next, l)
	}
	p.view.Store(next)
	return true, nil
}

// Check implements [gate.Pins]: the tool is known by its server, the name it has
// there, and its digest. A server that was not observed is approved of in nothing.
func (p *Pins) Check(t *gate.Tool) error {
	return p.view.Load().check(toolPin(t))
}

// Pinned reports whether a person has approved the definition of a tool.
func (p *Pins) Pinned(t *gate.Tool) bool {
	v, pin := p.view.Load(), toolPin(t)
	return !v.off && v.check(pin) == nil && v.state(v.servers[pin.Server], pin) == StatePinned
}

// toolPin is what stands for a tool, or for the prompt or template in its place.
func toolPin(t *gate.Tool) Pin {
	kind := Tool
	switch t.Feature {
	case gate.FeaturePrompt:
		kind = Prompt
	case gate.FeatureTemplate:
		kind = Template
	}
	return Pin{Key{t.Name.Server, kind, t.Local}, t.Digest}
}

// check returns nil if what the pin stands for is approved, and its server is the
// one that was approved.
func (v *view) check(p Pin) error {
	if v.off {
		return nil
	}
	s, ok := v.servers[p.Server]
	if !ok {
		return &gate.Unpinned{Reason: "the " + string(p.Kind) + "'s server has not declared it yet"}
	}
	if _, own := s.own[p]; own {
		return nil
	}
	if identity, ok := s.items[Key{p.Server, Identity, ""}]; ok {
		if state := v.state(s, identity.pin(p.Server)); state.Quarantined() {
			return unpinned(s.what(p.Kind, Key{p.Server, Identity, ""}), state, p.Server, s.fault)
		}
	}
	if state := v.state(s, p); state.Quarantined() {
		return unpinned(s.what(p.Kind, p.Key), state, p.String(), s.fault)
	}
	return nil
}

// what names what of a thing of a kind is new, or has changed.
func (s *server) what(kind Kind, k Key) string {
	switch {
	case s.files[k] && k.Kind == Identity:
		return "the file of the " + string(kind) + "'s server, a module,"
	case s.files[k]:
		return "the file of the " + string(kind) + "'s module"
	case k.Kind == Identity:
		return "the " + string(kind) + "'s server"
	}
	return "the " + string(kind) + "'s definition"
}

// changedFiles returns what of a server has changed by the file of its module alone.
func (p *Pins) changedFiles(v *view, id string) map[Key]bool {
	files := make(map[Key]bool)
	s := v.servers[id]
	for key, i := range s.items {
		if i.Doc.Get("module").IsZero() || v.state(s, i.pin(id)) != StateChanged {
			continue
		}
		if old := p.approved(v, s, key); !old.IsZero() {
			changes, _ := Compare(old, i.Doc)
			files[key] = len(changes) == 1 && changes[0].Pointer == modulePointer
		}
	}
	return files
}

func unpinned(what string, state State, selector string, cause error) error {
	reason := what + " is new, and nobody has approved it yet"
	if state == StateChanged {
		reason = what + " has changed since it was approved"
	}
	return &gate.Unpinned{Reason: reason, Remedy: "wasmgate pin approve " + quoted(selector), Err: cause}
}

// quoted writes an argument as a shell needs it.
func quoted(s string) string {
	if bare.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// state says what is to be thought of a definition.
func (v *view) state(s *server, p Pin) State {
	if _, own := s.own[p]; own {
		return StatePinned
	}
	if v.file.Rules(p.Server) {
		switch {
		case v.file.Approves(p):
			return StatePinned
		case v.file.Names(p.Key):
			return StateChanged
		default:
			return StateNew
		}
	}
	first, ok := s.trusted[p.Key]
	switch {
	case s.strict || !ok:
		return StateNew
	case first.Digest == p.Digest:
		return StateTrusted
	default:
		return StateChanged
	}
}

// Observe takes in what a server declares. It is called with each listing, before
// anything in it is offered.
func (p *Pins) Observe(l Listing) {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	next := &view{old.off, old.file, maps.Clone(old.servers)}
	p.observe(old, next, l)
	p.view.Store(next)
}

// observe takes a listing into the next view.
func (p *Pins) observe(old, next *view, l Listing) {
	before := old.servers[l.Server]
	now := time.Now()
	s := &server{
		strict: p.o.Mode == Strict, notes: l.Notes,
		items: make(map[Key]Item, len(l.Items)), own: make(map[Pin]struct{}),
	}
	for _, i := range l.Items {
		pin := i.pin(l.Server)
		s.items[pin.Key] = i
		if i.Own {
			s.own[pin] = struct{}{}
		}
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
	s.files = p.changedFiles(next, l.Server)
}

// trust finds out what of a server is trusted for having been there first. It
// returns the keys that are trusted from now on.
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
	if s.fault != nil {
		p.o.Log.Error("server quarantined", "server", l.Server, "error", s.fault)
		return nil
	}
	if isNew {
		s.began, s.until = now, now.Add(windowAfter)
	}
	if !isNew && !more {
		return nil
	}
	for key := range s.trusted {
		if _, ok := had[key]; !ok {
			first = append(first, key)
		}
	}
	slices.SortFunc(first, Key.compare)
	return first
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tell records what has become of the definitions of a server.
func (p *Pins) tell(old, next *view, id string, first []Key, by string) error {
	s, before := next.servers[id], old.servers[id]
	for _, key := range first {
		if err := p.o.Record(Event{Pin: Pin{key, s.trusted[key].Digest}, Code: EventFirstSeen}); err != nil {
			return err
		}
	}
	var names []string
	for _, key := range sorted(s.items) {
		pin := s.items[key].pin(id)
		state := next.state(s, pin)
		was := State("")
		if before != nil {
			if i, ok := before.items[key]; ok && i.Doc.Digest() == pin.Digest {
				was = old.state(before, pin)
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

// maxNames is how many names of what is quarantined are told at once.
const maxNames = 10

func why(s State, fault error) string {
	text := "it is new"
	if s == StateChanged {
		text = "it has changed since it was approved"
	}
	if fault != nil {
		text += "; " + fault.Error()
	}
	return text
}

// keepApproved keeps the definitions that a person has approved, so that what
// comes after them can be compared with them. Without them a difference can be
// told, but not shown.
func (p *Pins) keepApproved(v *view, id string) {
	s := v.servers[id]
	for key, i := range s.items {
		if pin := i.pin(id); !i.Own && v.file.Approves(pin) {
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
func (p *Pins) Reload(by string) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	if old.off {
		return nil
	}
	f, err := Load(p.o.File)
	if err != nil {
		return err
	}
	next := &view{false, f, maps.Clone(old.servers)}
	for id, s := range old.servers {
		if old.file.Rules(id) && !f.Rules(id) && !s.strict { // what was trusted first counts again
			s := *s
			s.trusted, _, s.fault = p.store.trust(id, nil, false, time.Now())
			next.servers[id] = &s
		}
	}
	for _, id := range slices.Sorted(maps.Keys(next.servers)) {
		if err := p.tell(old, next, id, nil, by); err != nil {
			return fmt.Errorf("the lockfile is not taken over: %w", err)
		}
		p.keepApproved(next, id)
		s := *next.servers[id]
		s.files = p.changedFiles(next, id)
		next.servers[id] = &s
	}
	p.view.Store(next)
	return nil
}

// Forget forgets that a server was seen; what it is trusted for stays.
func (p *Pins) Forget(id string) {
	p.turn.Lock()
	defer p.turn.Unlock()
	old := p.view.Load()
	next := &view{old.off, old.file, maps.Clone(old.servers)}
	delete(next.servers, id)
	p.view.Store(next)
}

// An Entry is a thing that is declared or approved, as `pin list` shows it.
type Entry struct {
	Key
	Label  string    `json:"label"` // the name by which commands know it
	State  State     `json:"state"`
	Digest string    `json:"digest"`         // of what the server declares, or for what is gone declared
	Since  time.Time `json:"since,omitzero"` // since when it is trusted, for what was there first
	Why    string    `json:"why,omitempty"`
}

// Pin returns the digest of the entry, to be approved.
func (e Entry) Pin() Pin { return Pin{e.Key, e.Digest} }

// Entries returns everything that is declared or approved, sorted. Of what is the
// gateway's own there is nothing to say.
func (p *Pins) Entries() []Entry {
	v := p.view.Load()
	var all []Entry
	for id, s := range v.servers {
		for key, i := range s.items {
			if i.Own {
				continue
			}
			pin := i.pin(id)
			e := Entry{Key: key, Label: key.String(), State: v.state(s, pin), Digest: pin.Digest}
			if first := s.trusted[key]; first.Digest == pin.Digest {
				e.Since = first.Since
			}
			if e.State.Quarantined() {
				e.Why = why(e.State, s.fault)
			}
			all = append(all, e)
		}
		for _, pin := range v.gone(id, s) {
			all = append(all, Entry{Key: pin.Key, Label: pin.String(), State: StateGone, Digest: pin.Digest})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return a.Key.compare(b.Key) })
	return all
}

// gone returns what is approved of a server, and not declared any more: of each
// thing one digest.
func (v *view) gone(id string, s *server) (all []Pin) {
	known := make(map[Key]bool)
	add := func(p Pin) {
		if _, declared := s.items[p.Key]; !declared && !known[p.Key] {
			known[p.Key] = true
			all = append(all, p)
		}
	}
	if v.file.Rules(id) {
		for _, pin := range v.file.Pins() {
			if pin.Server == id {
				add(pin)
			}
		}
		return all
	}
	if !s.strict {
		for key, first := range s.trusted {
			add(Pin{key, first.Digest})
		}
	}
	return all
}

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

// ErrNothing says that a selector names nothing that is declared.
var ErrNothing = errors.New("no server declares that")

// Select returns the entries that a person names: a tool by the name it is called
// by, all of a server by its name, and everything by "". The error wraps
// [ErrNothing] if there is nothing of that name.
func Select(all []Entry, selector string) ([]Entry, error) {
	var some []Entry
	for _, e := range all {
		if selector == "" || selector == e.Server || selector == e.Label {
			some = append(some, e)
		}
	}
	if len(some) == 0 && selector != "" {
		return nil, fmt.Errorf("%s: %w; `wasmgate pin list` shows what is", Visible(selector), ErrNothing)
	}
	return some, nil
}

// Approval returns the digests that have to be in the lockfile so that the given
// entries can be used: themselves, and for a tool the identity of its server. The
// first approval of a server takes over everything that is trusted of it, for from
// then on the lockfile alone rules.
func (p *Pins) Approval(some []Entry) []Pin {
	v := p.view.Load()
	var pins []Pin
	servers := make(map[string]bool)
	for _, e := range some {
		if e.State == StateGone {
			continue
		}
		pins = append(pins, e.Pin())
		servers[e.Server] = true
	}
	for _, e := range p.Entries() {
		takeOver := e.State == StateTrusted && !v.file.Rules(e.Server)
		if servers[e.Server] && (e.Kind == Identity || takeOver) {
			pins = append(pins, e.Pin())
		}
	}
	pins = slices.DeleteFunc(pins, v.file.Approves)
	slices.SortFunc(pins, Pin.compare)
	return slices.Compact(pins)
}

func sorted(items map[Key]Item) []Key { return slices.SortedFunc(maps.Keys(items), Key.compare) }
