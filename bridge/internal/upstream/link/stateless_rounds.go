package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxRounds bounds how often a server answers a call by asking for more.
	maxRounds = 10
	// roundPause is how long a server is left alone that asks for nothing but to be
	// called again; each time twice as long.
	roundPause = 100 * time.Millisecond
)

// rounds sends the request of a call until the server has all that it asks for (MCP
// 2026-07-28, basic/patterns/mrtr). A client that can be asked by the answer to its
// call gets the server's questions, and calls again; any other is asked meanwhile. The
// answer may be a task, if it can be one.
func (l stateless) rounds(ctx context.Context, a outgoing) (gate.Doc, error) {
	c, call, params := a.of, a.of.Call, a.params
	b := rounds.BroughtBy(call)
	pause := roundPause
	for round := range maxRounds {
		a.params = b.With(params)
		res, err := l.send(ctx, a)
		if never, ok := errors.AsType[*wire.Unseen](err); ok && round > 0 {
			err = never.Err // of this round: the server has seen the call
		}
		if err != nil {
			return gate.Doc{}, err
		}
		if a.tasks && rounds.IsTask(res) {
			return res, nil
		}
		m, err := rounds.MoreOf(call.Action, res)
		switch {
		case err != nil:
			return gate.Doc{}, &mcp.ProtocolError{Err: err}
		case m == nil:
			return res, nil
		case call.Reach().Rounds:
			c.More = true
			return m.Screened(ctx, c.Permit())
		}
		b.State = m.State
		if b.Responses, err = m.Answered(ctx, c); err != nil {
			return gate.Doc{}, err
		}
		if len(m.Requests) > 0 {
			continue
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return gate.Doc{}, ctx.Err()
		}
	}
	return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server has asked for input %d times during one call, which is the most", maxRounds)}
}
