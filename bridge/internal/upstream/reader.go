package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// A reader reads what the server lists.
type reader struct {
	cfg        *config
	pagesBreak atomic.Bool               // reading pages of apps broke a connection
	examining  sync.Mutex                // guards what follows
	examined   map[string]skills.Verdict // of the skills that the server lists
	skillsAt   time.Time                 // when it listed them
}

// list reads all that the server lists.
func (rd *reader) list(ctx context.Context, l *link.Link) (*listing.Tools, error) {
	began, hints := time.Now(), make(map[gate.Feature]link.Hint)
	raw, kept, err := l.List(ctx, "tools/list", "tools")
	if err == nil {
		hints[gate.FeatureTool] = kept
	}
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok && rpc.Code == mcp.CodeMethodNotFound {
		err = nil // a server without tools
	}
	if err != nil {
		return nil, err
	}
	tools := rd.toolsOf(l, raw)
	if kept.Cut != "" {
		tools.Notes = append(tools.Notes, status.Note{Text: "tools/list: " + kept.Cut})
	}
	if tools.Features, err = rd.listFeatures(ctx, l, hints); err != nil {
		return nil, err
	}
	rd.readPages(ctx, l, tools)
	rd.readSkills(ctx, l, tools.Features, hints)
	l.Dialect.Keeps(began, hints)
	return tools, nil
}

// listFeatures reads the listings of what the server says that it has, and puts into hints
// for how long they can be kept. One that the
// server answers with an error is a note: its tools are of use without it.
func (rd *reader) listFeatures(ctx context.Context, l *link.Link, hints map[gate.Feature]link.Hint) (*listing.Features, error) {
	s := rd.cfg.features(l.Capabilities)
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
func (rd *reader) readPages(ctx context.Context, l *link.Link, tools *listing.Tools) {
	refs := tools.Pages(rd.cfg.Tools.Apps)
	if len(refs) == 0 {
		return
	}
	if rd.pagesBreak.Load() {
		tools.Notes = append(tools.Notes, status.Note{Text: "pages of apps are not read: reading them broke the connection"})
		return
	}
	ctx, cancel := halfOf(ctx)
	defer cancel()
	tools.AddPages(rd.cfg.Tools.Apps, refs, func(uri string) (gate.Doc, error) { return l.Read(ctx, uri) })
	if l.Peer.Why() != nil {
		rd.pagesBreak.Store(true)
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
func (rd *reader) readSkills(ctx context.Context, l *link.Link, s *listing.Features, hints map[gate.Feature]link.Hint) {
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
	rd.examining.Lock()
	defer rd.examining.Unlock()
	r := &listing.SkillReader{Known: rd.examined, Read: func(uri string) (gate.Doc, error) {
		result, err := l.Read(ctx, uri)
		if ctx.Err() != nil {
			err = listing.ErrNoTime
		}
		return result, err
	}}
	s.AddSkills(rd.cfg.Tools.Skills, entries, r)
	more := len(r.Next) > len(rd.examined)
	if rd.examined, rd.skillsAt = r.Next, time.Now(); r.Late > 0 && more {
		l.ListsChanged()
	}
}

// skillsKept is for how long the skills of a server are kept: it need not say that they have changed.
const skillsKept = 5 * time.Second

// stale reports whether skills were listed some time ago.
func (rd *reader) stale() bool {
	rd.examining.Lock()
	defer rd.examining.Unlock()
	return !rd.skillsAt.IsZero() && time.Since(rd.skillsAt) > skillsKept
}

// toolsOf makes tools of the definitions that a server listed.
func (rd *reader) toolsOf(l *link.Link, raw []gate.Doc) *listing.Tools {
	usable, notes := l.Dialect.Usable(raw)
	s := listing.NewTools(rd.cfg.Server, rd.cfg.Tools, usable)
	s.Listed, s.Notes = raw, append(notes, s.Notes...)
	return s
}
