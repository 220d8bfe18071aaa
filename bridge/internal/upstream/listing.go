package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

// relist reads the listing anew, which the server announced to have changed.
func (e *Endpoint) relist(ctx context.Context, l *link.Link, announced time.Time) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.ConnectTimeout)
	defer cancel()
	e.ownership.relist(ctx, l, announced)
}

// offer has a listing of the shared connection seen and offered, with the tools of own
// connections. The caller holds joining.
func (e *Endpoint) offer(l *link.Link, shared, tools *listing.Tools, announced time.Time) {
	e.observes(e.declaration(l, tools, announced))
	e.mu.Lock()
	other := e.link == l && !tools.Same(e.tools)
	if e.link == l {
		e.shared, e.tools = shared, tools
	}
	e.mu.Unlock()
	if other {
		e.changed()
		e.keep(l, shared)
	}
}

// listFeatures reads the listings of what the server says that it has, and puts into hints
// for how long they can be kept. One that the
// server answers with an error is a note: its tools are of use without it.
func (e *Endpoint) listFeatures(ctx context.Context, l *link.Link, hints map[gate.Feature]link.Hint) (*listing.Features, error) {
	s := e.features(l.Capabilities)
	for _, one := range []struct {
		feature        gate.Feature
		method, member string
	}{
		{gate.FeaturePrompt, "prompts/list", "prompts"},
		{gate.FeatureResource, "resources/list", "resources"},
		{gate.FeatureTemplate, "resources/templates/list", "resourceTemplates"},
	} {
		if !s.Offers[one.feature] {
			continue
		}
		defs, kept, err := l.List(ctx, one.method, one.member)
		if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
			if rpc.Code != mcp.CodeMethodNotFound {
				s.Notes = append(s.Notes, status.Note{Text: fmt.Sprintf("%s failed: %.200q", one.method, rpc.Message)})
			}
			continue
		}
		if errors.Is(err, link.ErrNoList) {
			s.Notes = append(s.Notes, status.Note{Text: fmt.Sprintf("%s: %v; treated as empty", one.method, err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		if kept.Cut != "" {
			s.Notes = append(s.Notes, status.Note{Text: one.method + ": " + kept.Cut})
		}
		hints[one.feature] = kept
		s.Add(one.feature, defs)
	}
	return s, nil
}

// readPages reads the pages that the server's lists name, in half of the time that ctx has left at
// most: its tools answer without them. A server whose pages broke a connection is asked for none again.
func (e *Endpoint) readPages(ctx context.Context, l *link.Link, tools *listing.Tools) {
	refs := tools.Pages(e.cfg.Tools.Apps)
	if len(refs) == 0 {
		return
	}
	if e.pagesBreak.Load() {
		tools.Notes = append(tools.Notes, status.Note{Text: "pages of apps are not read: reading them broke the connection"})
		return
	}
	ctx, cancel := halfOf(ctx)
	defer cancel()
	tools.AddPages(e.cfg.Tools.Apps, refs, func(uri string) (gate.Doc, error) { return l.Read(ctx, uri) })
	if l.Peer.Why() != nil {
		e.pagesBreak.Store(true)
	}
}

// halfOf bounds a context to half of the time that it has left, or to a minute if it has no end.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline) / 2
	}
	return context.WithTimeout(ctx, limit)
}

// readSkills lists the skills of the server and reads those that are new, in half of the time that
// ctx has left at most. If that is not enough for all, the server is listed again.
func (e *Endpoint) readSkills(ctx context.Context, l *link.Link, s *listing.Features, hints map[gate.Feature]link.Hint) {
	if !s.HasSkills {
		return
	}
	ctx, cancel := halfOf(ctx)
	defer cancel()
	entries, kept, err := l.ListSkills(ctx)
	if err != nil {
		s.Notes = append(s.Notes, status.Note{Feature: gate.FeatureSkill, Text: fmt.Sprintf("skills/list failed: %.200q", err.Error())})
		return
	}
	if kept.Cut != "" {
		s.Notes = append(s.Notes, status.Note{Feature: gate.FeatureSkill, Text: "skills/list: " + kept.Cut})
	}
	hints[gate.FeatureSkill] = kept
	e.examining.Lock()
	defer e.examining.Unlock()
	r := &listing.SkillReader{Known: e.examined, Read: func(uri string) (gate.Doc, error) {
		result, err := l.Read(ctx, uri)
		if ctx.Err() != nil {
			err = listing.ErrNoTime
		}
		return result, err
	}}
	s.AddSkills(e.cfg.Tools.Skills, entries, r)
	more := len(r.Next) > len(e.examined)
	if e.examined, e.skillsAt = r.Next, time.Now(); r.Late > 0 && more {
		l.ListsChanged()
	}
}

// toolsOf makes tools of the definitions that a server listed.
func (e *Endpoint) toolsOf(l *link.Link, raw []gate.Doc) *listing.Tools {
	usable, notes := l.Dialect.Usable(raw)
	s := listing.NewTools(e.cfg.Server, e.cfg.Tools, usable)
	s.Listed, s.Notes = raw, append(notes, s.Notes...)
	return s
}

// A server may add tools while a client works with it, such as a set of tools that a call turns on.
// If the client has a connection of its own, the tools are listed only there. So the tools of a
// server are those that the shared connection lists, and then those that clients' own connections
// list in addition, for as long as these last.

// keepListed keeps the tools of an own connection, and has them listed.
func (s *audiences) keepListed(a *audience, raw []gate.Doc) {
	s.mu.Lock()
	a.listed = raw
	s.mu.Unlock()
	a.base.join()
}

// listedBeyond returns the tools of own connections whose names are none of these. Of two of one
// name that of the older connection counts.
func (s *audiences) listedBeyond(than []gate.Doc) (late []gate.Doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.all, func(a *audience) bool { return a.listed != nil }) {
		return nil
	}
	known := make(map[string]bool, len(than))
	for _, t := range than {
		known[t.Get("name").Text()] = true
	}
	for _, a := range s.all {
		for _, t := range a.listed {
			if name := t.Get("name").Text(); !known[name] && len(known) < link.MaxTools {
				known[name] = true
				late = append(late, t)
			}
		}
	}
	return late
}

