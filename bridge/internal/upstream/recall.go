package upstream

import (
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/listings"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/link"
	"github.com/wasmgate/wasmgate/gate"
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
func (ls *listed) Remember(m Memory, recalls bool) {
	if ls.cfg.Broken == "" { // else it never starts
		ls.memory, ls.recalls = m, recalls
	}
}

// recall offers what the server listed last, unless it lists by now.
func (ls *listed) recall() {
	last, known := ls.memory.Recall(ls.cfg.Server, ls.cfg.Tools.Config)
	if !known {
		return
	}
	tools := listing.NewTools(ls.cfg.Server, ls.cfg.Tools, last.Tools)
	tools.Features = ls.cfg.features(last.Capabilities)
	for one, defs := range map[gate.Feature][]gate.Doc{gate.FeaturePrompt: last.Prompts, gate.FeatureResource: last.Resources, gate.FeatureTemplate: last.Templates} {
		tools.Features.Add(one, defs)
	}
	ls.declaring.Lock()
	defer ls.declaring.Unlock()
	if ls.declared.Config != nil {
		return
	}
	d := ls.cfg.declarationOf(tools)
	d.Instructions, d.TLSKey = last.Instructions, last.TLSKey
	ls.observe(d)
	ls.mu.Lock()
	if ls.phase == status.Connecting || ls.phase == status.Faulted {
		ls.tools, ls.recalled = tools, &last
	}
	ls.mu.Unlock()
	ls.changed()
}

// keep keeps what the server lists over its shared connection.
func (ls *listed) keep(l *link.Link, tools *listing.Tools) {
	if ls.memory == nil {
		return
	}
	kept := listings.Listing{Config: ls.cfg.Tools.Config, TLSKey: l.TLSKey, Instructions: l.Instructions, Capabilities: l.Capabilities, Tools: tools.Declared}
	if more := tools.Features; more != nil {
		kept.Prompts, kept.Resources, kept.Templates = more.Declared[gate.FeaturePrompt], more.Declared[gate.FeatureResource], more.Declared[gate.FeatureTemplate]
	}
	ls.memory.Keep(ls.cfg.Server, kept)
}
