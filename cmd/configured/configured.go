// Package configured runs a gateway from a configuration file inside another program:
// the same that `wasmgate serve` runs from it, with its state, its policy that is
// watched, and the commands that reach it, but for a listener. A program that says in
// Go what it wants uses package bridge/gateway alone.
//
//	func main() {
//		bridge.ChildMain() // this program supervises servers that are commands
//		...
//		gw, err := configured.Open(ctx, "", nil)
package configured

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/app"
	"github.com/wasmgate/wasmgate/cmd/internal/config"
	"github.com/wasmgate/wasmgate/cmd/internal/control"
)

// A Gateway is the one gateway that runs on a configuration. It has to be closed.
type Gateway struct {
	*gateway.Gateway
	app   *app.App
	end   context.CancelFunc
	ended chan error // what Run returned
}

// ErrRuns says that another process runs a gateway on the configuration.
var ErrRuns = errors.New("a gateway runs on this configuration already: end it first, or connect to it")

// Open runs the gateway of the configuration at path, a wasmgate.yaml or an mcp.json.
// Without a path it is found as the program finds it: the person's own file, then the
// project's if it is trusted, or else the embedded tools alone. Servers are connecting
// when it returns. Log may be nil. The error names everything that is wrong with the
// file, each with path and line, or wraps [ErrRuns].
func Open(ctx context.Context, path string, log *slog.Logger) (*Gateway, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	cfg, err := config.Open(path, cwd, config.Options{})
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a, err := app.New(ctx, cfg, log, "")
	if errors.Is(err, control.ErrHeld) {
		return nil, fmt.Errorf("%w (%s)", ErrRuns, cfg.State)
	}
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	g := &Gateway{Gateway: a.Gateway(), app: a, end: end, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() { // ends with end, and Close waits for it
		g.ended <- a.Run(life, app.Front{Ready: func(context.Context, *app.App, string) { close(ready) }})
	}()
	select {
	case <-ready:
		return g, nil
	case err := <-g.ended:
		end()
		return nil, errors.Join(err, a.Close(ctx))
	}
}

// Close lets calls under way end, ends the servers, and gives the configuration free
// for another process. It is called once.
func (g *Gateway) Close(ctx context.Context) error {
	g.end()
	return errors.Join(<-g.ended, g.app.Close(ctx))
}
