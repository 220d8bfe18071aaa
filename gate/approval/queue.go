package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/match"
)

// A Channel is a way in which people are asked.
type Channel string

// The channels.
const (
	Client Channel = "client" // the client of the call
	CLI    Channel = "cli"    // an operator: any caller of [Queue.Decide]
)

// Options configure a [Queue].
type Options struct {
	// Node is the gateway's name, with which ids begin: letters, digits and
	// hyphens, at most 64. Empty means local.
	Node string
	// Channels are those in use; nil means all.
	Channels []Channel
	// Hold is how long a call waits before it is refused with a [*gate.Pending].
	// Zero means 55 s, since clients give up after a minute; negative holds none.
	Hold time.Duration
	// Expire is how long a question can be answered, and what was answered be
	// used. Zero or less means 10 min.
	Expire time.Duration
	// Approvers say who may answer any question, in addition to those that the question names.
	Approvers obligation.Approve
	// Alone reports whether all callers are one principal. Then there is no one else to approve,
	// and NotSelf of any Approve has no effect. nil: they are not.
	Alone func() bool
	// Recorder keeps a record of each state; required.
	Recorder gate.Recorder
	// Remedy returns the command by which an operator approves; nil if there is
	// none.
	Remedy func(id string) string
	// Always gets the questions that a client has answered with always. It runs in the background,
	// for 10 s at most; nil does nothing.
	Always func(ctx context.Context, r Request) error
	Store  Store        // nil keeps requests in memory
	Log    *slog.Logger // nil discards
}

const (
	alwaysTime = 10 * time.Second
	sweepEvery = 5 * time.Second // what expires is recorded that much later at most
)

// A Queue asks people. Use it from several goroutines.
type Queue struct {
	o     atomic.Pointer[Options]
	store Store

	mu    sync.Mutex
	ended bool
	work  sync.WaitGroup // background work; none begins once it has ended
}

var _ gate.Approver = (*Queue)(nil)

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// New returns a queue without questions.
func New(o Options) (*Queue, error) { return newQueue(o, systemClock()) }

