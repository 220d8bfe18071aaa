package shell

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
	"github.com/wasmgate/wasmgate/internal/product"
)

// Gateway is a gateway that a command asks: the one that runs on the
// configuration, or one that is started for the command.
type Gateway interface {
	operation.Gateway
	End(ctx context.Context) error // of what the command started
}

type remote struct{ *app.Remote }

func (r remote) End(context.Context) error {
	r.Close()
	return nil
}

// Own is a gateway that the command has started, and that ends with it.
type Own struct {
	*app.App
	end func() // of what other processes ask meanwhile
}

func (o Own) End(ctx context.Context) error {
	o.end()
	return o.Close(ctx)
}

// Start starts a gateway for a command, with the server only if that is not empty.
// Nothing of it is connected.
func (c *Shell) Start(ctx context.Context, cfg *config.Config, only string) (*app.App, error) {
	log, err := c.Logger(cfg, true)
	if err != nil {
		return nil, err
	}
	a, err := app.New(ctx, cfg, log, only)
	if errors.Is(err, control.ErrHeld) {
		return nil, errors.New("a gateway of this configuration is starting or ending; try again")
	}
	return a, err
}

// Ask returns the gateway of a configuration. If none runs it starts one, with
// the server only if that is not empty, and waits until all have connected or
// failed. Other processes can ask that one meanwhile, if it has all servers.
func (c *Shell) Ask(ctx context.Context, cfg *config.Config, only string) (Gateway, error) {
	log, err := c.Logger(cfg, true)
	if err != nil {
		return nil, err
	}
	a, r, err := app.Find(ctx, cfg, log, only)
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		return remote{r}, nil
	}
	end := func() {}
	if only == "" {
		if end, err = a.Answer(ctx); err != nil {
			return nil, errors.Join(err, a.Close(ctx))
		}
	}
	stop := c.Coming(a.Overview.Status)
	err = a.Connect(ctx)
	stop()
	if err != nil {
		end()
		return nil, errors.Join(err, a.Close(ctx))
	}
	return Own{a, end}, nil
}

// With gives use the gateway of a configuration, as [Shell.Ask] returns it.
func (c *Shell) With(ctx context.Context, cfg *config.Config, only string, use func(Gateway) error) error {
	g, err := c.Ask(ctx, cfg, only)
	if err != nil {
		return err
	}
	return errors.Join(use(g), g.End(ctx))
}

// WithState gives use the gateway that runs on the configuration; or else one that is
// started for that, without servers, and knows what the last one has kept.
func (c *Shell) WithState(ctx context.Context, use func(operation.Gateway) error) (err error) {
	cfg, err := c.Open()
	if err != nil {
		return err
	}
	if r, err := app.Dial(ctx, cfg); err == nil {
		defer r.Close()
		return use(r)
	}
	a, err := c.Start(ctx, cfg, product.LocalServer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	return use(a)
}

// ReadToken reads the token that a flag speaks of; "" without the flag.
func (c *Shell) ReadToken(flag string) (string, error) {
	switch flag {
	case "":
		return "", nil
	case "-":
		return c.Line()
	}
	return "", Misuse("--token takes -, and the token on standard input: every user of this machine can read the list of processes")
}

// maxToken bounds what is read of a token on standard input.
const maxToken = 64 << 10

// Line reads one line of standard input.
func (c *Shell) Line() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(c.In, maxToken)).ReadString('\n')
	if line = strings.TrimSpace(line); line != "" {
		return line, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return "", Misuse("standard input is empty")
}
