package app

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
)

// policyState tells one version of all files from another.
func (a *App) policyState() [2][32]byte {
	state := [2][32]byte{a.policy.Load().State()}
	if shadow := a.shadow.Load(); shadow != nil {
		state[1] = shadow.State()
	}
	return state
}

// watchPolicy returns what loads the policy anew if its files have changed. One that does not
// load leaves the old one in place.
func (a *App) watchPolicy(ctx context.Context) func() {
	last := a.policyState()
	return func() {
		if now := a.policyState(); now != last {
			last = now
			_ = a.reloadPolicy(ctx) // it logs what is wrong
		}
	}
}

// reconfigure has calls checked, and decided on, as a configuration says, in one step. Its
// bundles are asked for before; the shadow policy, which enforces nothing, follows.
func (a *App) reconfigure(ctx context.Context, next *config.Config, checks gateway.Config) error {
	bundles := a.bundles.Load().Renewed(next)
	if err := bundles.First(ctx, a.log); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	shared := a.policy.Load().Policy.Shared
	files, shadow := policyfiles.New(next), policyfiles.Shadow(next)
	if files.Policy.Shared = shared; shadow != nil {
		shadow.Policy.Shared = shared
	}
	if err := a.decideBy(ctx, files, bundles, checks, sameSenders(a.Config(), next)); err != nil {
		return err
	}
	if !reflect.DeepEqual(shadow, a.shadow.Load()) {
		a.shadow.Store(shadow)
		a.reloadShadow(ctx)
	}
	return nil
}

// decideBy is reconfigure for the policy of files and bundles. Same says that those who call
// are the same: then clients are offered other things only if the policy is another.
func (a *App) decideBy(ctx context.Context, files *policyfiles.Files, bundles policyfiles.Bundles, checks gateway.Config, same bool) error {
	if same && reflect.DeepEqual(files, a.policy.Load()) {
		return a.gateway.Reconfigure(ctx, checks, nil)
	}
	if _, err := files.Settle(bundles, a.log, func(p gateway.Policy) error { return a.gateway.Reconfigure(ctx, checks, &p) }); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	a.policy.Store(files)
	a.bundles.Store(&bundles)
	a.policyError.Store(&outcome{})
	a.log.Info("policy loaded", "revision", a.gateway.Operator().Policy().Revision())
	return nil
}

// reloadPolicy puts the policy that the files and bundles hold now in place. What is
// wrong with a bundle is no error: its last good one stays, and status says why.
func (a *App) reloadPolicy(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if _, err := readGrants(ctx, a); err != nil {
		return err
	}
	return loadPolicy(ctx, a)
}

// readGrants reads the grants that gateways share, and reports whether they have changed.
func readGrants(ctx context.Context, a *App) (changed bool, err error) {
	if a.shared.Store == nil {
		return false, nil
	}
	all, _, err := grantsOf(a).Load(ctx, 0)
	if err != nil || bytes.Equal(all, a.policy.Load().Policy.Shared) {
		return false, err
	}
	for _, of := range []*atomic.Pointer[policyfiles.Files]{&a.policy, &a.shadow} {
		if files := of.Load(); files != nil {
			next := *files
			next.Policy.Shared = all
			of.Store(&next)
		}
	}
	return true, nil
}

// grantsOf returns the grants that commands and people change: the file, or those that gateways share.
func grantsOf(a *App) state.Document {
	if a.shared.Store != nil {
		return a.shared.document(policydata.GrantsName)
	}
	return policydata.GrantsFile(a.policy.Load().Policy.Grants)
}

// followGrants puts what other gateways have granted and revoked in place. While that cannot be, no call
// is admitted.
func followGrants(ctx context.Context, a *App) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	changed, err := readGrants(ctx, a)
	if refused := a.policyError.Load(); err != nil || !changed && (refused == nil || refused.err == nil) {
		return err
	}
	return loadPolicy(context.WithoutCancel(ctx), a)
}

// loadPolicy is reloadPolicy for callers that hold reloading, with the shared grants as they were read.
func loadPolicy(ctx context.Context, a *App) error {
	bundles := *a.bundles.Load()
	for _, s := range bundles {
		if s.Config.Path != "" {
			a.readBundle(ctx, s)
		}
	}
	before := a.gateway.Operator().Policy().Revision()
	_, err := a.policy.Load().Settle(bundles, a.log, func(p gateway.Policy) error { return a.gateway.SetPolicy(ctx, p) })
	a.policyError.Store(&outcome{err})
	switch after := a.gateway.Operator().Policy().Revision(); {
	case err != nil:
		a.log.Error("policy refused; the last good one is still in use", "error", err)
	case after != before:
		a.log.Info("policy loaded", "revision", after)
	}
	a.reloadShadow(ctx)
	return err
}