func newQueue(o Options, c clock) (*Queue, error) {
	if o.Recorder == nil {
		return nil, errors.New("approval: without a recorder nothing can be approved")
	}
	if o.Node == "" {
		o.Node = "local"
	}
	if !nodePattern.MatchString(o.Node) {
		return nil, fmt.Errorf("approval: node %q: expected letters, digits and hyphens, at most 64", o.Node)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{store: o.Store}
	if q.store == nil {
		q.store = newMemory(c)
	}
	q.set(o)
	return q, nil
}

// Change puts the Channels, Hold, Expire, Remedy and Approvers of o in place for questions to come.
func (q *Queue) Change(o Options) {
	next := *q.options()
	next.Channels, next.Hold, next.Expire, next.Remedy, next.Approvers = o.Channels, o.Hold, o.Expire, o.Remedy, o.Approvers
	q.set(next)
}

// set fills in what is not said.
func (q *Queue) set(o Options) {
	if o.Channels == nil {
		o.Channels = []Channel{Client, CLI}
	}
	if o.Hold == 0 {
		o.Hold = 55 * time.Second
	}
	if o.Expire <= 0 {
		o.Expire = 10 * time.Minute
	}
	if o.Remedy == nil || !slices.Contains(o.Channels, CLI) {
		o.Remedy = func(string) string { return "" }
	}
	q.o.Store(&o)
}

func (q *Queue) options() *Options { return q.o.Load() }

// Uses reports whether people are asked through a channel.
func (q *Queue) Uses(c Channel) bool { return slices.Contains(q.options().Channels, c) }

// Approve implements [gate.Approver]. A call is held until somebody has answered,
// unless its client can be asked by the answer to the call.
func (q *Queue) Approve(ctx context.Context, asked gate.Question) (gate.Approval, error) {
	q.Sweep(ctx)
	r, err := q.find(ctx, asked)
	if err != nil {
		return gate.Approval{}, err
	}
	waits := r.State == StateRequested
	if asked.Call.Brought.Approval != nil { // and left it open: it waits for others, if the client has left it to them
		waits = waits && r.Closed != "" && q.Uses(CLI)
	} else if asked.Call.Reach().ByAnswer && q.asksClient(asked) {
		waits = false
		if err := q.store.Show(ctx, r.ID); err != nil {
			return gate.Approval{}, err
		}
	}
	var refused *gate.NotApproved
	if waits {
		refused = q.wait(ctx, r, asked)
		if ctx.Err() != nil {
			return gate.Approval{}, ctx.Err()
		}
		now, ok, err := q.store.Get(ctx, r.ID)
		if err != nil {
			return gate.Approval{}, err
		}
		if r = now; !ok {
			return gate.Approval{}, errExpired
		}
	}
	if ctx.Err() != nil {
		return gate.Approval{}, ctx.Err()
	}
	if r.State == StateRequested {
		if refused != nil { // this call; the question stays
			return gate.Approval{}, refused
		}
		return gate.Approval{}, q.pending(r, asked)
	}
	return q.redeem(ctx, r.ID, asked)
}

// find returns the request of a question: that which the client has answered, or
// that of its binding.
func (q *Queue) find(ctx context.Context, asked gate.Question) (Request, error) {
	if brought := asked.Call.Brought.Approval; brought != nil {
		return q.brought(ctx, *brought, asked)
	}
	if r, ok, err := q.store.Announced(ctx, asked); ok || err != nil {
		return r, err
	}
	if client := asked.Call.Reach(); !q.Uses(CLI) && (!q.asksClient(asked) || !client.Approves && !client.ByAnswer) {
		return Request{}, errors.New("the client cannot be asked, and cli is not among the channels of approvals")
	}
	r, fresh, err := q.store.Ask(ctx, kept(asked), newID(q.options().Node), q.options().Expire)
	if err != nil || !fresh {
		return r, err
	}
	err = q.record(ctx, r, r.Question)
	err = errors.Join(err, q.store.Asked(context.WithoutCancel(ctx), r.ID, err == nil))
	if err != nil {
		return Request{}, err
	}
	q.options().Log.LogAttrs(ctx, slog.LevelInfo, "approval pending", slog.String("approval", r.ID),
		slog.String("principal", asked.Call.Who.ID), slog.String("tool", asked.Tool.Name.String()), slog.String("answer", q.options().Remedy(r.ID)))
	return r, nil
}

// kept returns a question without what need not be kept of it.
func kept(q gate.Question) gate.Question {
	c := *q.Call
	c.Client, c.Brought, c.Meta, c.Prompt = nil, gate.Brought{}, gate.Doc{}, ""
	q.Call = &c
	q.Session.Values = provenance.Provenance{}
	q.Set = slices.Clone(q.Set)
	for i, one := range q.Set {
		q.Set[i] = kept(one)
	}
	return q
}

// brought takes the answer that a client brings with its call, and returns the
// request. It must be the client's own, and the question about this very call.
func (q *Queue) brought(ctx context.Context, a gate.Answered, asked gate.Question) (Request, error) {
	if !q.Uses(Client) {
		return Request{}, refuse("this gateway does not accept answers of clients")
	}
	if err := q.lets(asked.Call.Who, asked); err != nil {
		return Request{}, err
	}
	r, ok, err := q.store.Get(ctx, a.ID)
	switch {
	case err != nil:
		return Request{}, err
	case !ok:
		return Request{}, refuse("the approval that the answer names was not asked for here, or has expired; call again without it")
	case r.Question.Call.Who.Owner != asked.Call.Who.Owner:
		return Request{}, refuse("the approval that the answer names was asked for another principal")
	case r.InSet || r.Question.Binding() != asked.Binding():
		return Request{}, refuse("the answer is to another question: the call, its tool or the policy has changed since; call again without it")
	}
	if r.State != StateRequested {
		return r, nil
	}
	itself, err := q.closedItself(ctx, r.ID, a.Answer, asked.Call)
	if err == nil && !itself {
		err = q.answer(ctx, r.ID, a.Answer, asked.Call.Who)
	}
	if err != nil {
		return Request{}, err
	}
	if r, ok, err = q.store.Get(ctx, a.ID); err == nil && !ok {
		err = errExpired
	}
	return r, err
}

// closedItself notes that the client closes the question by itself, if it does, and reports so.
func (q *Queue) closedItself(ctx context.Context, id string, a gate.Answer, by *gate.Call) (bool, error) {
	if !a.Unfilled {
		return false, nil
	}
	took, err := q.store.Shown(ctx, id)
	if err != nil {
		return false, err
	}
	word := closed(a, took, by)
	if word == "" {
		return false, nil
	}
	return true, q.store.Closed(ctx, id, word)
}

// answer takes the answer of the client of a caller.
func (q *Queue) answer(ctx context.Context, id string, a gate.Answer, caller *gate.Principal) error {
	if a.Verdict == gate.Dismissed {
		return nil
	}
	r, err := q.decide(ctx, id, a, gate.Approval{By: byClient(caller), Auth: caller.Auth}, "")
	if err == nil && a.Always && a.Verdict == gate.Approved && len(r.Question.Set) == 0 && q.options().Always != nil && q.begin() {
		// In the background: the call passes by the approval, under the policy that it has.
		go q.always(context.WithoutCancel(ctx), r)
	}
	return err
}

// begin begins background work of a call, and reports whether it may.
func (q *Queue) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.work.Add(1)
	}
	return !q.ended
}

