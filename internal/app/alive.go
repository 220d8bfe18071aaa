package app

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/internal/app/systemd"
	"github.com/wasmgate/wasmgate/internal/files/watch"
)

// drainSays is how often a drain says how far it is.
const drainSays = 2 * time.Second

// reportAlive tells the service manager, if there is one, that clients can come, and then
// as often as it wants that the gateway is not stuck.
func (a *App) reportAlive(ctx context.Context) {
	a.tellManager(systemd.Ready + "\n" + systemd.Status("serving"))
	every := systemd.WatchdogEvery()
	for every > 0 && watch.Wait(ctx, every) {
		_ = a.gateway.Operator().Ready() // takes the locks that every call takes: a gateway that is stuck does not come back
		a.tellManager(systemd.Watchdog)
	}
}

// told drains, and says how far that is.
func (a *App) told(ctx context.Context, within time.Duration, drain func(context.Context) error) error {
	a.tellManager(systemd.Stopping)
	done := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		tick := time.NewTicker(drainSays)
		defer tick.Stop()
		for began := time.Now(); ; {
			n := a.gateway.Operator().UnderWay()
			a.tellManager(systemd.Status(fmt.Sprintf("draining: %d calls under way", n)))
			select {
			case <-tick.C:
				a.log.Info("draining", "under_way", n, "since", time.Since(began).Round(time.Second), "within", within)
			case <-done:
				return
			}
		}
	}()
	err := drain(ctx)
	close(done)
	<-said
	return err
}

func (a *App) tellManager(state string) {
	if err := systemd.Notify(state); err != nil {
		a.log.Warn("the service manager cannot be notified", "error", err)
	}
}
