package gateway

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/jobtools"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/product"
)

// jobServer keeps the calls that outlive their requests, and is the server of the tools for them.
type jobServer struct {
	*jobs.Runner // nil without Config.Jobs
	store        JobStore
	locals       *locals
	hold         func(context.Context, *gate.Call) (_ context.Context, done func()) // see held.begin
	offered      bool                                                               // its tools are; changed with Gateway.setting
}

// open opens what jobs are kept in. Those that an earlier run has left are failed.
func (j *jobServer) open(ctx context.Context, c *Config) (err error) {
	if c.Jobs == nil {
		return nil
	}
	j.store = new(jobs.Memory)
	if open := c.Jobs.Open; open != nil {
		if j.store, err = open(ctx); err != nil {
			return err
		}
	}
	o := c.Jobs.Options
	o.Store, o.Public = j.store, message.Public
	if o.Log == nil {
		o.Log = c.Log
	}
	j.Runner, err = jobs.New(ctx, o)
	return err
}

// change puts the settings of jobs in place, except where they are kept. The caller holds
// Gateway.setting.
func (j *jobServer) change(next *Jobs) error {
	if j.Runner == nil {
		return nil
	}
	if next == nil {
		next = &Jobs{NoTasks: true}
	}
	j.Runner.Change(next.Options.Keep, next.Options.Max, next.Options.MaxSize)
	before := j.offered
	if before == next.Offer {
		return nil
	}
	j.offered = next.Offer
	if before {
		return j.locals.fleet.Remove(product.JobsServer)
	}
	return j.locals.add(product.JobsServer, j.tools())
}

// offers reports whether the client of a call may know of the calls of a tool.
func (j *jobServer) offers(ctx context.Context, c *gate.Call, tool string) bool {
	return dispatch.Offered(ctx, j.locals.fleet.Lookup, tool, c.Who.Groups, c.Groups)
}

func (j *jobServer) tools() []options.LocalTool {
	return jobtools.New(j.Runner, jobtools.Parts{Offered: j.offers, Hold: j.hold})
}

// Jobs counts the jobs that run, and those whose outcome is kept.
func (g Operator) Jobs() (jobs.Counts, error) {
	if g.jobs.Runner == nil {
		return jobs.Counts{}, nil
	}
	return g.jobs.Counts(g.life)
}
