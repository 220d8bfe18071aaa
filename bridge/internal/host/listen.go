package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/meta"
	"github.com/wasmgate/wasmgate/internal/step"
)

// Clients hear what servers say outside of calls: that a resource has changed which they
// have subscribed to, and, of a server that has a connection for them alone, log
// messages. Who has a session hears it there; others with subscriptions/listen
// (MCP 2026-07-28, basic/patterns).

// listener returns the client of a session, which hears from now on what it will ask to
// hear, until its session ends.
func (h *Host) listener(s *session) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		s.listener = &listener{key: s.client.key(), out: &s.out, to: make(map[string]string), ended: s.ended}
		if !s.ended {
			h.listeners.mu.Lock()
			defer h.listeners.mu.Unlock()
			h.listeners.by[s.listener.key] = s.listener
		}
	}
	return s.listener
}

// forget ends what a client has subscribed to, for its session has ended.
func (h *Host) forget(l *listener) {
	h.listeners.mu.Lock()
	delete(h.listeners.by, l.key)
	h.listeners.mu.Unlock()
	_ = h.cfg.SetLevel(context.Background(), l.key, "")
	for uri, call := range l.end() {
		h.release(call, uri)
	}
}

// release ends a subscription.
func (h *Host) release(call, uri string) {
	h.listeners.mu.Lock()
	delete(h.listeners.calls, call)
	h.listeners.mu.Unlock()
	_ = h.cfg.Unsubscribe(context.Background(), call, uri) // whatever the server makes of it, nobody hears
}

// Notify tells clients what a server says outside of calls: it is for [fleet.Fleet.OnNotice]. It does
// not block.
func (h *Host) Notify(n mcp.Notice) {
	all := &h.listeners
	all.mu.Lock()
	defer all.mu.Unlock()
	if n.Method == mcp.MethodLog {
		if l := all.by[n.Session]; l != nil {
			l.out.put(n)
		}
		return
	}
	told := make(map[*outbox]bool)
	for _, call := range n.Subscribers {
		if out := all.calls[call]; out != nil && !told[out] {
			told[out] = true
			out.put(n)
		}
	}
}

// subscribes reports whether a method is one by which a client with a session says what
// it wants to hear.
func subscribes(method string) bool {
	return method == mcp.MethodSetLevel || method == string(gate.Subscribe) || method == mcp.MethodUnsubscribe
}

// setLevel answers logging/setLevel (MCP 2025-11-25, server/utilities/logging).
func (h *Host) setLevel(ctx context.Context, p client, params gate.Doc) (gate.Doc, error) {
	level := params.Get("level").Text()
	if p.listener == nil || level == "" || h.cfg.SetLevel(ctx, p.key(), level) != nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid parameters: level is none of %q", mcp.Severities[1:])}
	}
	return gate.MustDoc("{}"), nil
}

// subscribe answers resources/subscribe.
func (h *Host) subscribe(ctx context.Context, p client, params gate.Doc) (gate.Doc, error) {
	uri, err := checkUse(gate.Subscribe, params)
	c := p.call(gate.Subscribe, uri)
	c.Refused, c.Meta = err, params.Get("_meta")
	c.Client = p.reached(ctx) // a server tells each client's connection of what was done over it
	if p.listener == nil || p.listener.full() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("a session subscribes to at most %d resources", maxSubscribed)}
	}
	res, err := h.subscribeTo(ctx, c, p.listener.out)
	if err != nil {
		return gate.Doc{}, p.useError(ctx, &c, err)
	}
	if res.IsError {
		return gate.Doc{}, serverError(res.Doc)
	}
	before, ok := p.listener.subscribe(uri, c.ID)
	if !ok {
		before = c.ID
	}
	if before != "" {
		h.release(before, uri)
	}
	return p.complete(res.Doc), nil
}