// byClient names who answers through the client of a call.
func byClient(caller *gate.Principal) string {
	if caller.Auth == gate.Local().Auth || caller.Auth == "" {
		return string(Client) // the person at the machine
	}
	return string(Client) + ":" + nameOf(caller)
}

// lets returns why a principal's answer does not count; nil if it does.
func (q *Queue) lets(who *gate.Principal, asked gate.Question) error {
	alone := q.options().Alone != nil && q.options().Alone()
	for _, a := range append([]obligation.Approve{q.options().Approvers}, asked.Approvers...) {
		a.NotSelf = a.NotSelf && !alone
		switch {
		case a.NotSelf && who.Owner == asked.Call.Who.Owner:
			return refuse(escaped.Text(nameOf(who)) + " has made the call, and nobody approves their own")
		case len(a.By) > 0 && !match.Listed(a.By, who.Tenant, who.ID, who.Roles):
			return refuse(fmt.Sprintf("%s may not approve it; these may: %s", escaped.Text(nameOf(who)), strings.Join(a.By, ", ")))
		}
	}
	return nil
}

func nameOf(who *gate.Principal) string { return match.Name(who.Tenant, who.ID) }

// asksClient reports whether the client of a call may answer about it: it answers as the
// caller.
func (q *Queue) asksClient(asked gate.Question) bool {
	return q.Uses(Client) && q.lets(asked.Call.Who, asked) == nil
}

func (q *Queue) always(ctx context.Context, r Request) {
	defer q.work.Done()
	ctx, cancel := context.WithTimeout(ctx, alwaysTime)
	defer cancel()
	if err := q.options().Always(ctx, r); err != nil {
		q.options().Log.LogAttrs(ctx, slog.LevelWarn, "grant not written", slog.String("approval", r.ID), slog.Any("error", err))
	}
}

// wait waits for an answer as long as calls are held, and asks the client
// meanwhile if it can be asked. It returns why the client refuses the call itself, or nil.
func (q *Queue) wait(ctx context.Context, r Request, asked gate.Question) *gate.NotApproved {
	hold, client := q.options().Hold, asked.Call.Reach()
	if client.Hold > 0 {
		hold = min(hold, client.Hold)
	}
	if hold < 0 {
		return nil
	}
	var asking sync.WaitGroup
	var refused *gate.NotApproved
	held, release := context.WithTimeout(ctx, hold)
	defer release()
	if client.Approves && q.asksClient(asked) {
		asking.Go(func() {
			var wait bool
			if wait, refused = q.askClient(held, r, asked); !wait {
				release()
			}
		})
	}
	q.store.Wait(held, r.ID)
	release()
	asking.Wait()
	return refused
}

// askClient asks the client. It reports whether to wait on for others to answer, and why the
// call is refused if it is.
func (q *Queue) askClient(ctx context.Context, r Request, asked gate.Question) (wait bool, refused *gate.NotApproved) {
	defer func() {
		if v := recover(); v != nil {
			q.options().Log.LogAttrs(ctx, slog.LevelError, "client not asked", slog.String("approval", r.ID), slog.Any("panic", v))
			wait = q.Uses(CLI)
		}
	}()
	p, question := q.pending(r, asked), kept(asked)
	question.Destinations, question.Origins = r.Question.Destinations, r.Question.Origins
	question.Beside, question.BesideOf = r.Question.Beside, r.Question.BesideOf
	p.Asked = &question
	err := q.store.Show(ctx, r.ID)
	var a gate.Answer
	if err == nil {
		a, err = asked.Call.Client.Approve(ctx, *p)
	}
	if no, ok := errors.AsType[*gate.NotApproved](err); ok && ctx.Err() == nil {
		return false, no
	}
	var itself bool
	if err == nil {
		itself, err = q.closedItself(context.WithoutCancel(ctx), r.ID, a, asked.Call)
	}
	if itself && err == nil {
		return q.Uses(CLI), nil
	}
	if err == nil {
		err = q.answer(context.WithoutCancel(ctx), r.ID, a, asked.Call.Who)
	}
	if err != nil {
		if ctx.Err() == nil {
			q.options().Log.LogAttrs(ctx, slog.LevelWarn, "client not asked", slog.String("approval", r.ID), slog.Any("error", err))
		}
		return q.Uses(CLI), nil
	}
	return a.Verdict != gate.Dismissed, nil
}

