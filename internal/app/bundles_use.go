package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/policy"
)

// A BundleError says that there is no policy to begin with: a bundle cannot be had,
// and no earlier one is kept.
type BundleError struct {
	Name string
	Err  error
}

func (e *BundleError) Error() string { return e.Err.Error() }
func (e *BundleError) Unwrap() error { return e.Err }

// readBundles asks each source for the first time, and takes the kept copy of one
// that cannot be read. The error is a [*BundleError] if there is none.
func readBundles(ctx context.Context, sources []*bundleSource, log *slog.Logger) error {
	for _, s := range sources {
		missing := s.restore()
		_, err := s.read(ctx)
		switch {
		case err != nil && missing != nil:
			return &BundleError{s.cfg.Name, fmt.Errorf("%w; %w", err, missing)}
		case err != nil:
			log.Error("bundle not read; the kept copy is in use", "bundle", s.cfg.Name, "error", err)
		}
	}
	return nil
}

func newestBundles(sources []*bundleSource) []*policy.Bundle {
	var all []*policy.Bundle
	for _, s := range sources {
		b, _ := s.newest()
		all = append(all, b)
	}
	return all
}

// settle finds the newest bundles with which the policy loads, and returns that
// policy: all of them, or else each that does with the last good ones of the others.
// Try loads a policy. The error says why none did.
func settle(files *policyFiles, sources []*bundleSource, log *slog.Logger, try func(gateway.Policy) error) (gateway.Policy, error) {
	p, err := files.load()
	if err != nil {
		return gateway.Policy{}, err
	}
	p.Options.Bundles = newestBundles(sources)
	if err = try(p); err == nil {
		adopt(sources, log)
		return p, nil
	}
	good := make([]*policy.Bundle, len(sources))
	var fresh []int
	for i, s := range sources {
		if good[i] = s.inUse(); good[i] == nil {
			return gateway.Policy{}, err // there is nothing to fall back on
		}
		if _, ok := s.newest(); ok {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return gateway.Policy{}, err
	}
	last := p
	last.Options.Bundles = good
	if try(last) != nil {
		return gateway.Policy{}, err // it is not for the bundles, or not for them alone
	}
	for _, i := range fresh {
		one, failed := last, err
		if len(fresh) > 1 {
			one.Options.Bundles = append([]*policy.Bundle(nil), last.Options.Bundles...)
			one.Options.Bundles[i], _ = sources[i].newest()
			failed = try(one)
		}
		if failed == nil {
			last = one
			adopt(sources[i:i+1], log)
			continue
		}
		sources[i].refuse(failed)
		log.Error("bundle refused; the last good one stays", "bundle", sources[i].cfg.Name, "error", failed)
	}
	return last, nil
}

func adopt(sources []*bundleSource, log *slog.Logger) {
	for _, s := range sources {
		if err := s.adopt(); err != nil {
			log.Error("bundle not kept", "bundle", s.cfg.Name, "error", err)
		}
	}
}

// firstPolicy returns the policy to begin with.
func (a *App) firstPolicy(ctx context.Context) (gateway.Policy, error) {
	if err := readBundles(ctx, a.bundles, a.log); err != nil {
		return gateway.Policy{}, err
	}
	if len(a.bundles) == 0 {
		return a.policy.Load().load()
	}
	return settle(a.policy.Load(), a.bundles, a.log, func(p gateway.Policy) error {
		_, err := policy.Load(ctx, p.Files, p.Options)
		return err
	})
}

// noteBundles records what was wrong with the bundles before there was a log.
func (a *App) noteBundles() error {
	var errs []error
	for _, s := range a.bundles {
		if e := s.status().Error; e != "" {
			errs = append(errs, a.gateway.PolicyRefused(errors.New(e)))
		}
	}
	return errors.Join(errs...)
}

// readBundle asks a source again, and tells of an error that it did not have
// before.
func (a *App) readBundle(ctx context.Context, s *bundleSource) (changed bool) {
	before := s.status().Error
	changed, err := s.read(ctx)
	after := s.status().Error
	switch {
	case ctx.Err() != nil:
	case err != nil && after != before:
		a.log.Error("bundle not read; the last good one stays", "bundle", s.cfg.Name, "error", err)
		if err := a.gateway.PolicyRefused(err); err != nil {
			a.log.Error("bundle error not recorded", "error", err)
		}
	case after == "" && before != "":
		a.log.Info("bundle read again", "bundle", s.cfg.Name)
	}
	return changed
}

// pollBundle asks for a bundle by its URL until ctx ends, and has a new one loaded.
func (a *App) pollBundle(ctx context.Context, s *bundleSource) {
	tick := time.NewTicker(s.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if a.readBundle(ctx, s) {
			_ = a.reloadPolicy(ctx) // it logs what is wrong
		}
	}
}
