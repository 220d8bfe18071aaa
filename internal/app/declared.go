package app

import (
	"context"
	"path/filepath"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// Declared returns the tools of a configuration as far as they are known without
// starting a server: all that the running gateway has, and else those of servers that were
// seen before, as they were declared then.
func Declared(ctx context.Context, cfg *config.Config) ([]*gate.Tool, error) {
	r, err := Dial(ctx, cfg)
	if err != nil {
		return keptTools(cfg)
	}
	defer r.Close()
	known, err := inventory.Tools.Ask(ctx, r, inventory.Request{All: true})
	if err != nil {
		return nil, err
	}
	var tools []*gate.Tool
	for _, t := range known {
		described, err := t.Described()
		if err != nil {
			return nil, err
		}
		if described != nil {
			tools = append(tools, described)
		}
	}
	return tools, nil
}

// keptTools returns the tools that were kept when their server was first seen.
func keptTools(cfg *config.Config) ([]*gate.Tool, error) {
	var tools []*gate.Tool
	for _, s := range translation.Enabled(cfg.Servers) {
		items, err := lock.Kept(filepath.Join(translation.Kept(cfg), "pins"), s.ID)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			name, err := gate.NewToolName(s.ID, i.Name)
			if i.Kind != lock.Tool || err != nil {
				continue
			}
			tools = append(tools, &gate.Tool{Name: name, Local: i.Name, Offered: name.String(), Definition: i.Doc})
		}
	}
	return tools, nil
}
