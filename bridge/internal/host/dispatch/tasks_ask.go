package dispatch

import (
	"context"
	"errors"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/host/questions"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
)

// askFor asks a client with a session what the server of a task asks, on the stream of
// the request that ctx is of, until stop is called (MCP 2025-11-25, basic/utilities/tasks,
// "Input Required Status"). It is asked only if it can be asked the same as the one that
// made the call, to which the server speaks.
func (t *tasks) askFor(ctx context.Context, p sessions.Client, j jobs.Job) (stop func()) {
	k := t.taskCalls.of(j)
	if k == nil || !p.Asks() || p.Capabilities.Digest() != k.reach.Capabilities.Digest() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	peer := p.Reached(ctx)
	asking.Go(func() { // ends with ctx, and those below with it or with their questions
		for {
			news := k.Change()
			for q := k.Take(); q != nil; q = k.Take() {
				asking.Go(func() {
					if !k.askOne(ctx, peer, q, j) {
						cancel() // the client has gone
					}
				})
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		asking.Wait()
	}
}

// askOne puts a question to a client, and its answer to the server. It is false if the
// client cannot be asked.
func (k *parked) askOne(ctx context.Context, client gate.Client, q *questions.Question, j jobs.Job) bool {
	res, err := client.Request(ctx, q.Method, mcp.Stamp(q.Params, mcp.MetaRelatedTask, relatedTask(j)))
	_, refused := errors.AsType[*mcp.Error](err)
	k.Put(q, questions.Reply{Doc: res, Err: err}, err == nil || refused)
	return err == nil || refused
}
