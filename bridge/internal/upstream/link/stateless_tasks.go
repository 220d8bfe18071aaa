package link

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/pace"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/rounds"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// offersTasks reports whether the server may answer calls by tasks.
func (l stateless) offersTasks() bool {
	return l.Capabilities.Get("extensions").Get(mcp.ExtensionTasks).Kind() == doc.Object
}

// A statelessTask is a call that a server of [mcp.Stateless] carries out as a task. Each request
// about it stands for itself, so that a task outlives the connection.
type statelessTask struct {
	l      *Link    // over which the server was asked last
	about  outgoing // what is the same in all requests
	state  taskState
	inputs *rounds.Inputs
	// refused is why the server has not taken an answer: it may be that the task had ended
	// meanwhile, which the next request tells.
	refused error
}

// follow waits for the end of the task that a call was answered by, for as long as the
// server says in time that it goes on. What it wants to know meanwhile its client is asked.
func (l stateless) follow(ctx *pace.Deadline, a outgoing, made gate.Doc) (gate.Doc, error) {
	state, err := newTask(made)
	if err != nil {
		return gate.Doc{}, err
	}
	a.of.BecomesTask(state.id)
	t := &statelessTask{l: l.Link, state: state, inputs: rounds.NewInputs(ctx, a.of), about: outgoing{
		of: a.of, name: state.id, capabilities: a.capabilities, tasks: true,
	}}
	res, err := t.wait(ctx, made)
	t.inputs.End()
	if err != nil && !t.state.ended() {
		t.about.params = t.state.params()
		t.l.cancelTask(ctx, t.about)
	}
	return mcp.WithoutTask(res), seen(err)
}

// wait asks for the task, and passes on the client's answers, until the task has ended.
func (t *statelessTask) wait(ctx *pace.Deadline, task gate.Doc) (gate.Doc, error) {
	pause := pollAfter(task.Get("pollIntervalMs"), ctx.Timeout)
	if t.state.status != mcp.TaskWorking { // it has ended already, or wants something
		pause = 0
	}
	for {
		select {
		case one := <-t.inputs.Answers():
			if one.Err != nil {
				return gate.Doc{}, rounds.Unanswered(one.Method, one.Err)
			}
			if err := t.update(ctx, one); err != nil {
				return gate.Doc{}, err
			}
			if t.refused != nil {
				pause = 0
			}
		case <-time.After(pause):
			var err error
			if task, err = t.ask(ctx, mcp.MethodTaskGet, t.state.params()); err != nil {
				return gate.Doc{}, err
			}
			if res, err := t.see(task); err != nil || t.state.ended() {
				return res, err
			}
			ctx.Extend()
			pause = pollAfter(task.Get("pollIntervalMs"), ctx.Timeout)
		case <-ctx.Done():
			return gate.Doc{}, ctx.Err()
		}
	}
}

// see takes what the server says of the task: its result, once it has ended.
func (t *statelessTask) see(task gate.Doc) (gate.Doc, error) {
	if err := t.state.next(task); err != nil {
		return gate.Doc{}, err
	}
	var wanted []rounds.Request
	switch t.state.status {
	case mcp.TaskInput:
		var err error
		if wanted, err = rounds.Requests(task.Get("inputRequests")); err != nil {
			return gate.Doc{}, &mcp.ProtocolError{Err: err}
		}
		if task.Get("inputRequests").IsZero() {
			return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("a task requires input, and does not name the input")}
		}
	case mcp.TaskCompleted:
		res := task.Get("result")
		if kind := res.Get("resultType"); res.Kind() != doc.Object || !kind.IsZero() && kind.Text() != mcp.ResultComplete {
			return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("a task is completed, and has no complete result")}
		}
		return res, nil
	case mcp.TaskFailed:
		failure := task.Get("error")
		if failure.Kind() != doc.Object {
			return gate.Doc{}, &mcp.ProtocolError{Err: errors.New("a task has failed, and has no error")}
		}
		return gate.Doc{}, wire.ParseRPCError(failure)
	case mcp.TaskCancelled:
		return cancelledTask(task.Get("statusMessage").Text()), nil
	}
	if t.refused != nil {
		return gate.Doc{}, t.refused
	}
	return gate.Doc{}, t.inputs.Want(wanted)
}

// cancelledTask is the result of a call whose task the server has cancelled.
func cancelledTask(why string) gate.Doc {
	text := "the server has cancelled the task that carried out the call"
	if why != "" {
		text += ": " + why
	}
	return gate.MustDoc(string(mcp.MustJSON(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}, "isError": true})))
}

// update gives the server an answer of the client.
func (t *statelessTask) update(ctx *pace.Deadline, one rounds.Answer) error {
	responses := gate.MustDoc("{}").With(one.Key, one.Answer.Raw())
	_, err := t.ask(ctx, mcp.MethodTaskUpdate, mcp.WithMember(t.state.params(), `"inputResponses":`, responses.Raw()))
	if _, said := errors.AsType[*wire.RPCError](err); said {
		t.refused, err = err, nil
	}
	return err
}

// ask sends a request about the task: again, if the connection breaks, which is safe with
// all of them, for as long as the call has time.
func (t *statelessTask) ask(ctx *pace.Deadline, method string, params []byte) (gate.Doc, error) {
	t.about.method, t.about.params = method, params
	pauses := pace.Backoff{First: minPoll, Most: maxPoll}
	for {
		res, err := t.askOnce(ctx)
		if err == nil || !t.again(ctx, err) {
			return res, lostTask(err)
		}
		select {
		case <-time.After(pauses.Next()):
		case <-ctx.Done():
			return gate.Doc{}, ctx.Err()
		}
	}
}

// askOnce asks over the connection that there is now. The server at its other end may not
// be the one any more whose tool was approved.
func (t *statelessTask) askOnce(ctx *pace.Deadline) (gate.Doc, error) {
	l, err := t.l.endpoint.Ready(ctx, false)
	switch {
	case err != nil:
		return gate.Doc{}, err
	case l != t.l && l.Revision != mcp.Stateless:
		return gate.Doc{}, &mcp.ProtocolError{Err: fmt.Errorf("the server no longer speaks MCP revision %s, so the result of its task is lost", mcp.Stateless)}
	case l != t.l:
		if err := t.about.of.Permit().Approved(); err != nil {
			return gate.Doc{}, err
		}
	}
	t.l = l
	return l.send(ctx, t.about)
}

// again reports whether a request that ended with err may get an answer later.
func (t *statelessTask) again(ctx *pace.Deadline, err error) bool {
	if ctx.Err() != nil || t.l.endpoint.Ending() {
		return false
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Kind == fault.NotConnected
	}
	if s, ok := errors.AsType[*wire.StatusError](err); ok && s.Status/100 == 4 && s.Status != http.StatusTooManyRequests {
		return false
	}
	return fault.KindOf(err, fault.Transport) == fault.Transport
}

// lostTask returns err, the end of a request about a task. A server's error to it is that
// of the call: there will be no result.
func lostTask(err error) error {
	if rpc, ok := errors.AsType[*wire.RPCError](err); ok {
		return &wire.RPCError{Code: rpc.Code, Data: rpc.Data, Message: "the server has made a task of the call, and no longer reports its state: " + rpc.Message}
	}
	return err
}
