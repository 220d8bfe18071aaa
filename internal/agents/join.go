package agents

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/step"
)

// note is a call of this gateway that an agent is about to make, or has made.
type note struct {
	tool, digest string
	unnamed      bool // no id comes with the call itself
	made         bool // the gateway has got the call
	at           time.Time
}

// over reports whether neither the call nor its result is awaited any more.
func (n note) over(now time.Time) bool {
	if n.made {
		return now.Sub(n.at) > resultTime
	}
	return now.Sub(n.at) > noteTime
}

// announce keeps that an agent is about to call this gateway.
func (a *Agents) announce(s *session, e event) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.notes, func(_ string, n note) bool { return n.over(now) })
	if len(s.notes) >= maxNotes && !s.dropMade() {
		return errors.New("too many calls are announced that were never made")
	}
	s.wrote(e.input)
	s.notes[e.call] = note{tool: e.ours, digest: e.input.Digest(), unnamed: nameless[s.agent], at: now}
	return nil
}

// dropMade drops the oldest note of a call that was made. Its result then counts as another
// server's.
func (s *session) dropMade() bool {
	oldest := ""
	for id, n := range s.notes {
		if n.made && (oldest == "" || n.at.Before(s.notes[oldest].at)) {
			oldest = id
		}
	}
	if oldest == "" {
		return false
	}
	delete(s.notes, oldest)
	return true
}

// made reports whether the result that an agent reports is of a call that this gateway got. It
// is not if the agent has another server of the same name, such as one that a project brings.
func (a *Agents) made(s *session, e event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := e.call
	if e.unnamed {
		id = s.noteOf(e.ours, e.input.Digest())
	}
	n := s.notes[id]
	delete(s.notes, id)
	if n.made && n.tool == e.ours {
		return true
	}
	a.cfg.Log.Warn("an agent reports the result of a call that this gateway never got: another server has the gateway's name", "agent", s.agent, "session", s.key.ID, "tool", e.tool)
	return false
}

// noteOf returns the id under which a call was announced that has none, one that was made
// before others; "" if there is none.
func (s *session) noteOf(tool, digest string) (found string) {
	for id, n := range s.notes {
		if n.tool == tool && n.digest == digest && (found == "" || n.made) {
			found = id
		}
	}
	return found
}

// unmade takes the notes of calls that this gateway never got. Agents.mu is held.
func (s *session) unmade() (all []note) {
	for id, n := range s.notes {
		if !n.made {
			all = append(all, n)
			delete(s.notes, id)
		}
	}
	return all
}

// teachUnmade has a session learn what another server of the gateway's name may have returned,
// since the results of those calls were not reported.
func (a *Agents) teachUnmade(ctx context.Context, s *session, unmade []note) error {
	if len(unmade) == 0 {
		return nil
	}
	a.cfg.Log.Warn("an agent's turn has ended, and calls that it announced for this gateway never came", "agent", s.agent, "session", s.key.ID, "calls", len(unmade))
	return a.cfg.Learn(ctx, s.key, gate.Lesson{Call: gate.NewID(), Labels: gate.NewLabels(provenance.Untrusted)})
}

// The members of a call's _meta in which agents send their id of it. Claude Code 2.1 and
// Codex 0.169 do, as tried.
var idMembers = []string{"claudecode/toolUseId", "callId"}

// Join puts a call of an MCP client into the session of the agent that announced it. It matches them by
// the agent's id of the call, or else by tool and arguments. If an MCP session has other calls that
// were announced, a call in it that was not takes part in what the agents of those calls have read, and
// they take part in what it returns. After does that, once the call is over.
func (a *Agents) Join(ctx context.Context, c *gate.Call) (after func(), err error) {
	after = func() {}
	a.mu.Lock()
	if len(a.rules) == 0 {
		a.mu.Unlock()
		return after, nil
	}
	s := a.announced(c)
	with := slices.Collect(maps.Keys(a.joined[c.Session]))
	first := s != nil && s.key != c.Session && !a.joined[c.Session][s.key]
	if first {
		if a.joined[c.Session] == nil {
			a.joined[c.Session] = make(map[gate.SessionKey]bool)
		}
		a.joined[c.Session][s.key] = true
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
			if err := a.share(ctx, c, one, client); err != nil {
				return after, err
			}
		}
		after = func() {
			for _, one := range with {
				if err := a.share(context.WithoutCancel(ctx), c, client, one); err != nil {
					a.cfg.Log.Error("an agent's session has not learned what its client has read", "session", one.ID, "error", err)
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
			if n.made || n.tool != c.Name || n.digest != digest || time.Since(n.at) > noteTime || its != id && !n.unnamed {
				continue
			}
			if found != nil && found != s {
				return nil
			}
			found, at = s, its
		}
	}
	if found != nil {
		n := found.notes[at]
		n.made = true
		found.notes[at] = n
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

// Joined returns the sessions of agents that have to learn what an MCP session fetches outside of
// calls.
func (a *Agents) Joined(k gate.SessionKey) []gate.SessionKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.joined[k]))
}

// Left forgets an MCP session that has ended.
func (a *Agents) Left(k gate.SessionKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.joined, k)
}
