package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A check tries one thing on a gateway.
type check struct {
	name, title string
	run         func(context.Context, *target) (Verdict, string, error)
}

// checks are all of them. The one that changes a definition is the last: what
// it leaves behind may hide the tool.
var checks = func() []check {
	all := []check{
		{"arguments", "arguments that break the input schema", badArguments},
		{"result", "a result that breaks its output schema", badResult},
		{"duplicate", "a message with a name twice", duplicate},
		{"trailing", "a message with something after it", trailing},
		{"headers", "headers that name another tool than the body", headers},
		{"definition", "hidden text in a definition", definition},
		{"odd", "a definition that strict clients refuse the whole list for", odd},
	}
	for _, a := range attempts {
		all = append(all, check{"text-" + a.name, a.title, inText(a, false)})
	}
	all = append(all,
		check{"error-text", "hidden text in an error", inText(attempts[0], true)},
		check{"secret-in", "a secret in arguments", secretIn},
		check{"uri", "a URI that spells a letter as an escape, past rules about the URI", respelled},
		check{"spelled", "a number that a model has written as a text", spelled},
		check{"apart", "what another client has left in a server on standard input and output", apart},
		check{"numbers", "integers beyond 2^53 in arguments and results", numbers},
		check{"unknown", "members and contents that no revision knows", unknown},
		check{"progress", "notifications in their order, before the result", progress},
		check{"callers", "answers go to who asked", callers},
		check{"neighbour", "calls of one client that keep another one's from being carried out", neighbour},
		check{"app-tool", "a tool for pages, called by a client that shows none", appTool},
		check{"page", "a page of an app that changes under its URI", changedApp},
		check{"module", "a module whose manifest changes", changedModule},
		check{"changed", "a definition that changes under its name", changes("probe_mutable", "all that you know of the user")},
		check{"changed-schema", "a schema that changes under its name", changes("probe_schema", "the user's password")},
	)
	return all
}()

// refused says whether a call with that id stayed away from the liar.
func refused(ctx context.Context, t *target, id string, r reply) (Verdict, string, error) {
	n, _, err := t.arrived(ctx, id, "")
	switch {
	case err != nil:
		return "", "", err
	case n > 0:
		return Through, "it reached the server", nil
	case !r.failed():
		return Through, "the answer is not an error", nil
	}
	return Stopped, "", nil
}

func badArguments(ctx context.Context, t *target) (Verdict, string, error) {
	id := newID()
	r, err := t.call(ctx, "probe_strict", map[string]any{"id": id, "count": "many", "more": true})
	if err != nil {
		return "", "", err
	}
	return refused(ctx, t, id, r)
}

func badResult(ctx context.Context, t *target) (Verdict, string, error) {
	r, err := t.call(ctx, "probe_lie", map[string]any{})
	if err != nil {
		return "", "", err
	}
	if strings.Contains(string(r.result), `"n":"many"`) && !r.failed() {
		return Through, "structuredContent is not what the schema promises", nil
	}
	return Stopped, "", nil
}