func (q *Queue) pending(r Request, asked gate.Question) *gate.Pending {
	first := r.Question // an answer is to it, whatever the session has read since
	return &gate.Pending{
		ID: r.ID, Expires: r.Expires, Closed: r.Closed, Inquiry: first.Inquiry(), Destinations: first.Destinations, Beside: first.Beside,
		CanAnswer: q.asksClient(asked) && asked.Call.Reach().ByAnswer, Remedy: q.options().Remedy(r.ID),
	}
}

// redeem uses an approval for a call.
func (q *Queue) redeem(ctx context.Context, id string, asked gate.Question) (gate.Approval, error) {
	r, again, err := q.store.Redeem(ctx, id, asked.Call.ID)
	if err != nil {
		return gate.Approval{}, err
	}
	if !again {
		err := q.record(ctx, r, asked)
		if err == nil {
			err = q.admitSet(ctx, r)
		}
		if err != nil {
			return gate.Approval{}, errors.Join(err, q.store.Spoil(context.WithoutCancel(ctx), id))
		}
	}
	if asked.Call.Session != r.Question.Call.Session { // destinations are approved for the session of the question
		r.Destinations = nil
	}
	return gate.Approval{ID: r.ID, By: r.By, Auth: r.Auth, Destinations: r.Destinations}, nil
}

