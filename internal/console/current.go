package console

import (
	"context"
	"log/slog"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/policies"
	"github.com/wasmgate/wasmgate/internal/app/settings"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/replay"
)

// A currentPolicy is the policy as its files are now.
type currentPolicy struct {
	settings  *settings.Settings
	policies  *policies.Policies
	inventory *inventory.Inventory
	path      string // of the audit log
}

// read reads it.
func (p *currentPolicy) read(ctx context.Context) (gateway.Policy, error) {
	cfg := *p.settings.Config()
	cfg.Policy = p.policies.Files()
	read, _, err := policyfiles.Read(ctx, &cfg, slog.New(slog.DiscardHandler)) // the gateway logs what is wrong with bundles
	return read, err
}

// explainer explains why calls are decided as they are.
func (p *currentPolicy) explainer(ctx context.Context) (replay.Explainer, error) {
	read, err := p.read(ctx)
	return replay.Explainer{
		Log: p.path, Policy: read, Groups: len(p.settings.Config().AllGroups()) > 0,
		Tools: func(ctx context.Context) ([]inventory.Tool, error) { return p.inventory.Tools(ctx, "", true) },
	}, err
}
