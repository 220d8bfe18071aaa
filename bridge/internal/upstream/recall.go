package upstream

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// A Memory keeps what servers listed last, from one run of the gateway to the next.
type Memory interface {
	// Recall returns what a server listed last with a configuration. It is false if that is
	// not known, or must not be offered before the server itself lists it.
	Recall(server, config string) (listings.Listing, bool)
	// Keep keeps what a server lists now.
	Keep(server string, l listings.Listing)
}

// Remember has the endpoint keep what the server lists. If recalls is true, it offers what was
// kept until the server has started. It is called before the endpoint is connected.
func (e *Endpoint) Remember(m Memory, recalls bool) {
	if e.cfg.Broken == "" { // else it never starts
		e.memory, e.recalls = m, recalls
	}
}

// recall offers what the server listed last, unless it lists by now.
func (e *Endpoint) recall() {
	last, known := e.memory.Recall(e.cfg.Server, e.cfg.Tools.Config)
	if !known {
		return
	}
	tools := listing.NewTools(e.cfg.Server, e.cfg.Tools, last.Tools)
	tools.Features = e.features(last.Capabilities)
	for one, defs := range map[gate.Feature][]gate.Doc{gate.FeaturePrompt: last.Prompts, gate.FeatureResource: last.Resources, gate.FeatureTemplate: last.Templates} {
		tools.Features.Add(one, defs)
	}
	e.declaring.Lock()
	defer e.declaring.Unlock()
	if e.declared.Config != nil {
		return
	}
	d := e.declarationOf(tools)
	d.Instructions, d.TLSKey = last.Instructions, last.TLSKey
	e.observe(d)
	e.mu.Lock()
	if e.phase == status.Connecting || e.phase == status.Faulted {
		e.tools, e.recalled = tools, &last
	}
	e.mu.Unlock()
	e.changed()
}

// keep keeps what the server lists over its shared connection.
func (e *Endpoint) keep(l *link.Link, tools *listing.Tools) {
	if e.memory == nil {
		return
	}
	kept := listings.Listing{Config: e.cfg.Tools.Config, TLSKey: l.TLSKey, Instructions: l.Instructions, Capabilities: l.Capabilities, Tools: tools.Declared}
	if more := tools.Features; more != nil {
		kept.Prompts, kept.Resources, kept.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureResource], more.Declared[gate.FeatureTemplate]
	}
	e.memory.Keep(e.cfg.Server, kept)
}

// features are those that a server with such capabilities has, without its lists.
func (e *Endpoint) features(capabilities gate.Doc) *listing.Features {
	has := func(name string) bool { return capabilities.Get(name).Kind() == doc.Object }
	return &listing.Features{
		Server: e.cfg.Server, Options: e.cfg.Tools,
		Offers:    map[gate.Feature]bool{gate.FeaturePrompt: has("prompts"), gate.FeatureResource: has("resources"), gate.FeatureTemplate: has("resources")},
		Completes: has("completions"), Logs: has("logging"), Updates: subscribes(capabilities),
		HasSkills: !e.cfg.Tools.Skills.Off && skills.Offers(capabilities),
		Apps:      !e.cfg.Tools.Apps.Off && capabilities.Get("extensions").Get(apps.Extension).Kind() == doc.Object,
	}
}

// subscribes reports whether clients can subscribe to the resources of a server.
func subscribes(capabilities gate.Doc) bool { return capabilities.At("/resources/subscribe").True() }

// Unlisted returns the end of the first attempt to connect while it is under way and nothing
// is known of what the server lists, and since when listings wait for it; nil at other times.
// waits says that one does.
func (e *Endpoint) Unlisted(waits bool) (over <-chan struct{}, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recalled != nil || !e.starts() {
		return nil, time.Time{}
	}
	if waits && e.attempt.awaited.IsZero() {
		e.attempt.awaited = time.Now()
	}
	return e.attempt.done, e.attempt.awaited
}

// Started waits, within ctx, for the first attempt to connect if it is under way.
func (e *Endpoint) Started(ctx context.Context) {
	e.mu.RLock()
	starts, a := e.starts(), e.attempt
	e.mu.RUnlock()
	if !starts {
		return
	}
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}