// raw sends a call as edit makes it, under a header that names another tool if
// header does.
func raw(ctx context.Context, t *target, edit func(call string) string, header string) (Verdict, string, error) {
	id, tool := newID(), t.names["probe_echo"]
	meta := ""
	if t.revision == WithoutSessions {
		meta = `,"_meta":` + string(encode(envelope(t.revision)))
	}
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"id":%q}%s}}`, t.client.last.Add(1), tool, id, meta)
	if header != "" {
		tool = t.names[header]
	}
	r, err := t.client.post(ctx, []byte(edit(call)), map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": tool})
	if err != nil && !errors.Is(err, errStatus) {
		return "", "", err
	}
	if err != nil {
		r.status = 400
	}
	return refused(ctx, t, id, r)
}

// duplicate names an argument twice: who judges one of them must not send the
// other.
func duplicate(ctx context.Context, t *target) (Verdict, string, error) {
	return raw(ctx, t, func(call string) string { return strings.Replace(call, `{"id":`, `{"id":"other","id":`, 1) }, "")
}

func trailing(ctx context.Context, t *target) (Verdict, string, error) {
	return raw(ctx, t, func(call string) string { return call + "]}" }, "")
}

func headers(ctx context.Context, t *target) (Verdict, string, error) {
	if t.revision == WithSessions {
		return "", "", errors.New("the revision has no such headers")
	}
	return raw(ctx, t, func(call string) string { return call }, "probe_text")
}

func definition(ctx context.Context, t *target) (Verdict, string, error) {
	_, whole, err := t.client.listed(ctx)
	if err != nil {
		return "", "", err
	}
	if attempts[0].through(whole, "") {
		return Through, "tag characters are in the listing", nil
	}
	return Stopped, "", nil
}

func inText(a attempt, failed bool) func(context.Context, *target) (Verdict, string, error) {
	return func(ctx context.Context, t *target) (Verdict, string, error) {
		seed := newID()
		r, err := t.call(ctx, "probe_attack", map[string]any{"name": a.name, "seed": seed, "error": failed})
		if err != nil {
			return "", "", err
		}
		if r.err != nil || r.result == nil {
			return Stopped, "the call failed", nil
		}
		got := r.texts()
		if a.members {
			got = r.plain()
		}
		if a.through(got, a.text(seed)) {
			return Through, "it is in the result", nil
		}
		return Stopped, "", nil
	}
}

func secretIn(ctx context.Context, t *target) (Verdict, string, error) {
	id := newID()
	s := secret(id)
	if _, err := t.call(ctx, "probe_echo", map[string]any{"id": id, "note": "use " + s}); err != nil {
		return "", "", err
	}
	_, found, err := t.arrived(ctx, id, s)
	switch {
	case err != nil:
		return "", "", err
	case found:
		return Through, "the server got it", nil
	}
	return Stopped, "", nil
}

// odd looks for definitions, one is enough, that cost a client of the TypeScript SDK all tools.
func odd(ctx context.Context, t *target) (Verdict, string, error) {
	_, whole, err := t.client.listed(ctx)
	switch {
	case err != nil:
		return "", "", err
	case strings.Contains(whole, `"type":["object","null"]`) || strings.Contains(whole, `"outputSchema":{"type":"array"}`):
		return Through, "it is in the listing", nil
	}
	return Stopped, "", nil
}

// respelled reads a resource by two spellings of one URI (RFC 3986, section 6.2.2.2).
func respelled(ctx context.Context, t *target) (Verdict, string, error) {
	id := newID()
	read := func(uri string) (n int, err error) {
		if _, err = t.client.ask(ctx, "resources/read", map[string]any{"uri": uri}); err == nil {
			n, _, err = t.arrived(ctx, uri, "")
		}
		return n, err
	}
	plain, err := read(resources + "private-" + id)
	switch {
	case err != nil:
		return "", "", err
	case plain == 0:
		return "", "", errors.New("the gateway does not allow the resources of the probe's server")
	}
	escaped, err := read(resources + "%70rivate-" + id)
	switch {
	case err != nil:
		return "", "", err
	case escaped > 0:
		return Through, "the server got it as it was spelled", nil
	}
	return Stopped, "", nil
}

func spelled(ctx context.Context, t *target) (Verdict, string, error) {
	id := newID()
	if _, err := t.call(ctx, "probe_strict", map[string]any{"id": id, "count": "2"}); err != nil {
		return "", "", err
	}
	n, as, err := t.arrived(ctx, id, `"count":"2"`)
	switch {
	case err != nil:
		return "", "", err
	case n == 0:
		return Lost, "the call was refused", nil
	case as:
		return Through, "the server got a text", nil
	}
	return Kept, "", nil
}

func apart(ctx context.Context, t *target) (Verdict, string, error) {
	if t.revision == WithoutSessions {
		return "", "", errors.New("without sessions clients are told apart by who they are alone")
	}
	id := newID()
	if _, err := t.call(ctx, "probe_echo", map[string]any{"id": id}); err != nil {
		return "", "", err
	}
	other, err := t.connect(ctx)
	if err != nil {
		return "", "", err
	}
	mine := t.client
	t.client = other
	n, _, err := t.arrived(ctx, id, "")
	t.client = mine
	switch {
	case err != nil:
		return "", "", err
	case !t.stdio:
		return "", "", errors.New("the probe's server is not on standard input and output")
	case n > 0:
		return Through, "the server knows of the other's call", nil
	}
	return Stopped, "", nil
}

// beyond is more than a float64 holds exactly.
const beyond = "12345678901234567890"

func numbers(ctx context.Context, t *target) (Verdict, string, error) {
	id := newID()
	r, err := t.call(ctx, "probe_echo", map[string]any{"id": id, "n": json.RawMessage(beyond)})
	if err != nil {
		return "", "", err
	}
	var res struct {
		StructuredContent struct{ N json.RawMessage }
	}
	_ = json.Unmarshal(r.result, &res)
	_, there, err := t.arrived(ctx, id, beyond)
	switch {
	case err != nil:
		return "", "", err
	case !there:
		return Lost, "the server got another number", nil
	case string(res.StructuredContent.N) != beyond:
		return Lost, fmt.Sprintf("the client got %s", res.StructuredContent.N), nil
	}
	return Kept, "", nil
}

func unknown(ctx context.Context, t *target) (Verdict, string, error) {
	r, err := t.call(ctx, "probe_echo", map[string]any{"id": newID()})
	if err != nil {
		return "", "", err
	}
	var res struct {
		Content []struct {
			Type string
			N    json.RawMessage
		}
		Future struct{ N json.RawMessage } `json:"x-probe"`
	}
	_ = json.Unmarshal(r.result, &res)
	_, whole, err := t.client.listed(ctx)
	switch {
	case err != nil:
		return "", "", err
	case string(res.Future.N) != beyond:
		return Lost, "a member of the result", nil
	case len(res.Content) < 2 || res.Content[1].Type != "x-probe":
		return Lost, "a content of a new type", nil
	case !strings.Contains(whole, "x-probe"):
		return Lost, "a member of a definition", nil
	}
	return Kept, "", nil
}

func progress(ctx context.Context, t *target) (Verdict, string, error) {
	name := t.names["probe_progress"]
	if name == "" {
		return "", "", errHidden
	}
	token := newID()
	r, err := t.client.ask(ctx, "tools/call", map[string]any{"name": name, "arguments": map[string]any{}, "_meta": map[string]any{"progressToken": token}})
	if err != nil {
		return "", "", err
	}
	var got []int
	for _, b := range r.before {
		var n struct {
			Method string
			Params struct {
				ProgressToken any
				Progress      int
			}
		}
		if json.Unmarshal(b, &n) == nil && n.Method == "notifications/progress" && n.Params.ProgressToken == token {
			got = append(got, n.Params.Progress)
		}
	}
	switch {
	case len(got) != steps:
		return Lost, fmt.Sprintf("%d of %d came before the result", len(got), steps), nil
	case !slices.IsSorted(got):
		return Lost, fmt.Sprintf("they came as %v", got), nil
	}
	return Kept, "", nil
}

// crowd is how many callers ask at once, and rounds how often each does.
const crowd, rounds = 8, 25

func callers(ctx context.Context, t *target) (Verdict, string, error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	mixed, failed := 0, error(nil)
	for range crowd {
		wg.Go(func() {
			c, err := t.connect(ctx)
			for range rounds {
				if err != nil {
					break
				}
				mine := newID()
				var r reply
				if r, err = c.call(ctx, t.names["probe_text"], map[string]any{"text": mine}); err == nil && !r.failed() && r.texts() != mine {
					mu.Lock()
					mixed++
					mu.Unlock()
				}
			}
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	switch {
	case mixed > 0:
		return Through, fmt.Sprintf("%d of %d answers were another's", mixed, crowd*rounds), nil
	case failed != nil:
		return "", "", failed
	}
	return Stopped, "", nil
}

// neighbour tries crowded until a call does not wait: on a busy machine one may be late by itself, but
// not each time.
func neighbour(ctx context.Context, t *target) (v Verdict, seen string, err error) {
	if t.revision == WithoutSessions {
		return "", "", errors.New("without sessions clients are told apart by who they are alone")
	}
	for range 5 {
		if v, seen, err = crowded(ctx, t); seen != waited {
			break
		}
	}
	return v, seen, err
}

const waited = "the call waited until the others had ended"

// crowded has two sessions make as many calls that wait as usual gateways carry out at once, and
// makes one call of a third session.
func crowded(ctx context.Context, t *target) (Verdict, string, error) {
	name, own := t.names["probe_wait"], t.names["probe_text"]
	if name == "" || own == "" {
		return "", "", errHidden
	}
	var calls sync.WaitGroup
	defer calls.Wait() // for the checks that follow
	var ended atomic.Int64
	for range 2 {
		c, err := t.connect(ctx)
		if err != nil {
			return "", "", err
		}
		for range neighbours / 2 {
			calls.Go(func() {
				_, _ = c.call(ctx, name, map[string]any{}) // some are refused
				ended.Add(1)
			})
		}
	}
	time.Sleep(settle)
	c, err := t.connect(ctx)
	if err != nil {
		return "", "", err
	}
	r, err := c.call(ctx, own, map[string]any{"text": "mine"})
	switch {
	case err != nil:
		return "", "", err
	case r.failed():
		return Through, "the call was refused", nil
	case ended.Load() == neighbours:
		return Through, waited, nil
	}
	return Stopped, "", nil
}

// neighbours is how many calls of another client wait.
const neighbours = 64

// changes returns a check of a tool whose definition gets to have some words.
func changes(tool, words string) func(context.Context, *target) (Verdict, string, error) {
	return func(ctx context.Context, t *target) (Verdict, string, error) { return changed(ctx, t, tool, words) }
}

func changed(ctx context.Context, t *target, tool, words string) (Verdict, string, error) {
	name := t.names[tool]
	if name == "" {
		return Stopped, "the tool is not offered any more", nil
	}
	back, err := t.change(ctx, false)
	if err != nil {
		return "", "", err
	}
	defer back()
	names, whole, err := t.client.listed(ctx)
	if err != nil {
		return "", "", err
	}
	if strings.Contains(whole, words) {
		return Through, "the new definition is listed", nil
	}
	id := newID()
	r, err := t.client.call(ctx, name, map[string]any{"id": id})
	if err != nil {
		return "", "", err
	}
	if n, _, err := t.arrived(ctx, id, ""); err != nil || n > 0 && !r.failed() {
		return Through, "the changed tool can be called", err
	}
	if slices.Contains(names, name) {
		return Stopped, "it is listed and not callable", nil
	}
	return Stopped, "", nil
}

// change has the liar change its tools and its page, or its module, and waits until the gateway
// can have seen it. Back has it be as it was, for the next check.
func (t *target) change(ctx context.Context, module bool) (back func(), err error) {
	args := map[string]any{"module": module}
	r, err := t.call(ctx, "probe_change", args)
	if err == nil && r.failed() {
		err = fmt.Errorf("probe_change: %s", r.texts())
	}
	if err != nil {
		return nil, err
	}
	return func() { _, _ = t.call(context.WithoutCancel(ctx), "probe_change", args) }, wait(ctx)
}

func wait(ctx context.Context) error {
	select {
	case <-time.After(settle):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// appTool calls a tool that is only for the pages of its server.
func appTool(ctx context.Context, t *target) (Verdict, string, error) {
	names, _, err := t.client.listed(ctx)
	if err != nil {
		return "", "", err
	}
	name := strings.TrimSuffix(t.names["probe_echo"], "probe_echo") + "probe_hidden"
	if slices.Contains(names, name) {
		return Through, "it is listed", nil
	}
	id := newID()
	r, err := t.client.call(ctx, name, map[string]any{"id": id})
	if err != nil {
		return "", "", err
	}
	return refused(ctx, t, id, r)
}

// changedApp reads the page of the liar's app, as a host that shows it, before and after it changes.
func changedApp(ctx context.Context, t *target) (Verdict, string, error) {
	host, err := t.dial(ctx, true)
	if err != nil {
		return "", "", err
	}
	shows := func(page string) (bool, error) {
		r, err := host.ask(ctx, "resources/read", map[string]any{"uri": pageURI})
		return strings.Contains(r.plain(), page), err
	}
	before, err := shows(approvedPage)
	if err != nil {
		return "", "", err
	}
	back, err := t.change(ctx, false)
	if err != nil {
		return "", "", err
	}
	defer back()
	switch after, err := shows(changedPage); {
	case err != nil:
		return "", "", err
	case after:
		return Through, "the new page is shown", nil
	case !before:
		return Stopped, "no page is shown before it is approved", nil
	}
	return Stopped, "", nil
}

// reads is how often a gateway is asked whether it has read a module's changed manifest, and returns
// how often whether it has read again the one from before, which the next revision needs.
const reads, returns = 40, 240

// changedModule calls the module of the probe before and after its manifest changes.
func changedModule(ctx context.Context, t *target) (Verdict, string, error) {
	if t.names["probe_module"] == "" {
		return "", "", errors.New("the gateway does not run the module that `wasmgate probe serve --module` writes")
	}
	var r reply
	runs := func(args string) (bool, error) {
		var err error
		r, err = t.call(ctx, "probe_module", map[string]any{})
		return strings.Contains(r.plain(), args), err
	}
	if ok, err := runs(approvedArgs); err != nil || !ok {
		return "", "", errors.Join(err, fmt.Errorf("the module does not run: %s", r.texts()))
	}
	back, err := t.change(ctx, true)
	if err != nil {
		return "", "", err
	}
	defer func() {
		back()
		ctx := context.WithoutCancel(ctx) // the time of the check bounds what it finds, not this
		for range returns {
			if ok, err := runs(approvedArgs); ok || err != nil || wait(ctx) != nil {
				return
			}
		}
	}()
	for range reads {
		switch changed, err := runs(changedArgs); {
		case err != nil:
			return "", "", err
		case changed:
			return Through, "it ran with the arguments of the new manifest", nil
		case r.failed():
			return Stopped, "", nil
		}
		if err := wait(ctx); err != nil {
			return "", "", err
		}
	}
	return Stopped, "it runs as it was approved", nil
}
