package policies

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
)

// RelayWarnings warns of tools that carry out others, which a configuration offers and its
// policy lets no one call whom the configuration names.
func RelayWarnings(ctx context.Context, cfg *config.Config, e *policy.Engine) []policy.Problem {
	var problems []policy.Problem
	for _, offered := range []struct {
		key  string
		tool *gate.Tool // one of the server's
		on   bool
	}{
		{"catalog.mode: " + cfg.Catalog.Mode, aCatalogTool, cfg.Catalog.Mode != "off"},
		{"jobs.offer: true", aJobTool, cfg.Jobs.Offer},
		{"approvals.propose: true", aProposeTool, cfg.Approvals.Propose},
	} {
		if offered.on && !anybodyMayCall(ctx, cfg, e, offered.tool) {
			problems = append(problems, policy.Problem{Warning: true, Message: fmt.Sprintf(
				`%s offers %s__*, and the policy lets no principal call them; allow them by the pack grants, or by the rule [allow contains "it reaches nothing by itself" if input.tool.relay], or take the key out`,
				offered.key, offered.tool.Name.Server)})
		}
	}
	return problems
}

// The policy keeps what it has found of a tool by its address.
var (
	aCatalogTool = &gate.Tool{Name: gate.ToolName{Server: product.CatalogServer, Tool: "search"}, Local: "search", Relay: true}
	aJobTool     = &gate.Tool{Name: gate.ToolName{Server: product.JobsServer, Tool: "start"}, Local: "start", Relay: true}
	aProposeTool = &gate.Tool{Name: gate.ToolName{Server: product.GatewayServer, Tool: "propose"}, Local: "propose", Relay: true}
)

// anybodyMayCall reports whether the person at the machine, or a principal of the
// configuration, could call a tool.
func anybodyMayCall(ctx context.Context, cfg *config.Config, e *policy.Engine, t *gate.Tool) bool {
	ids := []string{""}
	for _, p := range cfg.Principals {
		ids = append(ids, p.ID)
	}
	for _, id := range ids {
		who, err := naming.Principal(cfg, id)
		if err != nil {
			return true // the configuration is wrong elsewhere, and says so
		}
		if visible, err := e.Visible(ctx, who, []*gate.Tool{t}); err != nil || visible[0] {
			return true
		}
	}
	return false
}
