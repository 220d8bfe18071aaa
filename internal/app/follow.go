package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/homes"
	"github.com/wasmgate/wasmgate/internal/app/paused"
	"github.com/wasmgate/wasmgate/internal/auth"
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
	h, err := homes.Open(ctx, a.cfg, node, func() time.Duration { return a.config.Load().cfg.Sessions.TTL }, a.log)
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
	errs := []error{a.gateway.Operator().RefreshSessions(ctx, true), followPins(a, changed)}
	a.logins.Follow(changed)
	for _, name := range changed {
		switch name {
		case keysName:
			err = a.followKeys(ctx)
		case revokedName:
			err = a.followRevocations(ctx)
		case pausedName:
			err = a.followPauses(ctx)
		case glassName:
			err = followGlass(ctx, a)
		case policydata.GrantsName:
			err = followGrants(ctx, a)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.followed.Store(to)
	return nil
}

// followPins takes over what other gateways have seen and approved, and tries again what could not be kept.
func followPins(a *App, changed []string) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	return a.gateway.Operator().FollowPins(byAnother, changed)
}

func followGlass(ctx context.Context, a *App) error {
	raw, _, err := a.shared.document(glassName).Load(ctx, 0)
	if err != nil || raw == nil {
		return err
	}
	var until time.Time
	if err := until.UnmarshalText(raw); err != nil {
		return fmt.Errorf("%s: %w", a.shared.document(glassName).Name(), err)
	}
	a.glass.Follow(until)
	return nil
}

func (a *App) followKeys(ctx context.Context) error {
	changed, err := a.senders.keys.Reread(ctx)
	if changed {
		a.endKeys()
	}
	return err
}

func (a *App) followRevocations(ctx context.Context) error {
	s := a.senders
	s.revoking.Lock()
	defer s.revoking.Unlock()
	all, generation, err := auth.LoadRevocations(ctx, a.records.revoked, s.revokedAt)
	if err != nil {
		return err
	}
	now := s.now.Load()
	known := now.Revocations()
	for _, r := range all {
		if slices.ContainsFunc(known, r.Equal) {
			continue
		}
		ended, err := now.Revoke(r)
		if err != nil {
			return err
		}
		a.endTokens(r, ended)
	}
	s.revokedAt = generation
	return nil
}

func (a *App) followPauses(ctx context.Context) error {
	a.pausing.Lock()
	defer a.pausing.Unlock()
	all, err := paused.Load(ctx, a.records.paused)
	if err != nil {
		return err
	}
	here := a.gateway.Operator().Paused()
	var errs []error
	for _, server := range all {
		if !slices.Contains(here, server) {
			errs = append(errs, a.gateway.Operator().Pause(server, byAnother))
		}
	}
	for _, server := range here {
		if !slices.Contains(all, server) && !a.shared.here[server] {
			errs = append(errs, a.gateway.Operator().Resume(server, byAnother))
		}
	}
	return errors.Join(errs...)
}

// catchUp follows other gateways without a call, so that streams end, and keys that were made
// elsewhere are taken. What goes wrong is said by the next call, and by status.
func (a *App) catchUp(ctx context.Context) {
	to, err := a.shared.Generation(ctx)
	if err == nil {
		err = errors.Join(a.follow(ctx, to), followPins(a, nil))
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
