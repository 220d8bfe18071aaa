package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

// Config configures [Agents]. All but Log is required.
type Config struct {
	// Life ends all that waits for agents.
	Life context.Context
	// Do carries out calls, a gate's.
	Do func(context.Context, gate.Call) (gate.Result, error)
	// View and Learn are of the gate's sessions, and Ended is called when one has ended.
	View  func(context.Context, gate.SessionKey) (gate.Session, error)
	Learn func(context.Context, gate.SessionKey, gate.Lesson) error
	Ended func(gate.SessionKey)
	// Teaches returns the labels that a session gets from a result of a tool.
	Teaches func(*gate.Tool) gate.Labels
	// Tracks reports whether sessions keep where values came from.
	Tracks func() bool
	// Kept returns the session for which labels are kept, of one of an agent's own.
	Kept func(gate.SessionKey) gate.SessionKey
	Log  *slog.Logger // nil discards
}

// Bounds of what is kept here. If a session is dropped here, the gate's sessions still know what it has
// read, and [past] keeps what stops its prompts from vouching.
const (
	maxSessions = 1024    // of one owner
	maxPast     = 1 << 18 // marks of one owner
	maxRunning  = 256     // calls of one session
	maxNotes    = 1024
	noteTime    = 10 * time.Minute // between a hook and the call that it announces
	resultTime  = 24 * time.Hour   // that an agent's tool may take
)

// Agents knows the sessions of agents. Use it from several goroutines.
type Agents struct {
	cfg   Config
	calls sync.WaitGroup // that the gate has

	mu       sync.Mutex
	rules    map[string]options.Agent
	sessions map[place]*session
	past     map[gate.Owner]*past
	running  map[string]*running                          // by the ID of the gate's call
	joined   map[gate.SessionKey]map[gate.SessionKey]bool // of MCP clients, with those of agents
}

// place identifies a session of an agent.
type place struct {
	owner     gate.Owner
	agent, id string
}

// New returns Agents for which there are rules, by the agents' names.
func New(cfg Config, rules map[string]options.Agent) *Agents {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Agents{
		cfg: cfg, rules: rules, sessions: make(map[place]*session), past: make(map[gate.Owner]*past), running: make(map[string]*running),
		joined: make(map[gate.SessionKey]map[gate.SessionKey]bool),
	}
}

// Wait waits until the gate has done with all calls; Config.Life must have ended.
func (a *Agents) Wait() { a.calls.Wait() }

// Set puts other rules in the place of those of New.
func (a *Agents) Set(rules map[string]options.Agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules = rules
}

// rulesOf returns the rules of an agent, and false if it is not configured.
func (a *Agents) rulesOf(agent string) (options.Agent, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.rules[agent]
	if r.MCP == "" {
		r.MCP = "wasmgate"
	}
	return r, ok
}

// Lookup returns the tool that a call of an agent's own tool names: any of an agent that is
// configured. The error wraps [gate.ErrUnknown].
func (a *Agents) Lookup(name string) (*gate.Tool, error) {
	n, err := gate.ParseToolName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gate.ErrUnknown, err)
	}
	if _, ok := a.rulesOf(n.Server); !ok {
		return nil, fmt.Errorf("%w: no agent %s is configured", gate.ErrUnknown, n.Server)
	}
	return tool(n), nil
}

// tool returns a tool of an agent's own. The gateway has not seen what the agent says about it, so a
// session that used it has read untrusted content unless the operator's labels say otherwise.
func tool(n gate.ToolName) *gate.Tool {
	return &gate.Tool{
		Feature: gate.FeatureAgent, Name: n, Local: n.Tool, Offered: n.String(), Digest: "",
		Input: anything{}, Teaches: gate.NewLabels(provenance.Untrusted), OnMachine: true,
	}
}

// anything is a schema that takes all arguments: agents check those of their own tools.
type anything struct{}

func (anything) Validate(gate.Doc) error { return nil }

// session is one of an agent's.
type session struct {
	place
	key  gate.SessionKey
	used time.Time // guarded by Agents.mu, as all that follows is

	calls map[string]*running // by the agent's id of the call
	notes map[string]note     // of calls to this gateway whose results were not reported, by the agent's id
	turn
}

