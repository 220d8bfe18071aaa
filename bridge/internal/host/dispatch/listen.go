package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
)

// Clients hear what servers say outside of calls: that a resource has changed which they have
// subscribed to, and log messages of a server that has a connection only for them. A client with a
// session hears it there; others use subscriptions/listen (MCP 2026-07-28, basic/patterns).

// hearing tells clients what servers say outside of calls.
type hearing struct {
	*backend
	clients   *sessions.Clients
	tasks     *tasks
	listeners listeners
	changes   changes
}

func newHearing(b *backend, all *sessions.Clients, t *tasks) *hearing {
	return &hearing{
		backend: b, clients: all, tasks: t,
		listeners: listeners{by: make(map[gate.SessionKey]*sessions.Listener), calls: make(map[string]*sessions.Outbox), open: make(map[*listenRequest]struct{})},
	}
}

// listener returns the client of a session, which hears from now on what it will ask to
// hear, until its session ends.
func (h *hearing) listener(s *sessions.Session) *sessions.Listener {
	return s.Listening(func(l *sessions.Listener) {
		h.listeners.mu.Lock()
		defer h.listeners.mu.Unlock()
		h.listeners.by[l.Key] = l
	})
}

// forget ends the subscriptions of a client, because its session has ended.
func (h *hearing) forget(l *sessions.Listener) {
	h.listeners.mu.Lock()
	delete(h.listeners.by, l.Key)
	h.listeners.mu.Unlock()
	_ = h.cfg.SetLevel(context.Background(), l.Key, "")
	for uri, call := range l.End() {
		h.release(call, uri)
	}
}

// release ends a subscription.
func (h *hearing) release(call, uri string) {
	h.listeners.mu.Lock()
	delete(h.listeners.calls, call)
	h.listeners.mu.Unlock()
	_ = h.cfg.Unsubscribe(context.Background(), call, uri) // no client listens any more, so an error does not matter
}

// Notify tells clients what a server says outside of calls: it is for [fleet.Sessions.OnNotice]. It does
// not block.
func (h *hearing) Notify(n mcp.Notice) {
	all := &h.listeners
	all.mu.Lock()
	defer all.mu.Unlock()
	if n.Method == mcp.MethodLog {
		if l := all.by[n.Session]; l != nil {
			l.Out.Put(n)
		}
		return
	}
	told := make(map[*sessions.Outbox]bool)
	for _, call := range n.Subscribers {
		if out := all.calls[call]; out != nil && !told[out] {
			told[out] = true
			out.Put(n)
		}
	}
}

// setLevel answers logging/setLevel (MCP 2025-11-25, server/utilities/logging).
func (h *hearing) setLevel(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	level := m.Params.Get("level").Text()
	if p.Listener == nil || level == "" || h.cfg.SetLevel(ctx, p.Key(), level) != nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid parameters: level must be one of %q", mcp.Severities[1:])}
	}
	return gate.MustDoc("{}"), nil
}

// subscribe answers resources/subscribe.
func (h *hearing) subscribe(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	uri, err := message.CheckUse(gate.Subscribe, m.Params)
	c := p.Call(gate.Subscribe, uri)
	c.Refused, c.Meta = err, m.Params.Get("_meta")
	c.Client = p.Reached(ctx) // a server tells each client's connection of what was done over it
	if p.Listener == nil || p.Listener.Full() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("a session subscribes to at most %d resources", sessions.MaxSubscribed)}
	}
	res, err := h.subscribeTo(ctx, c, p.Listener.Out)
	if err != nil {
		return gate.Doc{}, useError(ctx, p, &c, err)
	}
	if res.IsError {
		return gate.Doc{}, message.ServerError(res.Doc)
	}
	before, ok := p.Listener.Subscribe(uri, c.ID)
	if !ok {
		before = c.ID
	}
	if before != "" {
		h.release(before, uri)
	}
	return p.Complete(res.Doc), nil
}

// subscribeTo carries out the call of a subscription, whose updates out gets.
func (h *hearing) subscribeTo(ctx context.Context, c gate.Call, out *sessions.Outbox) (gate.Result, error) {
	h.listeners.mu.Lock()
	h.listeners.calls[c.ID] = out
	h.listeners.mu.Unlock()
	res, err := h.cfg.Do(ctx, c)
	if err != nil || res.IsError {
		h.listeners.mu.Lock()
		delete(h.listeners.calls, c.ID)
		h.listeners.mu.Unlock()
	}
	return res, err
}

// unsubscribe answers resources/unsubscribe. To take back what one has asked for needs
// no permission.
func (h *hearing) unsubscribe(_ context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	uri, err := message.CheckUse(gate.Subscribe, m.Params)
	if err != nil || p.Listener == nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: uri is missing"}
	}
	if call := p.Listener.Unsubscribe(uri); call != "" {
		h.release(call, uri)
	}
	return gate.MustDoc("{}"), nil
}

// wanted is what a client wants to hear, in its words; absent members are not.
type wanted struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	Updates   []string `json:"resourceSubscriptions,omitempty"`
	Tasks     *texts   `json:"taskIds,omitempty"`
}

func (w wanted) any() bool {
	return w.Tools || w.Prompts || w.Resources || len(w.Updates) > 0 || w.Tasks != nil && len(*w.Tasks) > 0
}

