package lock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
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

// view is all that is known at one time, immutable.
type view struct {
	off     bool // see [options.PinOff]
	shared  bool // by several gateways
	file    *File
	servers map[string]*server
}

// clone returns a view that can be changed.
func (v *view) clone() *view {
	next := *v
	next.servers = maps.Clone(v.servers)
	return &next
}

// server is what is known of one server, immutable.
type server struct {
	strict  bool
	items   map[Key]declared
	trusted map[Key]seen // nil if nothing is
	fault   error        // why what is trusted is not known, or cannot be kept
	unkept  bool         // it cannot be kept
	began   time.Time    // of the first trust, while it is open
	until   time.Time    // its end
	notes   []string
}

// declared is an item with its pin.
type declared struct {
	Item
	pin Pin
}

// declared returns what the server declares.
func (s *server) declared() (items []Item) {
	for _, key := range sorted(s.items) {
		items = append(items, s.items[key].Item)
	}
	return items
}

// check returns nil if a thing with this digest is approved, and so are its server and, if
// it has one, its module with that digest.
func (v *view) check(k Key, digest string, module Key, moduleDigest string) error {
	if v.off {
		return nil
	}
	s, ok := v.servers[k.Server]
	if !ok {
		return &gate.Unpinned{Reason: "the " + string(k.Kind) + "'s server has not declared it yet"}
	}
	if i := s.items[k]; i.Own && i.pin.Digest == digest {
		return nil
	}
	if identity, ok := s.items[Key{k.Server, Identity, ""}]; ok {
		if state := v.state(s, identity.pin.Key, identity.pin.Digest); state.Quarantined() {
			return unpinned(k.Kind, identity.pin.Key, state, s.fault)
		}
	}
	if module.Name != "" {
		if state := v.state(s, module, moduleDigest); state.Quarantined() {
			return unpinned(k.Kind, module, state, s.fault)
		}
	}
	if state := v.state(s, k, digest); state.Quarantined() {
		return unpinned(k.Kind, k, state, s.fault)
	}
	return nil
}

// unpinned refuses something of a kind, because something that it needs is in a state.
func unpinned(of Kind, k Key, state State, cause error) error {
	how, _ := k.Kind.of()
	if of == Page {
		of = "app"
	}
	reason := "the " + string(of) + "'s " + how.subject + " is new, and no one has approved it yet"
	if state == StateChanged {
		reason = "the " + string(of) + "'s " + how.subject + " has changed since it was approved"
	}
	selector := k.String()
	if k.Kind == Identity {
		selector = k.Server
	}
	return &gate.Unpinned{Reason: reason, Remedy: "wasmgate pin diff " + quoted(selector), Err: cause}
}

// quoted writes an argument as a shell needs it.
func quoted(s string) string {
	if bare.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// state says what is to be thought of a thing with a digest.
func (v *view) state(s *server, k Key, digest string) State {
	if i := s.items[k]; i.Own && i.pin.Digest == digest {
		return StatePinned
	}
	if v.file.Rules(k.Server) {
		switch {
		case v.file.Approves(k, digest):
			return StatePinned
		case v.file.Names(k):
			return StateChanged
		default:
			return StateNew
		}
	}
	first, ok := s.trusted[k]
	switch {
	case s.strict || !ok || s.items[k].Asks:
		return StateNew
	case first.Digest == digest:
		return StateTrusted
	default:
		return StateChanged
	}
}

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

// An Entry is a thing that is declared or approved, as `pin list` shows it, with the digest
// that it has, or had before it was gone.
type Entry struct {
	Pin
	Label string    `json:"label"` // the name by which commands know it
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"` // since when it is trusted because it was there first
	Why   string    `json:"why,omitempty"`
}

func (v *view) entries() []Entry {
	var all []Entry
	for id, s := range v.servers {
		for key, i := range s.items {
			if i.Own {
				continue
			}
			e := Entry{Pin: i.pin, Label: key.String(), State: v.state(s, key, i.pin.Digest)}
			if first := s.trusted[key]; first.Digest == i.pin.Digest {
				e.Since = first.Since
			}
			if e.State.Quarantined() {
				e.Why = why(e.State, s.fault)
			}
			all = append(all, e)
		}
		for _, pin := range v.gone(id, s) {
			all = append(all, Entry{Pin: pin, Label: pin.String(), State: StateGone})
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
			add(Pin{Key: key, Digest: first.Digest})
		}
	}
	return all
}

// ErrNothing says that a selector names nothing that is declared.
var ErrNothing = errors.New("no server declares a definition of this name")

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
		return nil, fmt.Errorf("%s: %w; `wasmgate pin list` shows the pinned definitions", Visible(selector), ErrNothing)
	}
	return some, nil
}

// approval returns the digests that have to be in the lockfile so that the given
// entries can be used: themselves, and of a tool the identity of its server and its
// module. The first approval of a server takes over everything that is trusted of it, for
// from then on the lockfile alone rules.
func (v *view) approval(some []Entry) []Pin {
	var pins []Pin
	needed := make(map[Key]bool)
	servers := make(map[string]bool)
	for _, e := range some {
		if e.State == StateGone {
			continue
		}
		pins = append(pins, e.Pin)
		servers[e.Server] = true
		needed[Key{e.Server, Identity, ""}] = true
		needed[Key{e.Server, Module, v.servers[e.Server].items[e.Key].Module}] = true
	}
	for _, e := range v.entries() {
		takeOver := e.State == StateTrusted && !v.file.Rules(e.Server)
		if e.State != StateGone && servers[e.Server] && (needed[e.Key] || takeOver) {
			pins = append(pins, e.Pin)
		}
	}
	if v.shared {
		pins = v.withTrusted(pins)
	}
	pins = slices.DeleteFunc(pins, func(p Pin) bool { return v.file.Approves(p.Key, p.Digest) })
	slices.SortFunc(pins, Pin.compare)
	return slices.Compact(pins)
}

// withTrusted adds what is trusted of a server to the first pins of it: other gateways may have its earlier
// version for a while.
func (v *view) withTrusted(pins []Pin) []Pin {
	servers := map[string]bool{}
	for _, pin := range pins {
		servers[pin.Server] = !v.file.Rules(pin.Server)
	}
	for id, first := range servers {
		if !first {
			continue
		}
		for key, seen := range v.servers[id].trusted {
			pins = append(pins, Pin{Key: key, Digest: seen.Digest})
		}
	}
	slices.SortFunc(pins, func(a, b Pin) int { return cmp.Or(a.compare(b), cmp.Compare(b.Parts, a.Parts)) }) // with parts first
	return slices.CompactFunc(pins, func(a, b Pin) bool { return a.compare(b) == 0 })
}

func sorted(items map[Key]declared) []Key { return slices.SortedFunc(maps.Keys(items), Key.compare) }
