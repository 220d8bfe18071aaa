package configured

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
)

// A Gateway is the one gateway that runs on a configuration, until it is closed. Its
// servers connect without further ado: Start is not to be called.
type Gateway struct {
	*gateway.Gateway
	app   *app.App
	end   context.CancelFunc
	ended func() error // waits for the end of Run, and returns its error
}

// ErrRuns says that another process runs a gateway on the configuration.
var ErrRuns = errors.New("a gateway runs on this configuration already: end it first, or connect to it")

// Open runs the gateway of the configuration at path, a wasmgate.yaml or an mcp.json.
// Without a path it is found as the program finds it: the person's own file, then the
// project's if it is trusted, or else the embedded tools alone. Servers are connecting
// when it returns, and the listings of a client wait for them. Ctx bounds the start, not
// the life of the gateway. A nil log discards. The error names everything that is wrong
// with the file, each with path and line, or wraps [ErrRuns].
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
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ends with end, and Close waits for it
		ended <- a.Run(life, app.Front{Ready: func(context.Context, *app.App, string) { close(ready) }})
	}()
	select {
	case <-ready:
		wait := sync.OnceValue(func() error { return <-ended })
		return &Gateway{Gateway: a.Gateway(), app: a, end: end, ended: wait}, nil
	case err := <-ended:
		end()
		return nil, errors.Join(err, a.Close(ctx))
	}
}

// Close lets calls under way end, ends the servers, and gives the configuration free
// for another process. The end of ctx does not keep it from that. It may be called again.
func (g *Gateway) Close(ctx context.Context) error {
	g.end()
	return errors.Join(g.ended(), g.app.Close(ctx))
}
