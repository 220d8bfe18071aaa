package agents

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/provenance"
	"github.com/wasmgate/wasmgate/internal/step"
)

// note is a call of this gateway that an agent is about to make.
type note struct {
	tool, digest string
	unnamed      bool // no id comes with the call itself
	at           time.Time
}

// announce keeps that an agent is about to call this gateway.
func (a *Agents) announce(s *session, e event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.notes, func(_ string, n note) bool { return now.Sub(n.at) > noteTime })
	if len(s.notes) >= maxNotes {
		return errors.New("too many calls are announced that were never made")
	}
	s.wrote(e.input)
	s.notes[e.call] = note{tool: e.ours, digest: e.input.Digest(), unnamed: nameless[s.agent], at: now}
	return nil
}

// made reports whether this gateway was called as it was announced. It was not if the agent
// has another server of the same name, such as one that a project brings.
func (a *Agents) made(s *session, e event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := e.call
	if e.unnamed {
		id = s.noteOf(e.ours, e.input.Digest())
	}
	if n, waits := s.notes[id]; !waits || n.tool != e.ours {
		return true
	}
	a.cfg.Log.Warn("an agent was to call a tool of this gateway, and something else has carried it out", "agent", s.agent, "session", s.key.ID, "tool", e.tool)
	return false
}

// noteOf returns by what id a call was announced that has none; "" if it was not.
func (s *session) noteOf(tool, digest string) string {
	for id, n := range s.notes {
		if n.tool == tool && n.digest == digest {
			return id
		}
	}
	return ""
}

// The members of a call's _meta in which agents send their id of it. Claude Code 2.1 and
// Codex 0.169 do, as tried.
var idMembers = []string{"claudecode/toolUseId", "callId"}

// Join puts a call of an MCP client into the session of the agent that announced it, by the
// agent's id of the call, or else by its tool and arguments. A call in an MCP session of which
// other calls were announced, and which itself was not, takes part in what the agents of
// those have read, and they in what it brings: that is what after does, once the call is over.
func (a *Agents) Join(ctx context.Context, c *gate.Call) (after func(), err error) {
	after = func() {}
	a.mu.Lock()
	if len(a.rules) == 0 {
		a.mu.Unlock()
		return after, nil
	}
	s := a.announced(c)
	with := slices.Collect(maps.Keys(a.joined[c.Session]))
	first := s != nil && s.key != c.Session && !a.joined[c.Session][s]
	if first {
		if a.joined[c.Session] == nil {
			a.joined[c.Session] = make(map[*session]bool)
		}
		a.joined[c.Session][s] = true
	}
	var barred error
	if s == nil {
		barred = a.barred(c)
	}
	a.mu.Unlock()
	client := c.Session
	switch {
	case s != nil:
		c.Session = s.key
		if first {
			return after, a.share(ctx, c, client, s.key)
		}
	case barred != nil:
		c.Refused = barred
	default:
		for _, one := range with {
			if err := a.share(ctx, c, one.key, client); err != nil {
				return after, err
			}
		}
		after = func() {
			for _, one := range with {
				if err := a.share(context.WithoutCancel(ctx), c, client, one.key); err != nil {
					a.cfg.Log.Error("an agent's session has not learned what its client has read", "session", one.key.ID, "error", err)
				}
			}
		}
	}
	return after, nil
}

// announced returns the session in which a call was announced, once; nil if it was not, or if
// more than one agent announced such a call without an id. Agents.mu is held.
func (a *Agents) announced(c *gate.Call) *session {
	if c.Action != gate.CallTool {
		return nil
	}
	id := ""
	for _, member := range idMembers {
		if text := c.Meta.Get(member).Text(); text != "" {
			id = text
		}
	}
	digest := c.Args.Digest()
	var found *session
	var at string
	for _, s := range a.sessions {
		if s.owner != c.Who.Owner {
			continue
		}
		for its, n := range s.notes {
			if n.tool != c.Name || n.digest != digest || time.Since(n.at) > noteTime || its != id && !n.unnamed {
				continue
			}
			if found != nil && found != s {
				return nil
			}
			found, at = s, its
		}
	}
	if found != nil {
		delete(found.notes, at)
	}
	return found
}

// barred returns why a call that no hook has announced is refused; nil if it is not.
func (a *Agents) barred(c *gate.Call) error {
	if c.Action != gate.CallTool {
		return nil
	}
	for agent, r := range a.rules {
		if r.RequireHook && c.ClientName == clientNames[agent] {
			return &gate.Refusal{Step: step.Authorize, Reason: "no hook of " + agent + " has announced the call: `wasmgate hook doctor " + agent + "` says why"}
		}
	}
	return nil
}

// share gives one session the labels of another, for the client of a call.
func (a *Agents) share(ctx context.Context, c *gate.Call, from, to gate.SessionKey) error {
	s, err := a.cfg.View(ctx, from)
	if err != nil || len(s.Labels) == 0 && !s.Top {
		return err
	}
	labels := s.Labels
	if s.Top {
		labels = labels.Join(gate.NewLabels(provenance.Private, provenance.Untrusted))
	}
	return a.cfg.Learn(ctx, to, gate.Lesson{Call: gate.NewID(), Program: c.Program(), Connection: to == c.Audience(), Labels: labels})
}

// Joined returns the sessions of agents that have to learn what an MCP session fetches
// beside calls.
func (a *Agents) Joined(k gate.SessionKey) (keys []gate.SessionKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := range a.joined[k] {
		keys = append(keys, s.key)
	}
	return keys
}

// Left is told that an MCP session has ended.
func (a *Agents) Left(k gate.SessionKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.joined, k)
}