// joined returns what the shared connection lists together with what own ones have beyond
// it.
func (e *Endpoint) joined(l *link.Link, tools *listing.Tools) *listing.Tools {
	late := e.audiences.listedBeyond(tools.Listed)
	if late == nil {
		return tools
	}
	all := e.toolsOf(l, slices.Concat(tools.Listed, late))
	all.Features = tools.Features
	all.LinkPages()
	return all
}

// join has the tools listed that there are now, after an own connection has told of its
// own, or has ended.
func (e *Endpoint) join() {
	e.joining.Lock()
	defer e.joining.Unlock()
	e.mu.Lock()
	l, shared := e.link, e.shared
	e.mu.Unlock()
	if l != nil && shared != nil { // else the listing is made anew, with these
		e.offer(l, shared, e.joined(l, shared), time.Now())
	}
}

func (e *Endpoint) declaration(l *link.Link, tools *listing.Tools, announced time.Time) status.Declaration {
	d := e.declarationOf(tools)
	d.TLSKey, d.Instructions, d.Announced = l.TLSKey, l.Instructions, announced
	return d
}

// declarationOf is the declaration of what is listed, without what only a connection says.
func (e *Endpoint) declarationOf(tools *listing.Tools) status.Declaration {
	d := status.Declaration{Server: e.cfg.Server, Config: &e.cfg.Endpoint, Tools: tools.Declared, Own: make([]bool, len(tools.Declared))}
	addFeatures(&d, tools.Features)
	return d
}

// Declared returns what the server has declared last, also definitions of tools that are
// quarantined.
func (e *Endpoint) Declared() status.Declaration {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := status.Declaration{Server: e.cfg.Server, Config: &e.cfg.Endpoint, Tools: e.tools.Listed}
	d.Own = make([]bool, len(d.Tools))
	addFeatures(&d, e.tools.Features)
	switch {
	case e.link != nil:
		d.Instructions, d.TLSKey = e.link.Instructions, e.link.TLSKey
	case e.recalled != nil:
		d.Instructions, d.TLSKey = e.recalled.Instructions, e.recalled.TLSKey
	}
	return d
}

// observes has a listing seen, and keeps it for [Endpoint.observeOwn].
func (e *Endpoint) observes(d status.Declaration) {
	e.declaring.Lock()
	defer e.declaring.Unlock()
	e.declared = d
	e.observe(d)
}

// observeOwn sees what is at the other end of a client's own connection: it is to be the
// server whose tools were listed, and if it is another program, or has another key, none
// of them is approved any more.
func (e *Endpoint) observeOwn(d status.Declaration) {
	e.declaring.Lock()
	known := e.declared
	if known.Config != nil {
		known.TLSKey, known.Announced = d.TLSKey, time.Time{}
		e.observe(known)
	}
	e.declaring.Unlock()
	e.changed()
}