// subscribeTo carries out the call of a subscription, whose updates out gets.
func (h *Host) subscribeTo(ctx context.Context, c gate.Call, out *outbox) (gate.Result, error) {
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
func (h *Host) unsubscribe(p client, params gate.Doc) (gate.Doc, error) {
	uri, err := checkUse(gate.Subscribe, params)
	if err != nil || p.listener == nil {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: no uri"}
	}
	if call := p.listener.unsubscribe(uri); call != "" {
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

// texts are strings, of which there may be none.
type texts []string

func (w wanted) any() bool {
	return w.Tools || w.Prompts || w.Resources || len(w.Updates) > 0 || w.Tasks != nil && len(*w.Tasks) > 0
}

// wantedOf reads the notifications of a request to listen.
func wantedOf(notifications gate.Doc) (w wanted, err error) {
	if notifications.IsZero() || notifications.Kind() == doc.Null {
		return w, errors.New("invalid params: missing required 'notifications' field")
	}
	if notifications.Kind() != doc.Object || json.Unmarshal(mcp.Without(notifications, "taskIds").Raw(), &w) != nil {
		return w, errors.New("invalid parameters: notifications is no object of switches and of lists of strings")
	}
	return w, nil
}

// listen tells a client of what it names in its request until the request ends.
func (h *Host) listen(ctx context.Context, p client, m message) (gate.Doc, error) {
	want, err := wantedOf(m.params.Get("notifications"))
	if err == nil {
		want.Tasks, err = h.tasksToNotify(ctx, p, m.params)
	}
	if err != nil {
		if rpc, ok := errors.AsType[*mcp.Error](err); ok {
			return gate.Doc{}, rpc
		}
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidParams, Message: err.Error()}
	}
	room, end := context.WithCancel(ctx) // ends for a stream of another client, too
	defer end()
	leave, ok := h.clients.streams.Enter(p.key(), end)
	if !ok {
		return gate.Doc{}, h.tooMany()
	}
	defer leave()
	if p.session != nil {
		if !p.session.enter() {
			return gate.Doc{}, h.tooMany()
		}
		defer p.session.leave()
	}
	l := &listenRequest{id: m.id, lists: map[string]bool{toolsChanged: want.Tools, promptsChanged: want.Prompts, resourcesChanged: want.Resources}}
	l.out = outbox{clean: h.cfg.Clean, sending: true, send: func(ctx context.Context, method string, params gate.Doc) {
		p.channel.notify(ctx, method, l.stamped(params))
	}}
	var unsubscribe func()
	want.Updates, unsubscribe = h.subscribeAll(ctx, p, want.Updates, &l.out)
	defer unsubscribe()
	h.listeners.add(l)
	defer h.listeners.remove(l)
	p.channel.notify(ctx, mcp.MethodAcknowledged, l.stamped(gate.MustDoc("{}").With("notifications", mcp.MustJSON(want))))
	go l.out.run() // ends when nothing waits
	defer h.notifyTasks(ctx, p, want.Tasks, l)()
	if want.any() {
		select {
		case <-room.Done():
		case <-h.clients.drained.Done():
		}
	}
	meta := append(append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaServer+`":`), h.info()...), `,"`+mcp.MetaSubscription+`":`...)
	return gate.ParseDoc(append(append(meta, l.id.Raw()...), "}}"...))
}

// tooMany refuses one more stream of notifications.
func (h *Host) tooMany() error {
	no := &gate.Refusal{Step: step.Busy, Name: mcp.MethodListen, Reason: "too many streams are open; end one first"}
	return &mcp.Error{Code: codeRefused, Message: Public(no), Data: mcp.MustJSON(map[string]any{meta.Refusal: refusalOf("", no)})}
}

// subscribeAll subscribes to resources for one request. It returns those that it may, and
// what ends it.
func (h *Host) subscribeAll(ctx context.Context, p client, want []string, out *outbox) (allowed []string, end func()) {
	if !h.offering(ctx, 0).Updates {
		return nil, func() {}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	calls := make(map[string]string)
	for _, uri := range want[:min(len(want), maxSubscribed)] {
		c := p.call(gate.Subscribe, uri)
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

// gatherTime is how long changes of lists are gathered before clients are told.
const gatherTime = 10 * time.Millisecond

// Changed tells all clients that what they are offered may be other things now.
func (h *Host) Changed() { h.ListsChanged(true, true, true) }

// ListsChanged tells all clients which lists may be others now. It does not wait for that.
func (h *Host) ListsChanged(tools, prompts, resources bool) {
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
func (h *Host) notifyChanges() {
	h.changes.mu.Lock()
	lists := h.changes.lists
	h.changes.lists = nil
	h.changes.mu.Unlock()
	for _, s := range h.clients.sessions.all() {
		if s.wantsLists() {
			s.out.putAll(lists)
		}
	}
	h.listeners.mu.Lock()
	defer h.listeners.mu.Unlock()
	for l := range h.listeners.open {
		l.out.putAll(slices.DeleteFunc(slices.Clone(lists), func(list string) bool { return !l.lists[list] }))
	}
}
