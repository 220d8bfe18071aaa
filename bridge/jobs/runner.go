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
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/drain"
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

// Meanings of zero fields of [Options].
const (
	defaultKeep    = 24 * time.Hour
	defaultMax     = 10_000
	defaultMaxSize = 256 << 20
	defaultRunning = 1000
	defaultEach    = 64
)

const (
	// startTime is how long a start waits for the gate to let the call pass, so that the client
	// that started it gets a refusal as its answer. It is a little more than calls are held for a person
	// to approve.
	startTime = 60 * time.Second
	// endTime bounds how long the end of a job may take to be kept.
	endTime = 10 * time.Second
	// cancelTime is how long a cancellation waits for the call to end.
	cancelTime = 5 * time.Second
	// look is how often the state of jobs of other nodes is looked at.
	look = 250 * time.Millisecond
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
	reasonGone      = "the gateway that carried out the call is gone"
	reasonTool      = "the tool reports a failure"
	reasonTooLarge  = "the result is larger than the gateway keeps; call the tool without a job, or for less"
	reasonLost      = "the outcome could not be kept"
)

// A Runner carries out jobs. Use it from several goroutines.
type Runner struct {
	o    Options
	boot string
	life context.Context // of all jobs
	end  context.CancelCauseFunc
	work drain.Counter

	mu   sync.Mutex // also of what of o can change
	runs map[string]*run
	each map[gate.Owner]int
}

var nodePattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// New returns a runner. Jobs that an earlier run of the same node has left running are failed:
// nothing carries them out any more. It starts nothing; see [Runner.Run].
func New(ctx context.Context, o Options) (*Runner, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	r := &Runner{
		o: o, boot: strings.ToLower(rand.Text()[:8]),
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

// fill puts the defaults in, and reports what cannot be.
func (o *Options) fill() error {
	if o.Store == nil {
		return errors.New("without a store no result can be fetched later")
	}
	if o.Node == "" {
		o.Node = "local"
	}
	if !nodePattern.MatchString(o.Node) {
		return fmt.Errorf("node %q: expected letters, digits and hyphens, at most 64", o.Node)
	}
	if o.Keep < 0 || o.Max < 0 || o.MaxSize < 0 || o.Running < 0 || o.Each < 0 {
		return errors.New("a limit is negative: zero means the default of Keep, Max, MaxSize, Running and Each")
	}
	setDefault(&o.Keep, defaultKeep)
	setDefault(&o.Max, defaultMax)
	setDefault(&o.MaxSize, defaultMaxSize)
	setDefault(&o.Running, defaultRunning)
	setDefault(&o.Each, defaultEach)
	if o.Public == nil {
		o.Public = gate.Code
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Counts counts the jobs of this node.
func (r *Runner) Counts(ctx context.Context) (Counts, error) {
	return r.o.Store.CountJobs(ctx, r.o.Node)
}

// Change replaces the bounds [Options].Keep, Max and MaxSize, with the same meanings. A job that
// has begun is kept for as long as its client was told.
func (r *Runner) Change(keep time.Duration, most int, size int64) {
	setDefault(&keep, defaultKeep)
	setDefault(&most, defaultMax)
	setDefault(&size, defaultMaxSize)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.o.Keep, r.o.Max, r.o.MaxSize = keep, most, size
}

// bounds returns how long an outcome is kept, and how many are.
func (r *Runner) bounds() (keep time.Duration, all Bounds) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.o.Keep, Bounds{Jobs: r.o.Max, Bytes: r.o.MaxSize, After: forgetAfter}
}

// Sweep gives up the outcomes whose time has come, and what is too much.
func (r *Runner) Sweep(ctx context.Context) error {
	_, bounds := r.bounds()
	if s, ok := r.o.Store.(Shared); ok {
		if err := r.sweepShared(ctx, s); err != nil {
			return err
		}
	}
	return r.o.Store.TrimJobs(ctx, r.o.Node, time.Now(), bounds)
}

// sweepShared ends jobs as failed that other nodes would take for running ones: those whose node is
// gone, and those whose end could not be kept here.
func (r *Runner) sweepShared(ctx context.Context, s Shared) error {
	n, err := s.LoseJobs(ctx, time.Now(), reasonGone)
	if err != nil {
		return err
	}
	if n > 0 {
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "jobs failed", slog.Int("jobs", n), slog.String("reason", reasonGone))
	}
	all, err := s.RunningJobs(ctx, r.o.Node)
	if err != nil {
		return err
	}
	for _, j := range all {
		if r.run(j.Owner, j.ID) != nil { // it leaves its run only once its end is kept
			continue
		}
		j.State, j.Code, j.Reason, j.Ended = Failed, codes.Protocol, reasonLost, time.Now()
		if err := s.EndJob(ctx, j, gate.Doc{}); err != nil {
			return err
		}
	}
	return nil
}

// Run sweeps until ctx ends, and ends the jobs that other nodes want to end.
func (r *Runner) Run(ctx context.Context) {
	if s, ok := r.o.Store.(Shared); ok {
		var obeying sync.WaitGroup
		defer obeying.Wait()
		obeying.Go(func() { r.obey(ctx, s) })
	}
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

// obey cancels jobs that are to end at the word of other nodes.
func (r *Runner) obey(ctx context.Context, s Shared) {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		r.mu.Lock()
		idle := len(r.runs) == 0
		r.mu.Unlock()
		if idle {
			continue
		}
		asked, _ := s.CancelsAsked(ctx, r.o.Node) // the next look finds what this one could not
		for id, reason := range asked {
			r.mu.Lock()
			one := r.runs[id]
			r.mu.Unlock()
			if one != nil {
				one.cancel(errors.New(reason))
			}
		}
	}
}

// Drain refuses new jobs, waits for those that run, or for ctx, and cancels the rest.
// It returns when all have ended, but does not wait on for one that does not listen.
func (r *Runner) Drain(ctx context.Context) {
	if r.work.Drain(ctx) != nil {
		_ = r.Close(context.WithoutCancel(ctx))
	}
}

// Close cancels jobs, and waits for a while until they have ended, or for ctx: then the error
// says how many have not. It may be called again.
func (r *Runner) Close(ctx context.Context) error {
	r.work.Close()
	r.end(errors.New(reasonShutdown))
	ctx, cancel := context.WithTimeout(ctx, endTime) // there are tools that do not listen
	defer cancel()
	if err := r.work.Drain(ctx); err != nil {
		return fmt.Errorf("%d jobs did not end in time, so their end is not recorded: %w", r.work.Count(), err)
	}
	return nil
}
