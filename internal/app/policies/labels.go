package policies

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/policy"
)

// IdleLabels says which labels are for tools that are gone, or for places that no result has. A server that is not
// ready may still come to have them, and it has those that are quarantined.
func (p *Policies) IdleLabels() []string {
	var held []string                                                       // tools that are not offered
	absent := slices.Collect(maps.Keys(translation.AgentRules(p.Config()))) // and servers, about which nothing is known
	for _, s := range p.Gateway.Fleet().Status() {
		if s.Phase != status.Ready {
			absent = append(absent, s.Server)
		}
		for _, n := range s.Notes {
			if n.Quarantined {
				held = append(held, s.Server+"__"+n.Tool)
			}
		}
		for _, name := range s.Quarantined {
			held = append(held, s.Server+"__"+name)
		}
	}
	var said []string
	for _, label := range policy.UnusedLabels(p.Gateway.Policy(), p.Gateway.Fleet().KnownFeatures(gate.FeatureTool)) {
		server, _, whole := strings.Cut(label, "__")
		if slices.ContainsFunc(held, match.Pattern(label).Matches) || slices.Contains(absent, server) || !whole && absent != nil {
			continue
		}
		said = append(said, "labels: "+label+" matches no tool; take it out of "+p.Files().Labels)
	}
	for _, missing := range p.Gateway.Sessions().MissingPlaces() {
		said = append(said, "labels: "+missing+"; this part of the label has no effect; correct it in "+p.Files().Labels)
	}
	return said
}
