package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// Clients without a session hear of their tasks with subscriptions/listen (ext-tasks,
// "Notifications").

const methodTaskChanged = "notifications/tasks"

// maxListenTasks bounds the tasks that one stream tells of; others can be asked for.
const maxListenTasks = 100

// tasksToNotify returns the tasks that a client names in its request to listen and may know
// of; nil if it names none.
func (t *tasks) tasksToNotify(ctx context.Context, p sessions.Client, params gate.Doc) (*texts, error) {
	wants := params.Get("notifications").Get("taskIds")
	if wants.IsZero() || !t.OffersTasks() {
		return nil, nil
	}
	if !message.DeclaresTasks(params.Get("_meta")) {
		return nil, message.LacksTasks()
	}
	ids, ok := textsOf(wants)
	if !ok {
		return nil, errors.New("invalid parameters: taskIds is not a list of strings")
	}
	p.Stateless = true
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, err := t.task(ctx, p, id)
		return err != nil
	})
	return &ids, nil
}

// notifyTasks tells a client of tasks until stop is called.
func (t *tasks) notifyTasks(ctx context.Context, p sessions.Client, ids *texts, l *listenRequest) (stop func()) {
	if ids == nil {
		return func() {}
	}
	p.Stateless = true
	ctx, cancel := context.WithCancel(ctx)
	var told sync.WaitGroup
	for _, id := range *ids {
		told.Go(func() { t.notifyTask(ctx, p, id, l) })
	}
	return func() {
		cancel()
		told.Wait()
	}
}

// textsOf reads a list of strings, each once, and returns at most maxListenTasks of them.
func textsOf(list gate.Doc) (all texts, ok bool) {
	all = texts{}
	for one := range list.Elements() {
		if one.Kind() != doc.String {
			return nil, false
		}
		if text := one.Text(); len(all) < maxListenTasks && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all, list.Kind() == doc.Array
}

// notifyTask tells a client how a task is, and each time when it is otherwise, until the
// task has ended.
func (t *tasks) notifyTask(ctx context.Context, p sessions.Client, id string, l *listenRequest) {
	ended := make(chan struct{})
	go func() { // ends with the task, or with ctx
		defer close(ended)
		_, _ = t.cfg.Jobs.Wait(ctx, p.Who.Owner, id)
	}()
	for last := ""; ; {
		j, err := t.task(ctx, p, id)
		if err != nil {
			return
		}
		var news <-chan struct{}
		if k := t.taskCalls.of(j); k != nil {
			news = k.Change()
		}
		task, err := t.detailed(ctx, p, j)
		if err != nil {
			return
		}
		if is := task.String(); is != last {
			last = is
			meta := append(append([]byte(`{"`+mcp.MetaSubscription+`":`), l.id.Raw()...), '}')
			p.Channel.Notify(ctx, methodTaskChanged, mcp.Without(task, "resultType").With("_meta", meta))
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

// texts are strings; the list may be empty.
type texts []string
