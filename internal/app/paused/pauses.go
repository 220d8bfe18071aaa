package paused

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/files/state"
)

// The operations of pauses.
var (
	Pause   = operation.New[Request, []string]("pause")
	Restart = operation.New[Request, operation.None]("restart")
)

// Gateway is the one whose servers are paused.
type Gateway interface {
	Pause(server, by string) error
	Resume(server, by string) error
	Paused() []string
	RestartServer(ctx context.Context, server, by string) error
}

// Pauses are those of one gateway. Its fields are set before the first change.
type Pauses struct {
	Gateway  Gateway
	Document state.Document // keeps them
	// CatchUp has what another gateway has paused a moment ago paused here; nil if there are no others.
	CatchUp func(context.Context)

	changing sync.Mutex      // held over pausing and keeping that, so that what is kept is what holds
	here     map[string]bool // what is paused here only, because it could not be kept where gateways share it
}

// Operations adds those of pauses to a table.
func (p *Pauses) Operations(t operation.Table) {
	Pause.Add(t, func(ctx context.Context, r Request) ([]string, error) {
		return p.Pause(ctx, r.Server, r.Resume, operation.ByOperator)
	})
	Restart.Add(t, func(ctx context.Context, r Request) (operation.None, error) {
		return operation.None{}, p.Restart(ctx, r.Server, operation.ByOperator)
	})
}

// A Request asks for a pause, or for its end, or for a new start.
type Request struct {
	Server string `json:"server"` // "" is everything
	Resume bool   `json:"resume"`
}

// Restore pauses what was paused when the last gateway ended.
func (p *Pauses) Restore(ctx context.Context) error {
	all, err := Load(ctx, p.Document)
	if err != nil {
		return fmt.Errorf("the gateway does not start, because the list of what is paused cannot be read: %w", err)
	}
	for _, server := range all {
		if err := p.Gateway.Pause(server, "the operator, before this start"); err != nil {
			return err
		}
	}
	return nil
}

// Pause refuses every new call of a server, or of all if server is "", also after a
// restart, until it is resumed. By is who does it. It returns what is paused then.
func (p *Pauses) Pause(ctx context.Context, server string, resume bool, by string) ([]string, error) {
	if p.CatchUp != nil {
		p.CatchUp(ctx)
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	change := p.Gateway.Pause
	if resume {
		change = p.Gateway.Resume
	}
	err := change(server, by)
	if slices.Contains(p.Gateway.Paused(), server) != resume { // it is as asked, recorded or not
		_, _, kept := Change(ctx, p.Document, server, resume)
		if p.CatchUp != nil {
			p.pausedHere(server, !resume && kept != nil)
		}
		err = errors.Join(err, kept)
	}
	return p.Gateway.Paused(), err
}

// pausedHere notes whether a pause holds on this gateway only.
func (p *Pauses) pausedHere(server string, only bool) {
	if p.here == nil {
		p.here = map[string]bool{}
	}
	p.here[server] = only
}

// Follow pauses and resumes what another gateway, by, has.
func (p *Pauses) Follow(ctx context.Context, by string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	all, err := Load(ctx, p.Document)
	if err != nil {
		return err
	}
	here := p.Gateway.Paused()
	var errs []error
	for _, server := range all {
		if !slices.Contains(here, server) {
			errs = append(errs, p.Gateway.Pause(server, by))
		}
	}
	for _, server := range here {
		if !slices.Contains(all, server) && !p.here[server] {
			errs = append(errs, p.Gateway.Resume(server, by))
		}
	}
	return errors.Join(errs...)
}

// Restart ends a server's connection or process, and begins another. By says who wants it.
func (p *Pauses) Restart(ctx context.Context, server, by string) error {
	return p.Gateway.RestartServer(ctx, server, by)
}
