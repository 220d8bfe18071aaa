package policyfiles

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/policy/bundle"
)

// A BundleError says that there is no policy to begin with: a bundle cannot be had,
// and no earlier one is kept.
type BundleError struct {
	Name string
	Err  error
}

func (e *BundleError) Error() string { return e.Err.Error() }
func (e *BundleError) Unwrap() error { return e.Err }

// First reads each source that was not read before. If a source cannot be read, First takes the kept
// copy of its bundle. The error is a [*BundleError] if there is no copy.
func (all Bundles) First(ctx context.Context, log *slog.Logger) error {
	for _, s := range all {
		if known, _ := s.newest(); known != nil {
			continue
		}
		missing := s.restore()
		_, err := s.Read(ctx)
		switch {
		case err != nil && missing != nil:
			return &BundleError{s.Config.Name, fmt.Errorf("%w; %w", err, missing)}
		case err != nil:
			log.Error("bundle not read; the kept copy is in use", "bundle", s.Config.Name, "error", err)
		}
	}
	return nil
}

func (all Bundles) newest() (some []*bundle.Bundle) {
	for _, s := range all {
		b, _ := s.newest()
		some = append(some, b)
	}
	return some
}

// InUse returns the last good ones.
func (all Bundles) InUse() (some []*bundle.Bundle) {
	for _, s := range all {
		some = append(some, s.inUse())
	}
	return some
}

// Settle finds the newest bundles with which the policy loads, and returns that
// policy: all of them, or else each that does with the last good ones of the others.
// Try loads a policy. The error says why none did.
func (p *Files) Settle(sources Bundles, log *slog.Logger, try func(gateway.Policy) error) (gateway.Policy, error) {
	all, err := p.Load()
	if err != nil {
		return gateway.Policy{}, err
	}
	all.Options.Bundles = sources.newest()
	if err = try(all); err == nil {
		adopt(sources, log)
		return all, nil
	}
	good := make([]*bundle.Bundle, len(sources))
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
	last := all
	last.Options.Bundles = good
	if try(last) != nil {
		return gateway.Policy{}, err // its cause is not the bundles, or not only the bundles
	}
	for _, i := range fresh {
		one, failed := last, err
		if len(fresh) > 1 {
			one.Options.Bundles = append([]*bundle.Bundle(nil), last.Options.Bundles...)
			one.Options.Bundles[i], _ = sources[i].newest()
			failed = try(one)
		}
		if failed == nil {
			last = one
			adopt(sources[i:i+1], log)
			continue
		}
		sources[i].refuse(failed)
		log.Error("bundle refused; the last good one is still in use", "bundle", sources[i].Config.Name, "error", failed)
	}
	return last, nil
}

func adopt(sources Bundles, log *slog.Logger) {
	for _, s := range sources {
		if err := s.adopt(); err != nil {
			log.Error("bundle not kept", "bundle", s.Config.Name, "error", err)
		}
	}
}
