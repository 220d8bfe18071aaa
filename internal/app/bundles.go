package app

import (
	"context"
	"errors"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/policy"
)

// firstPolicy returns the policy to begin with.
func (a *App) firstPolicy(ctx context.Context) (gateway.Policy, error) {
	bundles := *a.bundles.Load()
	if err := bundles.First(ctx, a.log); err != nil {
		return gateway.Policy{}, err
	}
	if len(bundles) == 0 {
		return a.policy.Load().Load()
	}
	return a.policy.Load().Settle(bundles, a.log, func(p gateway.Policy) error {
		_, err := policy.Load(ctx, p.Files, p.Options)
		return err
	})
}

// noteBundles records what was wrong with the bundles before there was a log.
func (a *App) noteBundles() error {
	var errs []error
	for _, s := range *a.bundles.Load() {
		if e := s.Status().Error; e != "" {
			errs = append(errs, a.gateway.Operator().PolicyRefused(errors.New(e)))
		}
	}
	return errors.Join(errs...)
}

// readBundle asks a source again, and tells of an error that it did not have
// before.
func (a *App) readBundle(ctx context.Context, s *policyfiles.Bundle) (changed bool) {
	before := s.Status().Error
	changed, err := s.Read(ctx)
	after := s.Status().Error
	switch {
	case ctx.Err() != nil:
	case err != nil && after != before:
		a.log.Error("bundle not read; the last good one is still in use", "bundle", s.Config.Name, "error", err)
		if err := a.gateway.Operator().PolicyRefused(err); err != nil {
			a.log.Error("bundle error not recorded", "error", err)
		}
	case after == "" && before != "":
		a.log.Info("bundle read again", "bundle", s.Config.Name)
	}
	return changed
}

// pollBundles asks for the bundles by whose URLs it is time to ask, and has new ones loaded.
func (a *App) pollBundles(ctx context.Context) {
	changed := false
	for _, s := range *a.bundles.Load() {
		changed = s.Due() && a.readBundle(ctx, s) || changed
	}
	if changed {
		_ = a.reloadPolicy(ctx) // it logs what is wrong
	}
}
