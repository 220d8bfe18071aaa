package naming

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
)

// ErrNoServer says that a configuration has no such server.
var ErrNoServer = errors.New("no such server in the configuration")

// NoServer returns an [ErrNoServer] that names the servers that there are.
func NoServer(cfg *config.Config, id string) error {
	there := "there is none"
	for i, s := range cfg.Servers {
		if i == 0 {
			there = "there: " + s.ID
			continue
		}
		there += ", " + s.ID
	}
	return fmt.Errorf("server %q: %w (%s)", id, ErrNoServer, there)
}

// Servers returns the ids of all that has tools in a configuration.
func Servers(cfg *config.Config) []string {
	ids := []string{product.LocalServer, product.JobsServer, product.CatalogServer, product.GatewayServer}
	for _, s := range cfg.Servers {
		ids = append(ids, s.ID)
	}
	for _, m := range cfg.Tools {
		ids = append(ids, m.Server)
	}
	return ids
}

// Policy returns the names that rules can mean under a configuration.
func Policy(cfg *config.Config, tools []*gate.Tool) policy.Names {
	n := policy.Names{Servers: Servers(cfg), Tools: tools}
	for _, a := range cfg.Agents {
		n.Servers = append(n.Servers, a.ID)
	}
	for _, p := range cfg.Principals {
		n.Roles = append(n.Roles, p.Roles...)
	}
	n.Roles = slices.AppendSeq(n.Roles, maps.Keys(MappedRoles(cfg)))
	return n
}
