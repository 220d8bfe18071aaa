package app

import (
	"context"
	"fmt"
	"reflect"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/watch"
)

// policyState tells one version of all files from another.
func (a *App) policyState() [2][32]byte {
	state := [2][32]byte{a.policy.Load().State()}
	if a.shadow != nil {
		state[1] = a.shadow.State()
	}
	return state
}

// watchPolicy loads the policy anew whenever its files have changed, until ctx
// ends. One that does not load leaves the old one in place.
func (a *App) watchPolicy(ctx context.Context) {
	last := a.policyState()
	watch.Each(ctx, func() {
		if now := a.policyState(); now != last {
			last = now
			_ = a.reloadPolicy(ctx) // it logs what is wrong
		}
	})
}

// reconfigure has calls checked, and decided on, as a configuration says, in one step. Bundles
// and the shadow policy stay those of the start.
func (a *App) reconfigure(ctx context.Context, next *config.Config, checks gateway.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	files := policyfiles.New(next)
	files.Policy.Bundles, files.Policy.Shadow = a.cfg.Policy.Bundles, a.cfg.Policy.Shadow
	if reflect.DeepEqual(files, a.policy.Load()) && sameSenders(a.config.Load().cfg, next) { // else clients may be offered other things
		return a.gateway.Reconfigure(ctx, checks, nil)
	}
	if _, err := files.Settle(a.bundles, a.log, func(p gateway.Policy) error { return a.gateway.Reconfigure(ctx, checks, &p) }); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	a.policy.Store(files)
	a.policyError.Store(&outcome{})
	a.log.Info("policy loaded", "revision", a.gateway.Policy().Revision())
	return nil
}

// reloadPolicy puts the policy that the files and bundles hold now in place. What is
// wrong with a bundle is no error: its last good one stays, and status says why.
func (a *App) reloadPolicy(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	for _, s := range a.bundles {
		if s.Config.Path != "" {
			a.readBundle(ctx, s)
		}
	}
	before := a.gateway.Policy().Revision()
	_, err := a.policy.Load().Settle(a.bundles, a.log, func(p gateway.Policy) error { return a.gateway.SetPolicy(ctx, p) })
	a.policyError.Store(&outcome{err})
	switch after := a.gateway.Policy().Revision(); {
	case err != nil:
		a.log.Error("policy refused; the last good one stays", "error", err)
	case after != before:
		a.log.Info("policy loaded", "revision", after)
	}
	a.reloadShadow(ctx)
	return err
}
