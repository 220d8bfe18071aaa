// Package policies puts the policy in place that files, bundles and grants hold, again when they change, and a
// shadow policy that is compared with it.
package policies

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Reload reads the policy now rather than within a second.
var Reload = operation.New[operation.None, operation.None]("reload")

// Gateway is the one whose calls are decided on.
type Gateway interface {
	Fleet() gateway.Fleet
	Policy() *policy.Engine
	SetPolicy(context.Context, gateway.Policy) error
	Reconfigure(ctx context.Context, next gateway.Config, p *gateway.Policy) error
	// PolicyRefused records why a policy is not in use.
	PolicyRefused(err error) error
	Shadow() *study.ShadowStatus
	SetShadow(context.Context, *gateway.Policy) error
	Sessions() gateway.Sessions
}

// Policies are those of one gateway: the one that decides, the shadow policy that is compared with it, and
// the bundles of both. Its fields are set before the first call.
type Policies struct {
	Gateway Gateway
	Config  func() *config.Config // in use
	Shared  state.Document        // the grants that gateways share; nil if they are in a file
	Log     *slog.Logger

	files        atomic.Pointer[policyfiles.Files] // in use
	shadow       atomic.Pointer[policyfiles.Files] // nil without a shadow policy
	bundles      atomic.Pointer[policyfiles.Bundles]
	failed       atomic.Pointer[error] // of the last reading
	shadowFailed atomic.Pointer[error]
	reloading    sync.Mutex // held over reading and setting a policy, so that the newest is set last
}

// New returns those of a configuration. Nothing is read yet.
func New(cfg *config.Config) *Policies {
	p := new(Policies)
	p.files.Store(policyfiles.New(cfg))
	p.shadow.Store(policyfiles.Shadow(cfg))
	p.bundles.Store(new(policyfiles.Bundles(nil).Renewed(cfg)))
	return p
}

// Operations adds those of policies to a table.
func (p *Policies) Operations(t operation.Table) {
	operation.AddPlain(t, Reload, func(ctx context.Context) (operation.None, error) { return operation.None{}, p.Reload(ctx) })
}

// Files says where the policy in use comes from.
func (p *Policies) Files() config.Policy { return p.files.Load().Policy }

// Problem says why an earlier policy is in use, and not the one of the files; nil if it is.
func (p *Policies) Problem() error { return outcome(&p.failed) }

// outcome is the last one, or nil.
func outcome(of *atomic.Pointer[error]) error {
	if err := of.Load(); err != nil {
		return *err
	}
	return nil
}

// Bundles tell how the bundles of the policy are.
func (p *Policies) Bundles() (all []policyfiles.BundleStatus) {
	for _, one := range *p.bundles.Load() {
		all = append(all, one.Status())
	}
	return all
}

// Granted returns the policy that the files hold now, with further grants. Nothing is changed.
func (p *Policies) Granted(ctx context.Context, grants []policy.Grant) (*policy.Engine, error) {
	now, err := p.files.Load().Load()
	if err != nil {
		return nil, err
	}
	now.Options.Bundles = p.bundles.Load().InUse()
	now.Options.Grants = append(now.Options.Grants, grants...)
	return policy.Load(ctx, now.Files, now.Options)
}

// state tells one version of all files from another.
func (p *Policies) state() [2][32]byte {
	all := [2][32]byte{p.files.Load().State()}
	if shadow := p.shadow.Load(); shadow != nil {
		all[1] = shadow.State()
	}
	return all
}

// Watch returns what loads the policy anew if its files have changed. One that does not
// load leaves the old one in place.
func (p *Policies) Watch(ctx context.Context) func() {
	last := p.state()
	return func() {
		if now := p.state(); now != last {
			last = now
			_ = p.Reload(ctx) // it logs what is wrong
		}
	}
}

