package app

import (
	"context"
	"encoding/json"
	"io"

	"github.com/wasmgate/wasmgate/internal/app/naming"
)

// backend answers the control socket.
type backend struct{ app *App }

// Handle implements [control.Backend].
func (b backend) Handle(ctx context.Context, method string, params json.RawMessage) (any, error) {
	defer b.app.clients.enter()()
	answer, err := b.app.operations.Handle(ctx, method, params)
	return answer, wire(err)
}

// Client implements [control.Backend].
func (b backend) Client(as string, groups []string) (func(context.Context, io.Reader, io.Writer) error, error) {
	who, err := naming.Offered(b.app.Settings.Config(), as, groups)
	if err != nil {
		return nil, wire(err)
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		defer b.app.clients.enter()()
		b.app.clients.came()
		return b.app.gateway.Serve(ctx, who, in, out)
	}, nil
}
