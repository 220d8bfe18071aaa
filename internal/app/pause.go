package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmgate/wasmgate/internal/app/paused"
)

// pauseRequest asks for a pause, or for its end.
type pauseRequest struct {
	Server string `json:"server"` // "" is everything
	Resume bool   `json:"resume"`
}

// stayPaused pauses what was paused when the last gateway ended.
func (a *App) stayPaused(ctx context.Context) error {
	all, err := paused.Load(ctx, a.records.paused)
	if err != nil {
		return fmt.Errorf("the gateway does not start, because the list of what is paused cannot be read: %w", err)
	}
	for _, server := range all {
		if err := a.gateway.Operator().Pause(server, "the operator, before this start"); err != nil {
			return err
		}
	}
	return nil
}

// Pause refuses every new call of a server, or of all if server is "", also after a
// restart, until it is resumed. It returns what is paused then.
func (a *App) Pause(ctx context.Context, server string, resume bool) ([]string, error) {
	return a.PauseBy(ctx, server, resume, byOperator)
}

// PauseBy is Pause, and who does it.
func (a *App) PauseBy(ctx context.Context, server string, resume bool, by string) ([]string, error) {
	if a.shared.Store != nil { // what another gateway has paused a moment ago can be resumed here
		a.shared.catchUp(ctx)
	}
	a.pausing.Lock()
	defer a.pausing.Unlock()
	change := a.gateway.Operator().Pause
	if resume {
		change = a.gateway.Operator().Resume
	}
	err := change(server, by)
	if slices.Contains(a.gateway.Operator().Paused(), server) != resume { // it is as asked, recorded or not
		_, _, kept := paused.Change(ctx, a.records.paused, server, resume)
		if a.shared.Store != nil {
			a.shared.pausedHere(server, !resume && kept != nil)
		}
		err = errors.Join(err, kept)
	}
	return a.gateway.Operator().Paused(), err
}

// RestartServer ends a server's connection or process, and begins another. By says who wants it.
func RestartServer(ctx context.Context, a *App, server, by string) error {
	return a.gateway.Operator().RestartServer(ctx, server, by)
}

// Restart does what [RestartServer] does.
func (r *Remote) Restart(ctx context.Context, server string) error {
	return r.call(ctx, methodRestart, pauseRequest{Server: server}, new(any))
}

// Pause does what [App.Pause] does.
func (r *Remote) Pause(ctx context.Context, server string, resume bool) ([]string, error) {
	return asked[[]string](ctx, r, methodPause, pauseRequest{server, resume})
}
