package app

import (
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/homes"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// byAnother says in the audit log who has paused or resumed a server through another gateway.
const byAnother = "another gateway of the database"

// openShared opens the database of a configuration that has one.
func (a *App) openShared(ctx context.Context) (err error) {
	if !a.cfg.Store.On() || a.cfg.Replay.File != "" {
		return nil
	}
	node, err := state.Node(a.cfg.State, a.cfg.Store.Node)
	if err != nil {
		return err
	}
	h, err := homes.Open(ctx, a.cfg, node, func() time.Duration { return a.Settings.Config().Sessions.TTL }, a.log)
	if err != nil {
		return err
	}
	a.shared.Store, a.shared.homes, a.shared.peers = h.Store, h, h.Peers
	a.shared.catchUp = a.catchUp
	a.records = records{a.shared.document(keysName), a.shared.document(revokedName), a.shared.document(pausedName)}
	return nil
}

// The names of documents that gateways share; pins have names of their own.
const (
	keysName    = "keys"
	revokedName = "revoked"
	pausedName  = "paused"
	glassName   = "break-glass"
)

// follow brings the gateway up to a generation of the database. What other gateways have revoked or
// paused holds here when it returns.
func (a *App) follow(ctx context.Context, to uint64) error {
	s := &a.shared
	if s.followed.Load() == to {
		return nil
	}
	s.following.Lock()
	defer s.following.Unlock()
	if s.followed.Load() == to {
		return nil
	}
	changed, err := s.Changed(ctx, s.followed.Load())
	if err != nil {
		return err
	}
	errs := []error{a.gateway.Operator().Sessions().Refresh(ctx, true), a.Pins.Follow(byAnother, changed)}
	a.Logins.Kept.Follow(changed)
	for _, name := range changed {
		switch name {
		case keysName:
			err = a.Callers.FollowKeys(ctx)
		case revokedName:
			err = a.Callers.FollowRevocations(ctx)
		case pausedName:
			err = a.Pauses.Follow(ctx, byAnother)
		case glassName:
			err = a.Approvals.Follow(ctx)
		case policydata.GrantsName:
			err = a.Policies.Follow(ctx)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.followed.Store(to)
	return nil
}

// catchUp follows other gateways without a call, so that streams end, and keys that were made
// elsewhere are taken. What goes wrong is said by the next call, and by status.
func (a *App) catchUp(ctx context.Context) {
	to, err := a.shared.Generation(ctx)
	if err == nil {
		err = errors.Join(a.follow(ctx, to), a.Pins.Follow(byAnother, nil))
	}
	if ctx.Err() == nil {
		a.shared.failed.Store(&err)
	}
}

// closeShared gives the name of the gateway back.
func (a *App) closeShared(ctx context.Context) error {
	if a.shared.Store == nil {
		return nil
	}
	return a.shared.Close(ctx)
}
