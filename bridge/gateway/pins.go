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
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/lock"
)

func (g *Gateway) newPins() (err error) {
	if g.cfg.Pins == nil {
		return nil
	}
	g.pins, err = lock.New(lock.Options{Pins: *g.cfg.Pins, Record: g.recordPin, Log: g.cfg.Log})
	return err
}

// recordPin keeps what became of a definition.
func (g *Gateway) recordPin(e lock.Event) error {
	entry := audit.Entry{Event: audit.Pin, Code: e.Code, Server: e.Server, Tool: e.Key.String(), ToolDigest: e.Digest, Principal: e.By}
	if e.Why != "" {
		entry.Reasons = []string{e.Why}
	}
	return g.note(entry)
}

// gatePins returns the pins as the gate knows them: nil without any.
func (g *Gateway) gatePins() gate.Pins {
	if g.pins == nil || g.pins.Off() {
		return nil
	}
	return g.pins
}

// setPins puts another mode and lockfile in place.
func (g *Gateway) setPins(next *options.Pins) (changed bool, err error) {
	if g.pins == nil || next == nil {
		return false, nil
	}
	return g.pins.Change(next.Mode, next.File)
}

func (g *Gateway) fleetPins() fleet.Pins {
	if g.pins == nil {
		return nil
	}
	return observer{g.pins, g.guests}
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

// Pins returns what is held against what servers declare, or an error without
// Config.Pins.
func (g operator) Pins() (*lock.Pins, error) {
	if g.pins == nil || g.pins.Off() {
		return nil, errNoPins
	}
	return g.pins, nil
}

// ReloadPins reads the lockfile again and notifies clients of the tools that they are offered now.
// by names the approver of new entries in it; "" if that is not known. On an error everything stays
// as it was.
func (g operator) ReloadPins(by string) error {
	if g.pins == nil {
		return nil
	}
	if err := g.pins.Reload(by); err != nil {
		return err
	}
	g.fleet.Refresh()
	return nil
}

// SharePins has pins kept in documents that several gateways share. It is called before the first
// request.
func (g operator) SharePins(shared lock.Shared) error {
	if g.pins == nil {
		return nil
	}
	return g.pins.Share(shared)
}

// FollowPins takes over what other gateways have seen and approved, by the names of the documents that they
// have changed, and tells the clients what they are offered now.
func (g operator) FollowPins(by string, changed []string) error {
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

// memory returns nil without Config.Pins, which have the folder.
func (g *Gateway) memory() upstream.Memory {
	if g.pins == nil {
		return nil
	}
	return memory{listings.Store{Dir: filepath.Join(g.cfg.Pins.Dir, "listed")}, g.pins, g.cfg.Log}
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
