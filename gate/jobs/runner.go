package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// Options configure a [Runner].
type Options struct {
	// Node is the gateway's name, with which ids begin: letters, digits and hyphens,
	// at most 64. Empty means local.
	Node string
	// Store keeps the jobs; required.
	Store Store
	// Keep is how long an outcome is kept after the end of its job, and the longest
	// that a client can ask for. Zero means 24 h.
	Keep time.Duration
	// Max is how many jobs are kept, and MaxSize how many bytes of their results. Zero
	// means 10,000 and 256 MiB.
	Max     int
	MaxSize int64
	// Running is how many jobs run at once, and Each how many of one owner. Zero means
	// 1,000 and 64.
	Running, Each int
	// Public returns what a client may read of the error of a call; nil is its code.
	Public func(error) string
	Log    *slog.Logger // nil discards
}

// Defaults of [Options].
const (
	DefaultKeep    = 24 * time.Hour
	DefaultMax     = 10_000
	DefaultMaxSize = 256 << 20
	DefaultRunning = 1000
	DefaultEach    = 64
)

const (
	// startTime is how long a start waits for the gate to let the call pass, so that
	// who started it is told of a refusal: a little more than calls are held for a
	// person to approve.
	startTime = 60 * time.Second
	// endTime bounds how long the end of a job may take to be kept.
	endTime = 10 * time.Second
	// cancelTime is how long a cancellation waits for the call to end.
	cancelTime = 5 * time.Second
	// sweepEvery is how often outcomes are given up whose time has come.
	sweepEvery = time.Minute
	// forgetAfter is how long an expired job is still told from one that never was.
	forgetAfter = 7 * 24 * time.Hour
	// maxTool bounds what is kept of the name of a tool, which the client chose.
	maxTool = 256
)

// Why a job has ended that did not end by itself.
const (
	reasonCancelled = "the job was cancelled"
	reasonShutdown  = "the gateway was shut down while the call ran"
	reasonRestarted = "the gateway was restarted while the call ran"
	reasonTool      = "the tool reports a failure"
	reasonTooLarge  = "the result is larger than the gateway keeps; call the tool without a job, or for less"
	reasonLost      = "the outcome could not be kept"
)

// Do carries out a call: [gate.Gate.Do], or [gate.Permit.Relay] of the call that asks
// for the job.
type Do func(ctx context.Context, c gate.Call) (gate.Result, error)

// A Runner carries out jobs. Use it from several goroutines.
type Runner struct {
	o      Options
	boot   string
	bounds Bounds
	life   context.Context // of all jobs
	end    context.CancelCauseFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	runs   map[string]*run
	each   map[gate.Owner]int
	closed bool
}

