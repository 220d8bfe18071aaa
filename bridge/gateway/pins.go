package gateway

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// newPins returns nil without options.
func newPins(o *options.Pins, j *journal) (*lock.Pins, error) {
	if o == nil {
		return nil, nil
	}
	return lock.New(lock.Options{Pins: *o, Record: j.notePin, Log: j.log})
}

// gatePins returns the pins as the gate knows them: nil without any.
func gatePins(p *lock.Pins) gate.Pins {
	if p == nil || p.Off() {
		return nil
	}
	return p
}

// fleetPins returns the pins as the fleet knows them: nil without any.
func fleetPins(p *lock.Pins, guests *perServer[*Guest]) fleet.Pins {
	if p == nil {
		return nil
	}
	return observer{p, guests}
}

// changePins puts another mode and lockfile in place.
func changePins(p *lock.Pins, next *options.Pins) (changed bool, err error) {
	if p == nil || next == nil {
		return false, nil
	}
	return p.Change(next.Mode, next.File)
}

// observer puts what servers declare into the words of pins.
type observer struct {
	*lock.Pins
	guests *perServer[*Guest] // that may change
}

// Observe implements [fleet.Pins].
func (o observer) Observe(d status.Declaration) {
	l := lock.Listing{Server: d.Server, Announced: d.Announced}
	if d.Config != nil {
		o.identify(&l, d)
	}
	if d.Instructions.Kind() == doc.String {
		l.Items = append(l.Items, lock.Item{Kind: lock.Instructions, Doc: d.Instructions})
	}
	modules := make(map[string]bool)
	for i, t := range d.Tools {
		tool := lock.Item{Kind: lock.Tool, Name: t.Get("name").Text(), Doc: t, Own: d.Own[i]}
		if d.Modules != nil {
			m := d.Modules[i]
			tool.Module = m.Name
			if m.Name != "" && !modules[m.Name] {
				modules[m.Name] = true
				l.Items = append(l.Items, lock.Item{Kind: lock.Module, Name: m.Name, Doc: m.Runs, Own: d.Own[i]})
			}
		}
		l.Items = append(l.Items, tool)
	}
	for _, p := range d.Prompts {
		l.Items = append(l.Items, lock.Item{Kind: lock.Prompt, Name: p.Get("name").Text(), Doc: p, Own: d.Config == nil})
	}
	for _, t := range d.Templates {
		l.Items = append(l.Items, lock.Item{Kind: lock.Template, Name: t.Get("uriTemplate").Text(), Doc: t, Own: d.Config == nil})
	}
	for _, p := range d.Pages {
		l.Items = append(l.Items, lock.Item{Kind: lock.Page, Name: p.Get("uri").Text(), Doc: p, Asks: !d.Config.Tools.Apps.On, Own: d.Config.Tools.Apps.PinOff})
	}
	for _, s := range d.Skills {
		l.Items = append(l.Items, lock.Item{Kind: lock.Skill, Name: s.Get("uri").Text(), Doc: s, Own: d.Config.Tools.Skills.Own})
	}
	if guest, ok := o.guests.get(d.Server); ok && guest.Named {
		for i := range l.Items {
			l.Items[i].Own = true
		}
	}
	o.Pins.Observe(l)
}

// identify adds what the server is. One that this program connects by itself is
// part of it.
func (o observer) identify(l *lock.Listing, d status.Declaration) {
	c := d.Config
	guest, isGuest := o.guests.get(d.Server)
	switch {
	case isGuest:
		identity := lock.Guest(sum(guest.WASM), guest.Args)
		identity.Own = guest.Development
		l.Items = append(l.Items, identity)
	case c.Command != "":
		p := lock.Program{Command: c.Command, Args: c.Args, Started: c.Args, Dir: c.Dir, Env: c.Env}
		if len(c.Written) > 0 {
			p.Command, p.Args = c.Written[0], c.Written[1:]
		}
		p.File, p.FileError = confine.Command{Path: c.Command, Args: c.Args, Env: c.Env, Dir: c.Dir}.File()
		identity, notes := p.Identity()
		l.Items, l.Notes = append(l.Items, identity), notes
	case c.URL != "":
		l.Items = append(l.Items, lock.Origin(c.URL, d.TLSKey))
	}
}

var errNoPins = errors.New("this gateway pins nothing: Config.Pins is nil, or pins.mode in its configuration off")

// Pins returns what is held against what servers declare, or an error without Config.Pins. The
// wasmgate command knows its type, and approves by that.
func (g Operator) Pins() (gate.Pins, error) {
	if g.pins == nil || g.pins.Off() {
		return nil, errNoPins
	}
	return g.pins, nil
}

// ReloadPins reads the lockfile again and notifies clients of the tools that they are offered now.
// by names the approver of new entries in it; "" if that is not known. On an error everything stays
// as it was.
func (g Operator) ReloadPins(by string) error {
	if g.pins == nil {
		return nil
	}
	if err := g.pins.Reload(by); err != nil {
		return err
	}
	g.fleet.Refresh()
	return nil
}

// FollowPins takes over what other gateways have seen and approved, by the names of the documents that they
// have changed, and tells the clients what they are offered now.
func (g Operator) FollowPins(by string, changed []string) error {
	if g.pins == nil {
		return nil
	}
	took, err := g.pins.Follow(by, changed)
	if took {
		g.fleet.Refresh()
	}
	return err
}

// memory keeps what servers listed last, in the folder in which pins keep theirs.
type memory struct {
	listings.Store
	pins *lock.Pins
	log  *slog.Logger
}

// newMemory returns nil without pins, which have the folder.
func newMemory(c *Config, p *lock.Pins) upstream.Memory {
	if p == nil {
		return nil
	}
	return memory{listings.Store{Dir: filepath.Join(c.Pins.Dir, "listed")}, p, c.Log}
}

// Recall implements [upstream.Memory]. Pins trust what a server itself declares when they first
// see it, so that nothing is recalled of a server that they have not seen.
func (m memory) Recall(server, config string) (listings.Listing, bool) {
	if !m.pins.Known(server) {
		return listings.Listing{}, false
	}
	l, known, err := m.Load(server, config)
	if err != nil {
		m.log.Warn("last listing not read; the server is listed once it has started", "server", server, "error", err)
	}
	return l, known
}

// Keep implements [upstream.Memory].
func (m memory) Keep(server string, l listings.Listing) {
	if err := m.Save(server, l); err != nil {
		m.log.Warn("listing not kept; after a restart the server is listed once it has started", "server", server, "error", err)
	}
}
