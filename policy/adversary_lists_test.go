package policy_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// lists is the model of an adversary that chooses what two sessions of one principal propose to a
// person, and what they call. The person approves each list and each call in which no value is the
// adversary's. The adversary wins with a value of its own, and with each call that passes by an
// approval that the person has not given: for these arguments, so often, and, in a list, for this session.
type lists struct {
	*model
	left   map[string]int // how often a call may pass: by its session, if it was in a list, and itself
	listed int            // calls that passed because they were in a list
}

const proposes = "gateway__propose"

// proposed is a list of calls, and the session that proposes it.
type proposed struct {
	session string
	calls   []gate.Call
}

func newLists(tb testing.TB, person func(gate.Approver) gate.Approver) *lists {
	g := withPerson
	g.person = person
	m := &lists{model: newModel(tb, g)}
	m.tools[proposes] = newTool(proposes)
	m.tools[proposes].Input, m.tools[proposes].Relay = anyArguments{}, true
	return m
}

// text is what an approval is for.
func text(session string, c *gate.Call) string { return session + " " + c.Name + " " + c.Args.String() }

// isTheirs reports whether a value of a call is the adversary's.
func isTheirs(c *gate.Call) bool { return slices.Contains(theirs, c.Args.Get("to").Text()) }

func (m *lists) Record(_ context.Context, r *gate.Record) error {
	if r.Event != gate.Granted || r.Approval.ID == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, session := range []string{r.Call.Session.ID, ""} {
		if of := text(session, r.Call); m.left[of] > 0 {
			m.left[of]--
			if session != "" {
				m.listed++
			}
			return nil
		}
	}
	m.won = append(m.won, "no one has approved "+text(r.Call.Session.ID, r.Call))
	return nil
}

func (m *lists) Invoke(ctx context.Context, p gate.Permit) (gate.Result, error) {
	c, tool, _ := p.Open()
	switch {
	case c.Name == proposes:
		var calls []gate.Call
		for one := range c.Args.Get("calls").Elements() {
			calls = append(calls, gate.Call{Name: one.Get("tool").Text(), Args: one.Get("arguments")})
		}
		_, err := p.Propose(ctx, calls)
		return gate.Result{Doc: gate.MustDoc(`{"content":[]}`)}, err
	case !tool.Relay && isTheirs(c):
		m.wins(c.ID)
	}
	return m.model.Invoke(ctx, p)
}

// answer has the person answer what is asked.
func (m *lists) answer(tb testing.TB, questions *approval.Queue) {
	for _, r := range questions.Pending(tb.Context()) {
		all, session, a := r.Question.Set, r.Question.Call.Session.ID, gate.Answer{Verdict: gate.Approved}
		if len(all) == 0 {
			all, session = []gate.Question{r.Question}, ""
		}
		if slices.ContainsFunc(all, func(q gate.Question) bool { return isTheirs(q.Call) }) {
			a.Verdict, all = gate.Denied, nil
		}
		if _, err := questions.DecideAs(tb.Context(), gate.Local(), r.ID, a, "cli:local", ""); err != nil {
			tb.Fatal(err)
		}
		for _, q := range all {
			m.left[text(session, q.Call)]++
		}
	}
}

// call is one with an effect, which flow-ask asks about.
func (m *lists) call(r *rand.Rand) gate.Call {
	c := gate.Call{Name: []string{"do__open", "do__send", "do__new", "rec__drop"}[r.IntN(4)], Args: gate.MustDoc(`{}`)}
	if c.Name != "do__open" {
		pool := ours[:3]
		if r.IntN(4) == 0 {
			pool = theirs
		}
		to, _ := json.Marshal(map[string]string{"to": pool[r.IntN(len(pool))]})
		c.Args = gate.MustDoc(string(to))
	}
	return c
}

// next chooses a proposal or a call; one in four is changed: another call, one more, another order,
// another session.
func (m *lists) next(r *rand.Rand, before *[]proposed) gate.Call {
	if len(*before) == 0 || r.IntN(6) == 0 {
		p := proposed{session: []string{"s", "t"}[r.IntN(2)]}
		for range 1 + r.IntN(3) {
			p.calls = append(p.calls, m.call(r))
		}
		*before = append(*before, p)
	}
	p := (*before)[r.IntN(len(*before))]
	p.calls = slices.Clone(p.calls)
	i := r.IntN(len(p.calls))
	switch r.IntN(16) {
	case 0:
		p.calls[i] = m.call(r)
	case 1:
		p.calls = append(p.calls, m.call(r))
	case 2:
		slices.Reverse(p.calls)
	case 3:
		p.session = []string{"s", "t"}[r.IntN(2)]
	}
	c := p.calls[i]
	if r.IntN(2) == 0 {
		all := []any{}
		for _, c := range p.calls {
			all = append(all, map[string]any{"tool": c.Name, "arguments": json.RawMessage(c.Args.Raw())})
		}
		args, _ := json.Marshal(map[string]any{"calls": all})
		c = gate.Call{Name: proposes, Args: gate.MustDoc(string(args))}
	}
	c.ID, c.Action, c.Who, c.Session = gate.NewID(), gate.CallTool, alice, gate.SessionKey{Owner: alice.Owner, ID: p.session}
	if c.Name != proposes && r.IntN(4) == 0 {
		c = relayed(c)
	}
	return c
}

