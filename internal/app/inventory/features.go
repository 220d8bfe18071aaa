package inventory

import (
	"context"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/find"
	"github.com/wasmgate/wasmgate/policy/study"
)

// features are what servers offer next to tools, in the order in which it is listed.
var features = []gate.Feature{gate.FeaturePrompt, gate.FeatureResource, gate.FeatureTemplate, gate.FeatureMethod}

// Features returns the prompts, resources, templates of resources and methods that the
// principal as is offered, and if all is true the rest too. It waits as [Inventory.Tools] does.
func (i *Inventory) Features(ctx context.Context, as string, all bool) ([]Tool, error) {
	ctx = i.Gateway.Fleet().Settle(ctx)
	who, err := naming.Principal(i.Config(), as)
	if err != nil {
		return nil, err
	}
	list := []Tool{}
	for _, f := range features {
		shown, err := i.Gateway.Features(ctx, who, f)
		if err != nil {
			return nil, err
		}
		offered := make(map[string]bool, len(shown))
		for _, t := range shown {
			offered[nameOf(t)] = true
		}
		for _, t := range i.Gateway.Fleet().Features(ctx, f) {
			one := Tool{
				Kind: string(f), Name: nameOf(t), Local: t.Local, Server: t.Name.Server, Title: find.Title(t),
				Description: t.Definition.Get("description").Text(), Groups: t.Groups, Offered: offered[nameOf(t)], Digest: t.Digest, Definition: t.Definition.Raw(),
			}
			if !one.Offered && !all {
				continue
			}
			if !one.Offered {
				one.Why = i.whyNot(t, who)
			}
			if all {
				if one.Verdict, one.Condition, err = study.VerdictOf(ctx, i.Gateway.Policy(), who, t); err != nil {
					return nil, err
				}
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// nameOf returns the name by which a grant names what a server offers: a URI, or a name
// with the server's.
func nameOf(t *gate.Tool) string { return gate.Query{Tool: t}.Subject() }
