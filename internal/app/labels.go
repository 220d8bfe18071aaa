package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
)

// PolicyNames returns the names that rules can mean under a configuration.
func PolicyNames(cfg *config.Config, tools []*gate.Tool) policy.Names {
	n := policy.Names{Servers: slices.AppendSeq(ServerIDs(cfg), maps.Keys(agentRules(cfg))), Tools: tools}
	for _, p := range cfg.Principals {
		n.Roles = append(n.Roles, p.Roles...)
	}
	n.Roles = slices.AppendSeq(n.Roles, maps.Keys(mappedRoles(cfg)))
	return n
}

// ServerIDs returns the ids of all that has tools in a configuration.
func ServerIDs(cfg *config.Config) []string {
	ids := []string{product.LocalServer, product.JobsServer, product.CatalogServer, product.GatewayServer}
	for _, s := range cfg.Servers {
		ids = append(ids, s.ID)
	}
	for _, m := range cfg.Tools {
		ids = append(ids, m.Server)
	}
	return ids
}

// idleLabels says which labels are for tools that are gone, or for places that no result has. A server that is not
// ready may still come to have them, and it has those that are quarantined.
func (a *App) idleLabels() []string {
	var held []string                                                    // tools that are not offered
	absent := slices.Collect(maps.Keys(agentRules(a.config.Load().cfg))) // and servers, of which nothing can be told
	for _, s := range a.gateway.Fleet().Status() {
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
	for _, label := range policy.UnusedLabels(a.gateway.Operator().Policy(), a.gateway.Fleet().KnownFeatures(gate.FeatureTool)) {
		server, _, whole := strings.Cut(label, "__")
		if slices.ContainsFunc(held, match.Pattern(label).Matches) || slices.Contains(absent, server) || !whole && absent != nil {
			continue
		}
		said = append(said, "labels: "+label+" matches no tool; take it out of "+a.policy.Load().Policy.Labels)
	}
	for _, missing := range a.gateway.Operator().MissingPlaces() {
		said = append(said, "labels: "+missing+"; this part of the label has no effect; correct it in "+a.policy.Load().Policy.Labels)
	}
	return said
}
