package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	settings "github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config"
)

// A LearnRequest says which server to learn from, and how.
type LearnRequest struct {
	Server string
	Calls  []calls.Request // made one after the other, through the gate
	For    time.Duration   // how long to watch once they are done
}

// maxAccesses bounds what is remembered of a server.
const maxAccesses = 100_000

// Learn runs a server without confinement, has its tools listed and called, and proposes rules from
// what it used. Failed is called for each call that did not work; such a call ends nothing.
func Learn(ctx context.Context, cfg *config.Config, log *slog.Logger, r LearnRequest, failed func(error)) (_ confine.Proposal, err error) {
	at := slices.IndexFunc(cfg.Servers, func(s config.Server) bool { return s.ID == r.Server })
	switch {
	case at < 0:
		return confine.Proposal{}, naming.NoServer(cfg, r.Server)
	case !cfg.Servers[at].Enabled:
		return confine.Proposal{}, fmt.Errorf("server %s is not enabled", r.Server)
	case cfg.Servers[at].Command == "":
		return confine.Proposal{}, fmt.Errorf("server %s is not a program that the gateway starts: there is nothing to confine", r.Server)
	}
	var mu sync.Mutex
	var used []confine.Access
	a, err := newApp(ctx, cfg, log, r.Server, func(x confine.Access) {
		mu.Lock()
		defer mu.Unlock()
		if len(used) < maxAccesses {
			used = append(used, x)
		}
	})
	if err != nil {
		return confine.Proposal{}, err
	}
	err = a.exercise(ctx, r, failed)
	if err = errors.Join(err, a.Close(ctx)); err != nil {
		return confine.Proposal{}, err
	}
	dirs, err := config.UserDirs()
	if err != nil {
		return confine.Proposal{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	return confine.Propose(used, dirs.Home, ownPlaces(cfg, dirs)), nil
}

// ownPlaces are the files and folders that a gateway reads its rules from, or keeps its state
// and machine code in, and the settings of agents, which name the programs that they start.
func ownPlaces(cfg *config.Config, dirs config.Dirs) []string {
	own := append(cfg.Files(), dirs.Config, dirs.State, cfg.State, cfg.Audit.Path, cfg.Pins.Lockfile)
	own = append(own, cfg.Policy.Paths...)
	own = append(own, cfg.Policy.Grants, cfg.Policy.Labels, cfg.Policy.RateLimits)
	if here, err := settings.Here(); err == nil {
		for _, c := range here.Clients() {
			for _, f := range slices.Concat(c.Servers, c.Hooks, c.Switches) {
				if f.Scope != settings.Project {
					own = append(own, f.Path)
				}
			}
		}
	}
	return slices.DeleteFunc(own, func(path string) bool { return path == "" })
}

// exercise connects the server and does with it what r says.
func (a *App) exercise(ctx context.Context, r LearnRequest, failed func(error)) error {
	if err := a.Connect(ctx); err != nil {
		return err
	}
	for _, s := range a.gateway.Fleet().Status() {
		if s.Server == r.Server && s.Phase == status.Faulted {
			return fmt.Errorf("server %s: %s: %s", r.Server, s.Fault, s.Error)
		}
	}
	for _, c := range r.Calls {
		res, err := a.Calls.Call(ctx, c)
		if err == nil && res.IsError {
			err = fmt.Errorf("%s: the tool reports an error: %s", c.Tool, res.Doc.At("/content/0/text").Text())
		}
		if err != nil {
			failed(err)
		}
	}
	select {
	case <-time.After(r.For):
	case <-ctx.Done(): // enough seen
	}
	return nil
}
