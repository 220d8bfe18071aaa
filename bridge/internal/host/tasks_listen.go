package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// Clients without a session hear of their tasks with subscriptions/listen (ext-tasks,
// "Notifications").

const methodTaskChanged = "notifications/tasks"

// maxListenTasks bounds the tasks that one stream tells of; others can be asked for.
const maxListenTasks = 100

// tasksToNotify returns the tasks that a client names in its request to listen and may know
// of; nil if it names none.
func (h *Host) tasksToNotify(ctx context.Context, p client, params gate.Doc) (*texts, error) {
	wants := params.Get("notifications").Get("taskIds")
	if wants.IsZero() || !h.OffersTasks() {
		return nil, nil
	}
	if !declaresTasks(params.Get("_meta")) {
		return nil, lacksTasks()
	}
	ids, ok := textsOf(wants)
	if !ok {
		return nil, errors.New("invalid parameters: taskIds is no list of strings")
	}
	p.stateless = true
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, err := h.task(ctx, p, id)
		return err != nil
	})
	return &ids, nil
}

// notifyTasks tells a client of tasks until stop is called.
func (h *Host) notifyTasks(ctx context.Context, p client, ids *texts, l *listenRequest) (stop func()) {
	if ids == nil {
		return func() {}
	}
	p.stateless = true
	ctx, cancel := context.WithCancel(ctx)
	var told sync.WaitGroup
	for _, id := range *ids {
		told.Go(func() { h.notifyTask(ctx, p, id, l) })
	}
	return func() {
		cancel()
		told.Wait()
	}
}

// textsOf reads a list of strings, each once, of which as many count as are told of.
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
func (h *Host) notifyTask(ctx context.Context, p client, id string, l *listenRequest) {
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
			news = k.Change()
		}
		task, err := h.detailed(ctx, p, j)
		if err != nil {
			return
		}
		if is := task.String(); is != last {
			last = is
			meta := append(append([]byte(`{"`+mcp.MetaSubscription+`":`), l.id.Raw()...), '}')
			p.channel.notify(ctx, methodTaskChanged, mcp.Without(task, "resultType").With("_meta", meta))
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
