package host

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Clients without a session hear of their tasks with subscriptions/listen (ext-tasks,
// "Notifications"), which is the SDK's. It knows of no tasks: what is agreed of them is
// added to its acknowledgement, and the notifications are written past it.

const methodTaskChanged = "notifications/tasks"

// maxListenTasks bounds the tasks that one stream tells of; others can be asked for.
const maxListenTasks = 100

// A taskListening is what a client is told of tasks on one stream.
type taskListening struct {
	ids   []string               // agreed
	begin func(subscription any) // is called once the client has been told of them
}

type taskListeningKey struct{}

// acknowledging has the SDK's acknowledgement say which tasks are agreed, too.
func acknowledging(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		l, _ := ctx.Value(taskListeningKey{}).(*taskListening)
		if l == nil || method != mcp.MethodAcknowledged {
			return next(ctx, method, req)
		}
		doc, err := gate.ParseDoc(mcp.MustJSON(req.GetParams()))
		if err != nil {
			return nil, err
		}
		doc = doc.With("notifications", doc.Get("notifications").With("taskIds", mcp.MustJSON(l.ids)).Raw())
		res, err := next(ctx, method, &sdk.ServerRequest[sdk.Params]{Session: req.GetSession().(*sdk.ServerSession), Params: &rawParams{doc: doc}})
		if err == nil {
			l.begin(req.GetParams().GetMeta()[mcp.MetaSubscription])
		}
		return res, err
	}
}

// listenTasks has a client hear of the tasks that it names in its request, beside what the
// SDK tells it of.
func (h *Host) listenTasks(ctx context.Context, p peerInfo, r *sdk.SubscriptionsListenRequest, next sdk.MethodHandler) (sdk.Result, error) {
	var wants any
	if r.Params != nil {
		wants = r.Params.Meta[metaTask]
	}
	if wants == nil || h.cfg.Jobs == nil || p.write == nil {
		return next(ctx, mcp.MethodListen, r)
	}
	if meta, err := gate.ParseDoc(mcp.MustJSON(r.Params.Meta)); err != nil || !declaresTasks(meta) {
		no := lacksTasks()
		return nil, &jsonrpc.Error{Code: no.Code, Message: no.Message, Data: no.Data}
	}
	ids, ok := textsOf(wants)
	if !ok {
		return nil, &jsonrpc.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: taskIds is no list of strings"}
	}
	p.stateless = true
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, err := h.task(ctx, p, id)
		return err != nil
	})
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	defer told.Wait()
	defer stop()
	ctx = context.WithValue(ctx, taskListeningKey{}, &taskListening{ids, func(subscription any) {
		for _, id := range ids {
			told.Go(func() { h.tellTask(telling, p, id, subscription) })
		}
	}})
	res, err := next(ctx, mcp.MethodListen, r)
	if err == nil && len(ids) > 0 {
		<-ctx.Done() // the SDK does not wait if there is nothing for it to tell
	}
	return res, err
}

// textsOf reads a list of strings, each once, of which as many count as are told of.
func textsOf(list any) (texts []string, ok bool) {
	texts = []string{}
	all, ok := list.([]any)
	for _, one := range all {
		text, is := one.(string)
		if ok = ok && is; ok && len(texts) < maxListenTasks && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, ok
}

// tellTask tells a client how a task is, and each time when it is otherwise, until the
// task has ended.
func (h *Host) tellTask(ctx context.Context, p peerInfo, id string, subscription any) {
	ended := make(chan struct{})
	go func() { // ends with the task, or with ctx
		defer close(ended)
		_, _ = h.cfg.Jobs.Wait(ctx, p.who.Owner, id)
	}()
	for last := ""; ; {
		j, err := h.task(ctx, p, id)
		if err != nil {
			return
		}
		var news <-chan struct{}
		if k := h.taskCalls.of(j); k != nil {
			news = k.change()
		}
		task, err := h.detailed(ctx, p, j)
		if err != nil {
			return
		}
		if is := task.String(); is != last {
			last = is
			task = mcp.Without(task, "resultType").With("_meta", mcp.MustJSON(map[string]any{mcp.MetaSubscription: subscription}))
			if p.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, methodTaskChanged, task.Raw())) != nil {
				return
			}
		}
		if j.Terminal() {
			return
		}
		select {
		case <-news:
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}
