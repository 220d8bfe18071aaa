package app

import (
	"context"
	"encoding/json"
	"io"

	"github.com/wasmgate/wasmgate/internal/app/operation"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/control"
)

// A Remote is the gateway that runs on a configuration, in another process.
type Remote struct{ client *control.Client }

// Dial returns the gateway that runs on a configuration. The error is
// [control.ErrNotRunning] if there is none.
func Dial(ctx context.Context, cfg *config.Config) (*Remote, error) {
	c, err := control.Dial(ctx, cfg.State)
	if err != nil {
		return nil, err
	}
	return &Remote{c}, nil
}

// Close frees the connection.
func (r *Remote) Close() { r.client.Close() }

// Ask implements [operation.Gateway].
func (r *Remote) Ask(ctx context.Context, name string, params, result any) error {
	var note func(json.RawMessage)
	if l, ok := params.(operation.Listener); ok {
		note = l.Listener()
	}
	return unwire(r.client.CallNoted(ctx, name, params, result, note))
}

// Relay connects an MCP client that speaks on in and out, for the principal as, which
// is offered what is in one of the groups, or all if there are none, until the gateway
// ends the connection, as it does after the end of in.
func (r *Remote) Relay(ctx context.Context, as string, groups []string, in io.Reader, out io.Writer) error {
	return unwire(r.client.Relay(ctx, as, groups, in, out))
}