// admitSet approves each call of a set that was approved, for one use in the session of the set. Their
// records are kept first.
func (q *Queue) admitSet(ctx context.Context, set Request) error {
	var all []Request
	for i, one := range set.Question.Set {
		r := Request{
			ID: fmt.Sprintf("%s.%d", set.ID, i+1), Question: one, State: StateApproved, Asked: set.Asked, Expires: set.Expires, By: set.By, Auth: set.Auth,
			Note: "in the set " + set.ID, InSet: true,
		}
		if err := q.record(ctx, r, one); err != nil {
			return err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil
	}
	return q.store.Announce(ctx, set.ID, all)
}

// SetBinding is what the approval of a call in a set is bound to: the binding of the call, and the session.
func SetBinding(q gate.Question) string {
	return fmt.Sprintf("%s %q %q", q.Binding(), q.Call.Session.Owner, q.Call.Session.ID)
}

var errNoCLI = errors.New("operators cannot answer here: cli is not among approvals.channels in the configuration")

// Decide answers a question, for the operator: verdict is Approved or Denied, by
// says who answers, such as "cli:local", and note, if not empty, why. It returns
// the request as it is then. An error says why the answer does not count.
//
// Its callers can approve every question of a policy, except one that names its approvers: they
// answer by [Queue.DecideAs].
func (q *Queue) Decide(ctx context.Context, id string, verdict gate.Verdict, by, note string) (Request, error) {
	return q.DecideAs(ctx, gate.Local(), id, gate.Answer{Verdict: verdict}, by, note)
}

// DecideAs is [Queue.Decide] for a verified principal. With Destinations of the answer the same
// server's tools may have the call's destinations, in its session, until that ends.
func (q *Queue) DecideAs(ctx context.Context, who *gate.Principal, id string, a gate.Answer, by, note string) (Request, error) {
	if !q.Uses(CLI) {
		return Request{}, errNoCLI
	}
	q.Sweep(ctx)
	r, ok, err := q.Request(ctx, id)
	if err != nil {
		return Request{}, err
	}
	if ok {
		if err := q.lets(who, r.Question); err != nil && who != BreakGlass {
			return Request{}, err
		}
		if a.Destinations && len(r.Question.Destinations) == 0 {
			return Request{}, refuse("a trusted source has named all destinations of the call")
		}
		if a.Beside && len(r.Question.Beside) == 0 {
			return Request{}, refuse("the question showed no other destinations")
		}
	}
	return q.decide(ctx, id, a, gate.Approval{By: by, Auth: who.Auth}, note)
}

func (q *Queue) decide(ctx context.Context, id string, a gate.Answer, by gate.Approval, note string) (Request, error) {
	verdict := a.Verdict
	if verdict != gate.Approved && verdict != gate.Denied {
		return Request{}, refuse(fmt.Sprintf("%q is not an answer", verdict))
	}
	r, err := q.store.Answer(ctx, id)
	if err != nil {
		return Request{}, err
	}
	r.State, r.By, r.Auth, r.Note, r.Closed = StateApproved, by.By, by.Auth, note, ""
	if verdict == gate.Denied {
		r.State = StateDenied
		if a.Unfilled {
			r.Closed = "declined"
		}
	} else if a.Beside {
		r.Destinations = slices.Concat(r.Question.Destinations, r.Question.Beside)
		r.Note = cmp.Or(note, fmt.Sprintf("for its destinations and %d others, until the session ends", len(r.Question.Beside)))
	} else if a.Destinations {
		r.Destinations, r.Note = r.Question.Destinations, cmp.Or(note, "for its destinations, until the session ends")
	}
	err = q.record(ctx, r, r.Question)
	if ended := q.store.Answered(context.WithoutCancel(ctx), r, err == nil); err == nil {
		err = ended
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// List returns the questions that no one has answered, the oldest first. Callers that see them see the
// arguments of calls.
func (q *Queue) List(ctx context.Context) ([]Request, error) {
	q.Sweep(ctx)
	return q.store.List(ctx)
}

// Pending is [Queue.List] without the questions of a store that cannot be read.
func (q *Queue) Pending(ctx context.Context) []Request {
	all, err := q.List(ctx)
	q.warn(ctx, err)
	return all
}

// Waiting returns how many questions no one has answered.
func (q *Queue) Waiting() int {
	all, _ := q.store.List(context.Background()) // bounded by the store; its next use says what is wrong
	return len(all)
}

// Request returns a question that has not expired.
func (q *Queue) Request(ctx context.Context, id string) (r Request, ok bool, err error) {
	return q.store.Get(ctx, id)
}

// Sweep records and removes what has expired. Approve, Decide and Pending do so
// first; [Queue.Run] does it in time.
func (q *Queue) Sweep(ctx context.Context) {
	ended, err := q.store.Expire(ctx)
	q.warn(ctx, err)
	q.expire(ctx, ended)
}

func (q *Queue) warn(ctx context.Context, err error) {
	if err != nil {
		q.options().Log.LogAttrs(ctx, slog.LevelWarn, "approvals not read", slog.Any("error", err))
	}
}

// Run sweeps until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			q.Sweep(ctx)
		}
	}
}

// Close ends all questions, and lets go of the calls that wait. Later ones are
// refused. It may be called again.
func (q *Queue) Close(ctx context.Context) {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	ended, err := q.store.End(ctx)
	q.warn(ctx, err)
	q.expire(ctx, ended)
	q.work.Wait()
}

func (q *Queue) expire(ctx context.Context, ended []Request) {
	for _, r := range ended {
		if err := q.record(ctx, r, r.Question); err != nil {
			q.options().Log.LogAttrs(ctx, slog.LevelWarn, "expiry not recorded", slog.String("approval", r.ID), slog.Any("error", err))
		}
	}
}

// record keeps the record of a request's state, for the call of the question.
func (q *Queue) record(ctx context.Context, r Request, of gate.Question) error {
	c := *of.Call
	rec := gate.Record{
		Event: gate.EventApproval, Time: time.Now(), Call: &c, Tool: of.Tool, Session: of.Session, Snapshot: of.Snapshot,
		Decision: gate.Decision{Effect: gate.Ask, Reasons: of.Reasons, Revision: of.Revision},
		Approval: gate.ApprovalRecord{
			Approval: gate.Approval{ID: r.ID, By: r.By, Auth: r.Auth}, State: r.State, Binding: of.Binding(), Note: r.Note, Expires: r.Expires,
		},
	}
	if r.State == StateRequested {
		rec.Decision.Remedy = q.options().Remedy(r.ID)
	}
	if err := q.options().Recorder.Record(context.WithoutCancel(ctx), &rec); err != nil {
		return fmt.Errorf("record that approval %s is %s: %w", r.ID, r.State, err)
	}
	return nil
}