// play plays two sessions that have read what the adversary has written.
func (m *lists) play(tb testing.TB, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	clear(m.evil)
	m.r, m.left = rand.New(rand.NewPCG(seed, 4)), map[string]int{}
	questions, err := approval.New(approval.Options{Hold: -1, Recorder: m})
	if err != nil {
		tb.Fatal(err)
	}
	g, err := gate.New(gate.Parts{
		Upstream: m, Authorizer: m.engine, Labeler: m.engine, Sessions: session.New(session.Options{}), Sanitizer: m, Recorder: m,
		TrackValues: true, TrackOrigins: true, Approver: m.guards.person(questions),
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, id := range []string{"s", "t"} {
		c := gate.Call{ID: gate.NewID(), Action: gate.CallTool, Name: "out__read", Args: gate.MustDoc(`{}`), Who: alice, Session: gate.SessionKey{Owner: alice.Owner, ID: id}}
		if _, err := g.Do(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
	}
	var before []proposed
	for range 10 {
		var calls []gate.Call
		for range 1 + r.IntN(3) {
			calls = append(calls, m.next(r, &before))
		}
		var wg sync.WaitGroup
		for _, c := range calls[1:] {
			wg.Go(func() { _, _ = g.Do(context.Background(), c) })
		}
		_, _ = g.Do(context.Background(), calls[0])
		wg.Wait()
		if r.IntN(2) == 0 {
			m.answer(tb, questions)
		}
	}
}

func (m *lists) result() (won string, tested bool) {
	won, _ = m.model.result()
	return won, m.listed > 0
}

// An approved list lets pass what a person has read in it, each call once, and nothing else.
func TestTheAdversaryGainsNothingByLists(t *testing.T) {
	neverWins(t, max(sequences()/50, 50), func(tb testing.TB) game { return newLists(tb, withPerson.person) })
}

// careless is an approver without one of the guards of lists.
type careless struct {
	gate.Approver
	mu      sync.Mutex
	without func(*careless, context.Context, gate.Question) (gate.Approval, error)
	passed  map[string]gate.Approval // by text
	lists   map[string]gate.Question // by session
}

func (c *careless) Approve(ctx context.Context, q gate.Question) (gate.Approval, error) {
	a, err := c.without(c, ctx, q)
	c.mu.Lock()
	defer c.mu.Unlock()
	if session := q.Call.Session.ID; err == nil {
		c.passed[text(session, q.Call)] = a
		if len(q.Set) > 0 {
			c.lists[session] = q
		}
	}
	return a, err
}

// before returns what was approved before: a call, and the last list of its session.
func (c *careless) before(q gate.Question) (a gate.Approval, list gate.Question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed[text(q.Call.Session.ID, q.Call)], c.lists[q.Call.Session.ID]
}

// Take away any one guard of lists, and the adversary wins.
func TestEachGuardOfListsIsNeeded(t *testing.T) {
	unraced.Long(t)
	if unraced.Short() {
		t.Skip("one goroutine: the race detector finds nothing in it")
	}
	for name, without := range map[string]func(*careless, context.Context, gate.Question) (gate.Approval, error){
		"that a call passes once": func(c *careless, ctx context.Context, q gate.Question) (gate.Approval, error) {
			if a, _ := c.before(q); a.ID != "" && len(q.Set) == 0 {
				return a, nil
			}
			return c.Approver.Approve(ctx, q)
		},
		"that a list is for its session": func(c *careless, ctx context.Context, q gate.Question) (gate.Approval, error) {
			other := *q.Call
			other.Session.ID = map[string]string{"s": "t", "t": "s"}[other.Session.ID]
			there := q
			if there.Call = &other; len(q.Set) == 0 {
				if a, err := c.Approver.Approve(ctx, there); err == nil {
					return a, nil
				}
			}
			return c.Approver.Approve(ctx, q)
		},
		"that a call is bound to its arguments": func(c *careless, ctx context.Context, q gate.Question) (gate.Approval, error) {
			if _, list := c.before(q); len(q.Set) == 0 {
				for _, one := range list.Set {
					if one.Call.Name == q.Call.Name {
						call := *one.Call
						call.ID, one.Call = q.Call.ID, &call
						if a, err := c.Approver.Approve(ctx, one); err == nil {
							return a, nil
						}
					}
				}
			}
			return c.Approver.Approve(ctx, q)
		},
		"that a list is approved as it is": func(c *careless, ctx context.Context, q gate.Question) (gate.Approval, error) {
			a, list := c.before(q)
			if len(q.Set) > 0 && list.Call != nil {
				return gate.Approval{ID: "another"}, nil
			}
			if slices.ContainsFunc(list.Set, func(one gate.Question) bool { return one.Binding() == q.Binding() }) && a.ID == "" {
				return gate.Approval{ID: "another"}, nil
			}
			return c.Approver.Approve(ctx, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c *careless
			m := newLists(t, func(a gate.Approver) gate.Approver {
				c = &careless{Approver: a, without: without, passed: map[string]gate.Approval{}, lists: map[string]gate.Question{}}
				return c
			})
			for i := range uint64(1000) {
				if m.play(t, i); len(m.won) > 0 {
					return
				}
			}
			t.Error("the adversary never wins without it")
		})
	}
}
