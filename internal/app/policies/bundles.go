package policies

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/policy"
)

// First returns the policy to begin with, with the grants that gateways share.
func (p *Policies) First(ctx context.Context) (gateway.Policy, error) {
	if _, err := p.readGrants(ctx); err != nil {
		return gateway.Policy{}, err
	}
	bundles := *p.bundles.Load()
	if err := bundles.First(ctx, p.Log); err != nil {
		return gateway.Policy{}, err
	}
	if len(bundles) == 0 {
		return p.files.Load().Load()
	}
	return p.files.Load().Settle(bundles, p.Log, func(first gateway.Policy) error {
		_, err := policy.Load(ctx, first.Files, first.Options)
		return err
	})
}

// NoteBundles records what was wrong with the bundles before there was a log.
func (p *Policies) NoteBundles() error {
	var errs []error
	for _, s := range *p.bundles.Load() {
		if e := s.Status().Error; e != "" {
			errs = append(errs, p.Gateway.PolicyRefused(errors.New(e)))
		}
	}
	return errors.Join(errs...)
}

// readBundle asks a source again, and tells of an error that it did not have
// before.
func (p *Policies) readBundle(ctx context.Context, s *policyfiles.Bundle) (changed bool) {
	before := s.Status().Error
	changed, err := s.Read(ctx)
	after := s.Status().Error
	switch {
	case ctx.Err() != nil:
	case err != nil && after != before:
		p.Log.Error("bundle not read; the last good one is still in use", "bundle", s.Config.Name, "error", err)
		if err := p.Gateway.PolicyRefused(err); err != nil {
			p.Log.Error("bundle error not recorded", "error", err)
		}
	case after == "" && before != "":
		p.Log.Info("bundle read again", "bundle", s.Config.Name)
	}
	return changed
}

// PollBundles asks for the bundles by whose URLs it is time to ask, and has new ones loaded.
func (p *Policies) PollBundles(ctx context.Context) {
	changed := false
	for _, s := range *p.bundles.Load() {
		changed = s.Due() && p.readBundle(ctx, s) || changed
	}
	if changed {
		_ = p.Reload(ctx) // it logs what is wrong
	}
}
