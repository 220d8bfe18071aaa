package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/product"
)

// missing says what the operator can do about a tool that there is not for the client;
// "" if nothing is known of it. A client never learns that.
func (c callCommands) missing(ctx context.Context, cfg *config.Config, g shell.Gateway, r calls.Request) string {
	server, _, qualified := strings.Cut(r.Tool, "__")
	switch {
	case server == product.JobsServer && !cfg.Jobs.Offer:
		return "jobs are off: set jobs: {offer: true} in the configuration"
	case server == product.GatewayServer && !cfg.Approvals.Propose:
		return "proposals are off: set approvals: {propose: true} in the configuration"
	case server == product.CatalogServer && cfg.Catalog.Mode == "off":
		return "the catalog is off: set catalog: {mode: beside} in the configuration"
	}
	if product.RelaysCalls(server) { // another tool may be what is missing
		var asked struct{ Tool string }
		if json.Unmarshal([]byte(r.Args), &asked) != nil || asked.Tool == "" {
			return ""
		}
		r.Tool = asked.Tool
		server, _, qualified = strings.Cut(r.Tool, "__")
	}
	tools, err := inventory.Tools.Ask(ctx, g, inventory.Request{As: r.As, All: true})
	if err != nil {
		return ""
	}
	for _, t := range tools {
		if !t.Offered && (t.Name == r.Tool || strings.HasSuffix(t.Name, "__"+r.Tool)) {
			return fmt.Sprintf("%s is hidden: %s", t.Name, t.Why)
		}
	}
	if !qualified {
		return "no server has it; see `wasmgate tools --all" + c.ConfigFlag() + "`"
	}
	if !shell.IsServer(cfg, server) {
		return naming.NoServer(cfg, server).Error()
	}
	if s, err := overview.Show.Ask(ctx, g, operation.None{}); err == nil {
		for _, one := range s.Servers {
			if one.Server == server && one.Error != "" {
				return fmt.Sprintf("server %s is %s: %s", server, one.Phase, one.Error)
			}
		}
	}
	return "server " + server + " does not have it; see `wasmgate tools --all" + c.ConfigFlag() + "`"
}