// A run is a job that is under way here.
type run struct {
	job     Job
	cancel  context.CancelCauseFunc
	granted chan struct{} // closed when the gate has let the call pass
	done    chan struct{} // closed when the job has ended and that is kept

	refused error // why it never began; not before done

	// Guarded by the runner's mu: somebody is given its id, and its end is being kept.
	known, ending bool
}

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// New returns a runner. Jobs that an earlier run of the same node has left running
// are failed: nobody carries them out any more. It starts nothing; see [Runner.Run].
func New(ctx context.Context, o Options) (*Runner, error) {
	if o.Store == nil {
		return nil, errors.New("jobs: without a store nothing can be fetched later")
	}
	if o.Node == "" {
		o.Node = "local"
	}
	if !nodePattern.MatchString(o.Node) {
		return nil, fmt.Errorf("jobs: node %q: expected letters, digits and hyphens, at most 64", o.Node)
	}
	if o.Keep < 0 || o.Max < 0 || o.MaxSize < 0 || o.Running < 0 || o.Each < 0 {
		return nil, errors.New("jobs: a negative limit")
	}
	setDefault(&o.Keep, DefaultKeep)
	setDefault(&o.Max, DefaultMax)
	setDefault(&o.MaxSize, DefaultMaxSize)
	setDefault(&o.Running, DefaultRunning)
	setDefault(&o.Each, DefaultEach)
	if o.Public == nil {
		o.Public = gate.Code
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runner{
		o: o, boot: strings.ToLower(rand.Text()[:8]), bounds: Bounds{Jobs: o.Max, Bytes: o.MaxSize, After: forgetAfter},
		runs: make(map[string]*run), each: make(map[gate.Owner]int),
	}
	r.life, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	n, err := o.Store.AbandonJobs(ctx, o.Node, r.boot, time.Now(), reasonRestarted)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	if n > 0 {
		o.Log.LogAttrs(ctx, slog.LevelWarn, "jobs failed", slog.Int("jobs", n), slog.String("reason", reasonRestarted))
	}
	return r, nil
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Start begins to carry out a call, in its session, and returns once the gate has let
// it pass: a refusal before that is the error, and there is no job. If that takes long,
// because a person is asked, the job is returned while it waits.
//
// The job outlives ctx from then on, and its client, who is not told of its progress.
// Its server can ask the call's Peer, which has to outlive ctx too; without one it can
// ask nobody. Keep is how long its outcome is to be kept; zero, or longer than the runner
// does, is as long as that.
func (r *Runner) Start(ctx context.Context, do Do, c gate.Call, keep time.Duration) (Job, error) {
	if c.ID == "" {
		c.ID = gate.NewID()
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	one := r.newRun(c, keep, cancel)
	if err := r.begin(ctx, one); err != nil {
		cancel(nil)
		return Job{}, err
	}
	c.Notify, c.Detached = nil, true
	c.Rounds, c.Responses, c.State = false, gate.Doc{}, ""
	c.Granted = sync.OnceFunc(func() { close(one.granted) })
	go r.follow(life, one, func() (gate.Result, error) { return do(life, c) }) // ends with the call
	return r.started(ctx, one)
}

// UnderWay is a call that is carried out already.
type UnderWay struct {
	gate.Call
	// Life is the context of the call, and Cancel ends it, for a reason.
	Life   context.Context
	Cancel context.CancelCauseFunc
	// Outcome returns when the call has ended. It is called once.
	Outcome func() (gate.Result, error)
}

// Adopt makes a job of a call that is carried out already, and that who waited for it
// leaves to the runner. The job is kept when Adopt returns; with an error there is none,
// and the call is still the caller's.
func (r *Runner) Adopt(ctx context.Context, c UnderWay) (Job, error) {
	one := r.newRun(c.Call, 0, c.Cancel)
	one.known = true
	if err := r.begin(ctx, one); err != nil {
		return Job{}, err
	}
	go r.follow(c.Life, one, c.Outcome) // ends with the call
	return one.job, nil
}

func (r *Runner) newRun(c gate.Call, keep time.Duration, cancel context.CancelCauseFunc) *run {
	if keep <= 0 || keep > r.o.Keep {
		keep = r.o.Keep
	}
	return &run{
		job: Job{
			ID: r.newID(), Owner: c.Who.Owner, Node: r.o.Node, Boot: r.boot, Tool: c.Name[:min(len(c.Name), maxTool)], Call: c.ID,
			State: Running, Started: time.Now(), Keep: keep,
		},
		cancel: cancel, granted: make(chan struct{}), done: make(chan struct{}),
	}
}

// begin keeps a job that begins. Who has begun one calls work.Done at its end.
func (r *Runner) begin(ctx context.Context, one *run) error {
	if err := r.enter(one); err != nil {
		return err
	}
	if err := r.o.Store.AddJob(ctx, one.job); err != nil {
		r.leave(one)
		r.work.Done()
		return fmt.Errorf("keep job: %w", err)
	}
	return nil
}

// follow waits for the end of a call, and keeps its outcome.
func (r *Runner) follow(life context.Context, one *run, outcome func() (gate.Result, error)) {
	defer r.work.Done()
	defer one.cancel(nil)
	defer context.AfterFunc(r.life, func() { one.cancel(context.Cause(r.life)) })()
	res, err := outcome()
	r.ends(life, one, res, err)
}

// newID returns an id of 128 random bits.
func (r *Runner) newID() string { return r.o.Node + "-" + strings.ToLower(rand.Text()) }

// enter takes a place among the jobs that run. Who has it calls work.Done.
func (r *Runner) enter(one *run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := func(why string) error {
		return &gate.Refusal{Step: gate.StepBusy, Call: one.job.Call, Name: one.job.Tool, Reason: why}
	}
	switch {
	case r.closed:
		return busy("the gateway is shutting down")
	case len(r.runs) >= min(r.o.Running, r.o.Max):
		return busy(fmt.Sprintf("%d jobs run already", len(r.runs)))
	case r.each[one.job.Owner] >= r.o.Each:
		return busy(fmt.Sprintf("%d jobs of yours run already; wait for one of them, or cancel it", r.o.Each))
	}
	r.runs[one.job.ID] = one
	r.each[one.job.Owner]++
	r.work.Add(1)
	return nil
}

func (r *Runner) leave(one *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, one.job.ID)
	if r.each[one.job.Owner]--; r.each[one.job.Owner] == 0 {
		delete(r.each, one.job.Owner)
	}
}

// started waits until it is known whether the call passes.
func (r *Runner) started(ctx context.Context, one *run) (Job, error) {
	waited := time.NewTimer(startTime)
	defer waited.Stop()
	select {
	case <-one.granted:
	case <-one.done:
	case <-waited.C:
	case <-ctx.Done():
		one.cancel(errors.New(reasonCancelled))
		return Job{}, ctx.Err()
	}
	r.mu.Lock()
	one.known = true
	ending := one.ending
	r.mu.Unlock()
	if ending {
		<-one.done
		if one.refused != nil {
			return Job{}, one.refused
		}
	}
	return one.job, nil
}

// ends keeps the outcome of a call: of one that nobody knows of, and that the gate has
// not let pass, nothing.
func (r *Runner) ends(ctx context.Context, one *run, res gate.Result, err error) {
	r.mu.Lock()
	one.ending = true
	known := one.known
	r.mu.Unlock()
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	select {
	case <-one.granted:
		known = true
	default:
	}
	if !known && err != nil {
		if rerr := r.o.Store.RemoveJob(keep, one.job.ID); rerr != nil {
			r.o.Log.LogAttrs(ctx, slog.LevelWarn, "job not removed", slog.String("job", one.job.ID), slog.Any("error", rerr))
		}
		one.refused = err
		r.leave(one)
		close(one.done)
		return
	}
	j := r.outcome(ctx, one.job, res, err)
	r.keep(keep, j, res)
	r.leave(one)
	close(one.done)
}

// outcome returns the job as it has ended.
func (r *Runner) outcome(ctx context.Context, j Job, res gate.Result, err error) Job {
	j.Ended, j.Code, j.Labels, j.Size = time.Now(), gate.Code(err), res.Labels, int64(len(res.Doc.Raw()))
	switch {
	case err == nil && !res.IsError:
		j.State = Completed
	case err == nil:
		j.State, j.Code, j.Reason = Failed, gate.CodeToolError, reasonTool
	case ctx.Err() != nil && j.Code == gate.CodeCancelled:
		j.State, j.Reason = Cancelled, context.Cause(ctx).Error()
	default:
		j.State, j.Reason = Failed, r.o.Public(err)
	}
	return j
}

// keep keeps the outcome, or that it could not be kept.
func (r *Runner) keep(ctx context.Context, j Job, res gate.Result) {
	err := r.o.Store.EndJob(ctx, j, res.Doc)
	if err != nil {
		reason := reasonLost
		if errors.Is(err, ErrTooLarge) {
			reason = reasonTooLarge
		}
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "result not kept", slog.String("job", j.ID), slog.Any("error", err))
		j.State, j.Reason, j.Size = Failed, reason, 0
		err = r.o.Store.EndJob(ctx, j, gate.Doc{})
	}
	if err == nil {
		err = r.Sweep(ctx)
	}
	if err != nil {
		r.o.Log.LogAttrs(ctx, slog.LevelError, "job not kept", slog.String("job", j.ID), slog.Any("error", err))
	}
}

// Status returns a job of an owner. The error is a [*HandleError] if there is none.
func (r *Runner) Status(ctx context.Context, who gate.Owner, id string) (Job, error) {
	j, err := r.o.Store.Job(ctx, who, id)
	return r.now(j), err
}

// now returns a kept job as it is now.
func (r *Runner) now(j Job) Job {
	if !j.Terminal() && j.Node == r.o.Node && r.run(j.Owner, j.ID) == nil {
		j.State, j.Code, j.Reason, j.Ended = Failed, gate.CodeProtocol, reasonLost, j.Started // the store has failed at its end
	}
	if j.Terminal() && !time.Now().Before(j.Expires()) {
		j.Expired, j.Size = true, 0
	}
	return j
}

// run returns a job of an owner that is under way here, or nil.
func (r *Runner) run(who gate.Owner, id string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.runs[id]; one != nil && one.job.Owner == who {
		return one
	}
	return nil
}

// Wait returns a job once it has ended. The error is a [*HandleError], or ctx's.
func (r *Runner) Wait(ctx context.Context, who gate.Owner, id string) (Job, error) {
	if one := r.run(who, id); one != nil {
		select {
		case <-one.done:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
	return r.Status(ctx, who, id)
}

// Result returns a job with what came of its call: a Doc that is absent if there is no
// result, with the Labels that it teaches. A session other than the one in which the
// job was started learns them before anybody in it reads the result: that is for the
// caller to see to, with [gate.Permit.Recall] or [gate.Gate.Recall]. The error is a
// [*HandleError], or [ErrRunning].
func (r *Runner) Result(ctx context.Context, who gate.Owner, id string) (Job, gate.Result, error) {
	j, doc, err := r.o.Store.JobResult(ctx, who, id)
	if err != nil {
		return Job{}, gate.Result{}, err
	}
	j = r.now(j)
	switch {
	case j.Expired:
		return j, gate.Result{}, &HandleError{ID: id, Expired: true}
	case !j.Terminal():
		return j, gate.Result{}, ErrRunning
	}
	return j, gate.Result{Doc: doc, IsError: doc.Get("isError").True(), Labels: j.Labels}, nil
}

// Cancel ends a job if it runs, and returns it as it is then: a call that does not end
// at once may still be running. The error is a [*HandleError], or ctx's.
func (r *Runner) Cancel(ctx context.Context, who gate.Owner, id string) (Job, error) {
	if one := r.run(who, id); one != nil {
		one.cancel(errors.New(reasonCancelled))
		waited := time.NewTimer(cancelTime)
		defer waited.Stop()
		select {
		case <-one.done:
		case <-waited.C:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		}
	}
	return r.Status(ctx, who, id)
}

// List returns jobs of an owner: see [Store.Jobs].
func (r *Runner) List(ctx context.Context, who gate.Owner, after string, limit int) ([]Job, error) {
	all, err := r.o.Store.Jobs(ctx, who, after, limit)
	for i := range all {
		all[i] = r.now(all[i])
	}
	return all, err
}

// Counts counts the jobs of this node.
func (r *Runner) Counts(ctx context.Context) (Counts, error) {
	return r.o.Store.CountJobs(ctx, r.o.Node)
}

// Sweep gives up the outcomes whose time has come, and what is too much.
func (r *Runner) Sweep(ctx context.Context) error {
	return r.o.Store.TrimJobs(ctx, r.o.Node, time.Now(), r.bounds)
}

// Run sweeps until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.o.Log.LogAttrs(ctx, slog.LevelWarn, "jobs not swept", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Drain refuses new jobs, waits for those that run, or for ctx, and cancels the rest.
// It returns when all have ended, but
// does not wait on for one that does not listen.
func (r *Runner) Drain(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
		r.end(errors.New(reasonShutdown))
	}
	select {
	case <-done:
	case <-time.After(endTime): // a tool that does not listen
	}
}

// Close is Drain without waiting for jobs to end by themselves. It may be called again.
func (r *Runner) Close() {
	ctx, cancel := context.WithCancel(r.life)
	cancel()
	r.Drain(ctx)
}