// Reconfigure has calls checked, and decided on, as a configuration says, in one step. Its
// bundles are asked for before; the shadow policy, which enforces nothing, follows. Same says that those who
// call are the same: then clients are offered other things only if the policy is another.
func (p *Policies) Reconfigure(ctx context.Context, next *config.Config, checks gateway.Config, same bool) error {
	bundles := p.bundles.Load().Renewed(next)
	if err := bundles.First(ctx, p.Log); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	p.reloading.Lock()
	defer p.reloading.Unlock()
	shared := p.files.Load().Policy.Shared
	files, shadow := policyfiles.New(next), policyfiles.Shadow(next)
	if files.Policy.Shared = shared; shadow != nil {
		shadow.Policy.Shared = shared
	}
	if err := p.decideBy(ctx, files, bundles, checks, same); err != nil {
		return err
	}
	if !reflect.DeepEqual(shadow, p.shadow.Load()) {
		p.shadow.Store(shadow)
		p.LoadShadow(ctx)
	}
	return nil
}

// decideBy is Reconfigure for the policy of files and bundles.
func (p *Policies) decideBy(ctx context.Context, files *policyfiles.Files, bundles policyfiles.Bundles, checks gateway.Config, same bool) error {
	if same && reflect.DeepEqual(files, p.files.Load()) {
		return p.Gateway.Reconfigure(ctx, checks, nil)
	}
	if _, err := files.Settle(bundles, p.Log, func(next gateway.Policy) error { return p.Gateway.Reconfigure(ctx, checks, &next) }); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	p.files.Store(files)
	p.bundles.Store(&bundles)
	p.failed.Store(new(error))
	p.Log.Info("policy loaded", "revision", p.Gateway.Policy().Revision())
	return nil
}

// Reload puts the policy that the files and bundles hold now in place. What is
// wrong with a bundle is no error: its last good one stays, and status says why.
func (p *Policies) Reload(ctx context.Context) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	if _, err := p.readGrants(ctx); err != nil {
		return err
	}
	return p.load(ctx)
}

// readGrants reads the grants that gateways share, and reports whether they have changed.
func (p *Policies) readGrants(ctx context.Context) (changed bool, err error) {
	if p.Shared == nil {
		return false, nil
	}
	all, _, err := p.Shared.Load(ctx, 0)
	if err != nil || bytes.Equal(all, p.files.Load().Policy.Shared) {
		return false, err
	}
	for _, of := range []*atomic.Pointer[policyfiles.Files]{&p.files, &p.shadow} {
		if files := of.Load(); files != nil {
			next := *files
			next.Policy.Shared = all
			of.Store(&next)
		}
	}
	return true, nil
}

// Grants are those that commands and people change: the file, or those that gateways share.
func (p *Policies) Grants() state.Document {
	if p.Shared != nil {
		return p.Shared
	}
	return policydata.GrantsFile(p.Files().Grants)
}

// SetGrants puts grants in the place of those that were seen. If the policy is refused with
// they are kept nevertheless, and the policy before holds: see [policydata.SetGrants].
func (p *Policies) SetGrants(ctx context.Context, seen string, next []policydata.Grant) error {
	if err := policydata.SetGrants(ctx, p.Grants(), seen, next); err != nil {
		return err
	}
	if err := p.Reload(ctx); err != nil {
		return fmt.Errorf("the grants are written, but the policy does not load with them: %w", err)
	}
	return nil
}

// Follow puts what other gateways have granted and revoked in place. While that cannot be, no call
// is admitted.
func (p *Policies) Follow(ctx context.Context) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	changed, err := p.readGrants(ctx)
	if err != nil || !changed && p.Problem() == nil {
		return err
	}
	return p.load(context.WithoutCancel(ctx))
}

// load is Reload for callers that hold reloading, with the shared grants as they were read.
func (p *Policies) load(ctx context.Context) error {
	bundles := *p.bundles.Load()
	for _, s := range bundles {
		if s.Config.Path != "" {
			p.readBundle(ctx, s)
		}
	}
	before := p.Gateway.Policy().Revision()
	_, err := p.files.Load().Settle(bundles, p.Log, func(next gateway.Policy) error { return p.Gateway.SetPolicy(ctx, next) })
	p.failed.Store(&err)
	switch after := p.Gateway.Policy().Revision(); {
	case err != nil:
		p.Log.Error("policy refused; the last good one is still in use", "error", err)
	case after != before:
		p.Log.Info("policy loaded", "revision", after)
	}
	p.LoadShadow(ctx)
	return err
}