// session returns the session of an agent, a new one if need be.
func (a *Agents) session(p place) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[p]
	if s == nil {
		if !a.makeRoom(p.owner) {
			return nil, errors.New("all sessions of agents that the gateway keeps have a call under way: end some of them, and try again")
		}
		s = &session{place: p, key: a.cfg.Kept(key(p)), calls: make(map[string]*running), notes: make(map[string]note)}
		s.tooMany = a.past[p.owner].has(markOf(p))
		a.sessions[p] = s
	}
	s.used = time.Now()
	return s, nil
}

// key names the gate's session for an agent's session. It is the same after a restart, so what was kept
// of the session still counts.
func key(p place) gate.SessionKey {
	sum := sha256.Sum256([]byte(p.id))
	return gate.SessionKey{Owner: p.owner, ID: p.agent + "-" + hex.EncodeToString(sum[:16])}
}

// makeRoom drops a session of an owner that has too many: of those that keep no prompt from
// vouching the one that was used longest ago, else of the others. It returns false if all have a
// call under way, which must not be forgotten: any program of the owner can fill the table.
// Agents.mu is held.
func (a *Agents) makeRoom(owner gate.Owner) bool {
	n := 0
	var oldest *session
	for _, s := range a.sessions {
		if s.owner != owner {
			continue
		}
		n++
		if s.underWay() {
			continue
		}
		if oldest == nil || oldest.guards() && !s.guards() || oldest.guards() == s.guards() && s.used.Before(oldest.used) {
			oldest = s
		}
	}
	if n < maxSessions {
		return true
	}
	if oldest == nil {
		return false
	}
	a.remember(oldest)
	delete(a.sessions, oldest.place)
	return true
}

// guards reports whether something of the session is lost if it is dropped.
func (s *session) guards() bool {
	return len(s.notes) > 0 || s.open || s.background || s.tooMany || len(s.scheduled) > 0 || len(s.written) > 0
}

// remember keeps of a session that is dropped what its model has written, and that its own
// prompts do not vouch any more. Agents.mu is held.
func (a *Agents) remember(s *session) {
	if !s.guards() {
		return
	}
	p := a.past[s.owner]
	if p == nil {
		p = &past{marks: make(map[[16]byte]struct{})}
		a.past[s.owner] = p
	}
	p.add(markOf(s.place))
	for m := range s.written {
		p.add(m)
	}
	if p.full {
		a.cfg.Log.Error("so many sessions of agents were dropped that no prompt of theirs vouches until the gateway is restarted", "owner", s.owner.ID)
	}
}

// past is what is kept of the dropped sessions of one owner: marks of their names and of what
// their models have written.
type past struct {
	marks map[[16]byte]struct{}
	full  bool // it has every mark
}

func (p *past) add(m [16]byte) {
	if p.full = p.full || len(p.marks) >= maxPast; p.full {
		p.marks = nil
		return
	}
	p.marks[m] = struct{}{}
}

func (p *past) has(m [16]byte) bool {
	if p == nil {
		return false
	}
	_, ok := p.marks[m]
	return ok || p.full
}

// markOf is the mark of a session's name, which no text has: no agent is named so.
func markOf(p place) [16]byte { return mark("session\x00" + p.agent + "\x00" + p.id) }

// end handles the end of a session. It keeps what its model has written, because the session can be
// resumed.
func (a *Agents) end(ctx context.Context, s *session) error {
	a.mu.Lock()
	s.cutCalls()
	for k, with := range a.joined {
		if delete(with, s.key); len(with) == 0 {
			delete(a.joined, k)
		}
	}
	unmade := s.unmade()
	clear(s.notes)
	s.open = false
	a.mu.Unlock()
	err := a.teachUnmade(ctx, s, unmade)
	a.cfg.Ended(s.key)
	return err
}

// errNoResult ends a call whose result the agent has not reported.
var errNoResult = errors.New("the agent has not reported the result of the call")

// toolName is the name of an agent's own tool in the letters that names of tools have here.
func toolName(agent, name string) (gate.ToolName, error) {
	return gate.NewToolName(agent, strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		default:
			return '_'
		}
	}, name))
}
