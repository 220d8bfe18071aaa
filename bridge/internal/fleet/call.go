package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// Lookup implements [gate.Upstream]. A name that is not known may be that of a server which was
// never listed, so that it waits: for the server that it names, or else as a listing does. Of a
// server that has announced changes it waits for the listing.
func (f *Fleet) Lookup(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	if action == actions.AgentCall && f.cfg.Agents != nil {
		return f.cfg.Agents.Lookup(name)
	}
	if action != gate.CallTool {
		return f.lookupFeature(ctx, action, name)
	}
	c := f.catalog.Load()
	t, ok := c.byName[name]
	if !ok {
		f.await(ctx, name)
		t, ok = f.catalog.Load().byName[name]
	} else if e, remote := c.server[t.Name.Server].(*upstream.Endpoint); remote && relisted(ctx, e) {
		t, ok = f.catalog.Load().byName[name]
	}
	if !ok {
		return nil, f.catalog.Load().unknown(action, name)
	}
	return t, nil
}

// lookupFeature is [Fleet.Lookup] of what is no tool.
func (f *Fleet) lookupFeature(ctx context.Context, action gate.Action, name string) (*gate.Tool, error) {
	c := f.catalog.Load()
	t := c.more.lookup(action, name)
	if actions.IsMethod(action) {
		// as the configuration says
	} else if t == nil {
		f.await(ctx, name)
		t = f.catalog.Load().more.lookup(action, name)
	} else if e, remote := c.server[t.Name.Server].(*upstream.Endpoint); remote && relisted(ctx, e) {
		t = f.catalog.Load().more.lookup(action, name)
	}
	if t == nil {
		return nil, f.catalog.Load().unknown(action, name)
	}
	return t, nil
}

// await waits for what an unknown name may be of: the server that it names, while that starts for
// the first time, or else any that was never listed.
func (f *Fleet) await(ctx context.Context, name string) {
	if ctx.Value(settledKey{}) != nil {
		return
	}
	n, err := gate.ParseToolName(name)
	if e, remote := f.catalog.Load().server[n.Server].(*upstream.Endpoint); err == nil && remote {
		ctx, cancel := context.WithTimeout(ctx, longWait)
		defer cancel()
		e.Started(ctx)
		return
	}
	f.settle(ctx)
}

// unknown is the error of a name that is not known, perhaps because its server has never been
// ready.
func (c *catalog) unknown(action gate.Action, name string) error {
	feature := gate.FeatureTool
	if action != gate.CallTool {
		feature = gate.FeaturePrompt
	}
	n, err := gate.ParseToolName(name)
	if e, remote := c.server[n.Server].(*upstream.Endpoint); err == nil && remote {
		if f := e.Unready(); f != nil {
			return &gate.Away{Tool: &gate.Tool{Feature: feature, Name: n, Local: n.Tool, Offered: name}, Err: f}
		}
	}
	return fmt.Errorf("%s %.200q: %w", action, name, gate.ErrUnknown)
}

// relistedWait bounds how long a call waits for the listing that its server has announced.
const relistedWait = 10 * time.Second

// relisted waits for the listing that a server has announced, and reports whether there was
// one to wait for.
func relisted(ctx context.Context, e *upstream.Endpoint) bool {
	if !e.Announced() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, relistedWait)
	defer cancel()
	e.Relisted(ctx)
	return true
}

// Invoke implements [gate.Upstream].
func (f *Fleet) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, ok := p.Open()
	if !ok {
		return gate.Result{}, upstream.ErrNoPermit
	}
	switch {
	case tool.Feature == gate.FeatureAgent:
		return f.cfg.Agents.Invoke(ctx, p)
	case f.cfg.Player.Answers(tool):
		return f.cfg.Player.Answer(ctx, c, p)
	}
	if tool.Page != nil && c.Action == gate.ReadResource { // the approved page is the one that is shown
		return gate.Result{Doc: apps.Answer(tool.Page.Content, c.Name)}, nil
	}
	if res, answered := invokeSkill(c, tool); answered {
		return res, nil
	}
	for range maxReplaced {
		up, ok := f.catalog.Load().server[tool.Name.Server]
		if !ok {
			return gate.Result{}, &fault.Fault{Kind: fault.NotConnected, Server: tool.Name.Server, Doing: "call", Err: &fault.NotConnectedError{Words: "the server was removed"}}
		}
		e, remote := up.(*upstream.Endpoint)
		if !remote {
			return up.Invoke(ctx, p)
		}
		if e.Enter() {
			defer e.Leave()
			e.Started(ctx) // what is called was listed in an earlier run; the call's own time begins then
			if err := e.Offers(tool); err != nil {
				return gate.Result{}, err
			}
			res, err := e.Invoke(ctx, p)
			if err != nil {
				return res, err
			}
			if tool.Skill != nil && !res.IsError {
				res.Doc, err = verified(c, tool, e, res.Doc)
				return res, err
			}
			res.Doc, err = f.catalog.Load().more.translated(tool.Name.Server, res.Doc, c.Renders)
			return res, err
		}
	}
	return gate.Result{}, &fault.Fault{Kind: fault.NotConnected, Server: tool.Name.Server, Doing: "call", Err: &fault.NotConnectedError{Words: "the server is being replaced again and again"}}
}

// maxReplaced is how many replacements of its server a call follows. One takes the
// time that connecting takes; more than that is a fault.
const maxReplaced = 8

// verified returns what a server answered of a skill as clients get it. If a file is not what the
// skill says, the server is listed again: its skills may have changed.
func verified(c *gate.Call, t *gate.Tool, e *upstream.Endpoint, answer gate.Doc) (gate.Doc, error) {
	switch {
	case c.Action == gate.ReadDirectory:
		return dynamicDirectory(t, answer)
	case t.Skill.Dynamic:
		content := answer.At("/contents/0")
		if doc.Len(answer.Get("contents")) != 1 || content.Get("uri").Text() != t.Local {
			return gate.Doc{}, refusedSkill(c, t, e, "the server answered with a different file")
		}
		return answer.With("contents", []byte(`[`+content.With("uri", mcp.MustJSON(t.Offered)).String()+`]`)), nil
	}
	if _, err := skills.Read(t.Skill.Files[t.File], t.Local, answer); err != nil {
		return gate.Doc{}, refusedSkill(c, t, e, err.Error())
	}
	return skills.Passed(t.Offered, answer), nil
}

func refusedSkill(c *gate.Call, t *gate.Tool, e *upstream.Endpoint, why string) error {
	_ = e.Relist() // without a connection it is listed when there is one
	return &gate.Refusal{Step: step.Sanitize, Call: c.ID, Name: c.Name, Reason: fmt.Sprintf("%s of the skill %s was refused: %s", t.File, t.Skill.Name, why), Invoked: true}
}
