package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// exitDeny is the exit status by which all agents take a call for denied (Claude Code,
// Codex CLI, Gemini CLI: "exit code 2").
const exitDeny = 2

// Hook takes what a hook tells, and returns the answer that the agent understands. It never
// fails: what goes wrong about a call denies it.
func (a *Agents) Hook(ctx context.Context, who *gate.Principal, r options.Hook) (answer options.HookAnswer) {
	name := r.Event.Get("hook_event_name").Text()
	decides := name == "" || kinds[name] == before // what cannot be told from a call may be one
	err := a.hook(ctx, who, r)
	switch {
	case err == nil, r.Observe:
		return options.HookAnswer{}
	case !decides:
		a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "hook", slog.String("agent", r.Agent), slog.Any("error", err))
		return options.HookAnswer{}
	default:
		return deny(r.Agent, err)
	}
}

func (a *Agents) hook(ctx context.Context, who *gate.Principal, r options.Hook) (err error) {
	defer func() {
		if v := recover(); v != nil {
			a.cfg.Log.Error("hook panicked", "agent", r.Agent, "panic", v, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	rules, ok := a.rulesOf(r.Agent)
	if !ok {
		return fmt.Errorf("agent %s is not configured: add `agents: {%s: {}}` to the configuration", r.Agent, r.Agent)
	}
	e, err := read(r.Agent, r.Event, rules, r.Headless)
	err = errors.Join(r.Unreadable, err)
	p := place{who.Owner, r.Agent, e.session}
	switch named := r.Event.Get("hook_event_name").Text() != ""; {
	case err != nil && e.kind == before, e.kind == other && (named || r.Unreadable == nil || p.id == ""):
		return err
	case err != nil:
		return errors.Join(err, a.lost(ctx, p, e))
	}
	s, err := a.session(p)
	if err != nil && (e.kind == after || e.kind == failed) {
		return a.teach(ctx, p, e.tool, result(e))
	}
	if err != nil {
		return err
	}
	switch e.kind {
	case before:
		if e.ours != "" {
			return a.announce(s, e)
		}
		return a.before(ctx, s, who, e, r.Hold)
	case after, failed:
		if e.ours != "" && a.made(s, e) {
			return nil // the gate has learned it
		}
		return a.after(ctx, s, e)
	case prompted:
		return a.prompt(ctx, s, e, rules)
	case stopped:
		return a.stopped(ctx, s, e)
	case ended:
		return a.end(ctx, s)
	}
	return nil
}

// lost has a session learn an event that cannot be read: it may have brought anything, and its
// prompts do not vouch any more. Without the name of the session, all of the agent's learn it. The
// result of a call that this gateway got needs no lesson.
func (a *Agents) lost(ctx context.Context, p place, e event) (err error) {
	learn := make(map[gate.SessionKey]bool)
	if p.id != "" {
		learn[a.cfg.Kept(key(p))] = true
		s, err := a.session(p)
		if err == nil && (e.kind == after || e.kind == failed) && e.ours != "" && a.made(s, e) {
			return nil
		}
	}
	a.mu.Lock()
	var waits *running
	for at, s := range a.sessions {
		if at == p || p.id == "" && at.owner == p.owner && at.agent == p.agent {
			s.tooMany = true
			learn[s.key] = true
		}
		if at == p {
			waits = s.calls[e.call]
		}
	}
	a.mu.Unlock()
	for k := range learn {
		l := gate.Lesson{Call: gate.NewID(), Labels: gate.NewLabels(provenance.Private, provenance.Untrusted), Top: true}
		err = errors.Join(err, a.cfg.Learn(ctx, k, l))
	}
	if waits != nil && (e.kind == after || e.kind == failed) {
		err = errors.Join(err, waits.give(ctx, gate.Result{Doc: result(event{kind: failed})}))
	}
	return err
}

// deny is the answer that denies a call, in the form that the agent obeys. Of Codex nothing
// may be in it that it does not know, and the reason may not be empty.
func deny(agent string, err error) options.HookAnswer {
	reason := "wasmgate: " + said(err)
	switch agent {
	case ClaudeCode, Codex:
		out := map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
		}}
		if remedy := remedy(err); remedy != "" && agent == ClaudeCode {
			out["systemMessage"] = "wasmgate: " + codes.Advice(gate.Code(err)) + remedy // which the person reads, and the model does not
		}
		return options.HookAnswer{Stdout: quoted(out)}
	case GeminiCLI:
		return options.HookAnswer{Stdout: quoted(map[string]any{"decision": "deny", "reason": reason})}
	default:
		return options.HookAnswer{Stderr: reason, Exit: exitDeny}
	}
}

// said is what an agent may read of an error.
func said(err error) string {
	if r, ok := errors.AsType[*gate.Refusal](err); ok {
		return "refused: " + r.Reason
	}
	return err.Error()
}

func remedy(err error) string {
	if r, ok := errors.AsType[*gate.Refusal](err); ok {
		return r.Remedy
	}
	return ""
}

func quote(s string) string { return quoted(s) }

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // maps and texts marshal
		return `""`
	}
	return string(b)
}