// wantedOf reads the notifications of a request to listen.
func wantedOf(notifications gate.Doc) (w wanted, err error) {
	if notifications.IsZero() || notifications.Kind() == doc.Null {
		return w, errors.New("invalid params: missing required 'notifications' field")
	}
	if notifications.Kind() != doc.Object || json.Unmarshal(mcp.Without(notifications, "taskIds").Raw(), &w) != nil {
		return w, errors.New("invalid parameters: notifications is not an object of switches and of lists of strings")
	}
	return w, nil
}

// listen tells a client of what it names in its request until the request ends.
func (h *hearing) listen(ctx context.Context, p sessions.Client, m message.Message) (gate.Doc, error) {
	want, err := wantedOf(m.Params.Get("notifications"))
	if err == nil {
		want.Tasks, err = h.tasks.tasksToNotify(ctx, p, m.Params)
	}
	if err != nil {
		if rpc, ok := errors.AsType[*mcp.Error](err); ok {
			return gate.Doc{}, rpc
		}
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: err.Error()}
	}
	room, end := context.WithCancel(ctx) // ends for a stream of another client, too
	defer end()
	leave, ok := h.clients.Enter(p, end)
	if !ok {
		return gate.Doc{}, h.tooMany()
	}
	defer leave()
	l := &listenRequest{id: m.ID, lists: map[string]bool{toolsChanged: want.Tools, promptsChanged: want.Prompts, resourcesChanged: want.Resources}}
	l.out = sessions.Outbox{Clean: h.cfg.Clean, Send: func(ctx context.Context, method string, params gate.Doc) {
		p.Channel.Notify(ctx, method, l.stamped(params))
	}}
	l.out.Hold()
	var unsubscribe func()
	want.Updates, unsubscribe = h.subscribeAll(ctx, p, want.Updates, &l.out)
	defer unsubscribe()
	h.listeners.add(l)
	defer h.listeners.remove(l)
	p.Channel.Notify(ctx, mcp.MethodAcknowledged, l.stamped(gate.MustDoc("{}").With("notifications", mcp.MustJSON(want))))
	go l.out.Run() // ends when nothing waits
	defer h.tasks.notifyTasks(ctx, p, want.Tasks, l)()
	if want.any() {
		select {
		case <-room.Done():
		case <-h.clients.Drained.Done():
		}
	}
	meta := append(append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaServer+`":`), h.info()...), `,"`+mcp.MetaSubscription+`":`...)
	return gate.ParseDoc(append(append(meta, l.id.Raw()...), "}}"...))
}

// tooMany refuses one more stream of notifications.
func (h *hearing) tooMany() error {
	no := &gate.Refusal{Step: step.Busy, Name: mcp.MethodListen, Reason: "too many streams are open; end one first"}
	return &mcp.Error{Code: message.CodeRefused, Message: message.Public(no), Data: mcp.MustJSON(map[string]any{gate.MetaRefusal: message.RefusalOf("", no)})}
}

// subscribeAll subscribes to resources for one request. It returns those that it may, and
// what ends it.
func (h *hearing) subscribeAll(ctx context.Context, p sessions.Client, want []string, out *sessions.Outbox) (allowed []string, end func()) {
	if !h.offering(ctx, 0).Updates {
		return nil, func() {}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	calls := make(map[string]string)
	for _, uri := range want[:min(len(want), sessions.MaxSubscribed)] {
		c := p.Call(gate.Subscribe, uri)
		res, err := h.subscribeTo(ctx, c, out)
		if err == nil && !res.IsError {
			calls[uri], allowed = c.ID, append(allowed, uri)
		}
	}
	return allowed, func() {
		for uri, call := range calls {
			h.release(call, uri)
		}
	}
}

// The notifications that a list has changed.
const (
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
)

// gatherTime is how long changes of lists are gathered before clients are notified.
const gatherTime = 10 * time.Millisecond

// Changed notifies all clients that what they are offered may have changed.
func (h *hearing) Changed() { h.ListsChanged(true, true, true) }

// ListsChanged tells all clients which lists may be others now. It does not wait for that.
func (h *hearing) ListsChanged(tools, prompts, resources bool) {
	now := h.offering(context.Background(), 0)
	c := &h.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.offered
	c.offered = now
	gathering := len(c.lists) > 0
	for list, changed := range map[string]bool{
		toolsChanged: tools, promptsChanged: prompts && (now.Prompts || before.Prompts), resourcesChanged: resources && (now.Resources || before.Resources),
	} {
		if changed && !slices.Contains(c.lists, list) {
			c.lists = append(c.lists, list)
		}
	}
	if !gathering && len(c.lists) > 0 {
		time.AfterFunc(gatherTime, h.notifyChanges)
	}
}

// notifyChanges tells clients of the changes that were gathered.
func (h *hearing) notifyChanges() {
	h.changes.mu.Lock()
	lists := h.changes.lists
	h.changes.lists = nil
	h.changes.mu.Unlock()
	h.clients.NotifyLists(lists)
	h.listeners.mu.Lock()
	defer h.listeners.mu.Unlock()
	for l := range h.listeners.open {
		l.out.PutAll(slices.DeleteFunc(slices.Clone(lists), func(list string) bool { return !l.lists[list] }))
	}
}
