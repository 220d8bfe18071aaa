package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/scan/report"
)

// Pins tells what is pinned, trusted and quarantined.
type Pins struct {
	Mode     string       `json:"mode"`
	Lockfile string       `json:"lockfile"`
	Pins     []lock.Entry `json:"pins"`
}

// Count returns how many definitions are quarantined.
func (p *Pins) Count() (n int) {
	for _, e := range p.Pins {
		if e.State.Quarantined() {
			n++
		}
	}
	return n
}

// Pins returns what is known of the things that a selector names: a tool or a
// server; "" is everything.
func (a *App) Pins(ctx context.Context, selector string) (*Pins, error) {
	pins, err := a.settledPins(ctx)
	if err != nil {
		return nil, err
	}
	some, err := lock.Select(pins.Entries(), selector)
	return &Pins{a.Config().Pins.Mode, a.Config().Pins.Lockfile, slices.Concat([]lock.Entry{}, some)}, err
}

// PinReview returns how what a selector names differs from what was approved, with what a
// scan finds in it, and the digests that its approval adds. It approves nothing.
func (a *App) PinReview(ctx context.Context, selector string) (*lock.Review, error) {
	pins, err := a.settledPins(ctx)
	if err != nil {
		return nil, err
	}
	look, err := report.Look(a.gateway)
	if err != nil {
		return nil, err
	}
	review, err := pins.Review(selector, look)
	return &review, err
}

// ReloadPins reads the lockfile now rather than within a second. By is who has
// approved what is new in it.
func (a *App) ReloadPins(_ context.Context, by string) error { return a.reloadPins(by) }

// startedWait bounds how long a question about pins waits for servers that start.
const startedWait = 10 * time.Second

// settledPins returns the pins once the servers have had time to declare what they
// have.
func (a *App) settledPins(ctx context.Context) (*lock.Pins, error) {
	pins, err := a.gateway.Operator().Pins()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startedWait)
	defer cancel()
	a.gateway.Fleet().Started(ctx)
	return pins, nil
}

// reloadPins puts what the lockfile holds now in place.
func (a *App) reloadPins(by string) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return a.takePins(by)
}

// takePins is reloadPins for callers that hold reloading.
func (a *App) takePins(by string) error {
	err := a.gateway.Operator().ReloadPins(by)
	a.pinError.Store(&outcome{err})
	if err != nil {
		a.log.Error("lockfile refused; the last good one is still in use", "error", err)
		return fmt.Errorf("%w; the last good lockfile stays in use", err)
	}
	return nil
}

// watchPins returns what loads the lockfile anew if it has changed.
func (a *App) watchPins() func() {
	state := func() string { return a.Config().Pins.Lockfile + " " + watch.State(a.Config().Pins.Lockfile) }
	last := state()
	return func() {
		if now := state(); now != last {
			last = now
			_ = a.reloadPins("") // it logs what is wrong
		}
	}
}

// maxQuarantineNames is how many names a note holds.
const maxQuarantineNames = 10

// addPins says of each server what of it is quarantined, and what to do about it.
// Tools that are not callable do not count as the server's.
func (a *App) addPins(servers []status.Server) []status.Server {
	pins, err := a.gateway.Operator().Pins()
	if err != nil {
		return servers
	}
	quarantined := make(map[string][]lock.Entry)
	for _, e := range pins.Entries() {
		if e.State.Quarantined() {
			quarantined[e.Server] = append(quarantined[e.Server], e)
		}
	}
	callable := make(map[string]int)
	for _, t := range a.gateway.Fleet().KnownFeatures(gate.FeatureTool) {
		if pins.Check(t) == nil {
			callable[t.Name.Server]++
		}
	}
	for i := range servers {
		s := &servers[i]
		s.Tools = min(s.Tools, callable[s.Server])
		for _, n := range pins.Notes(s.Server) {
			s.Notes = append(s.Notes, status.Note{Text: n})
		}
		if some := quarantined[s.Server]; len(some) > 0 {
			for _, e := range some {
				s.Quarantined = append(s.Quarantined, e.Label)
			}
			s.Notes = append(s.Notes, status.Note{Quarantined: true, Text: quarantineNote(s.Server, some, pins.Faulted(s.Server))})
		}
	}
	return servers
}

func quarantineNote(server string, some []lock.Entry, fault error) string {
	var names []string
	for _, e := range some[:min(len(some), maxQuarantineNames)] {
		what := "new"
		if e.State == lock.StateChanged {
			what = "changed"
		}
		names = append(names, lock.Visible(e.Label)+" ("+what+")")
	}
	text := fmt.Sprintf("%d not approved: %s", len(some), strings.Join(names, ", "))
	if more := len(some) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if fault != nil {
		return text + "; " + fault.Error()
	}
	return fmt.Sprintf("%s: look first with `wasmgate pin diff %s`", text, server)
}

// whyNot says why a tool is not offered to a principal.
func (a *App) whyNot(t *gate.Tool, who *gate.Principal) string {
	if t.AppOnly {
		return "only for the app of " + t.Name.Server + ": offered to clients that show it"
	}
	if why := a.quarantine(t); why != "" && t.Feature != gate.FeatureResource { // which come and go with what they are of
		return "quarantined: " + why
	}
	if !who.Groups.Has(t) {
		return "in none of the groups that " + who.ID + " is offered"
	}
	return "no policy allows it for " + who.ID
}

// quarantine returns why a feature is offered to no one, or "".
func (a *App) quarantine(t *gate.Tool) string {
	if t.Quarantine != "" {
		return t.Quarantine
	}
	if pins, err := a.gateway.Operator().Pins(); err == nil {
		if err := pins.Check(t); err != nil {
			return err.Error()
		}
	}
	return ""
}

// pinRequest names what a command is about, what it approves, or who it acts for.
type pinRequest struct {
	Selector string     `json:"selector,omitempty"`
	Pins     []lock.Pin `json:"pins,omitempty"`
	By       string     `json:"by,omitempty"`
}

// handlePins answers what commands ask of pins.
func (a *App) handlePins(ctx context.Context, method string, r pinRequest) (any, error) {
	switch method {
	case methodPins:
		return a.Pins(ctx, r.Selector)
	case methodPinReview:
		return a.PinReview(ctx, r.Selector)
	case methodPinApprove:
		return a.ApprovePins(ctx, r.Pins, r.By)
	default:
		return struct{}{}, a.ReloadPins(ctx, r.By)
	}
}

// Pins returns what [App.Pins] does.
func (r *Remote) Pins(ctx context.Context, selector string) (*Pins, error) {
	p := new(Pins)
	err := r.call(ctx, methodPins, pinRequest{Selector: selector}, p)
	return p, err
}

// PinReview returns what [App.PinReview] does.
func (r *Remote) PinReview(ctx context.Context, selector string) (*lock.Review, error) {
	review := new(lock.Review)
	err := r.call(ctx, methodPinReview, pinRequest{Selector: selector}, review)
	return review, err
}

// ApprovePins does what [App.ApprovePins] does.
func (r *Remote) ApprovePins(ctx context.Context, pins []lock.Pin, by string) ([]lock.Pin, error) {
	return asked[[]lock.Pin](ctx, r, methodPinApprove, pinRequest{Pins: pins, By: by})
}

// ReloadPins does what [App.ReloadPins] does.
func (r *Remote) ReloadPins(ctx context.Context, by string) error {
	return r.call(ctx, methodPinReload, pinRequest{By: by}, new(struct{}))
}
