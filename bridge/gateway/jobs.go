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

// newJobs opens what jobs are kept in. Those that an earlier run has left are failed.
func (g *Gateway) newJobs(ctx context.Context) (err error) {
	if g.cfg.Jobs == nil {
		return nil
	}
	g.store = new(jobs.Memory)
	if open := g.cfg.Jobs.Open; open != nil {
		if g.store, err = open(ctx); err != nil {
			return err
		}
	}
	o := g.cfg.Jobs.Options
	o.Store, o.Public = g.store, message.Public
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.jobs, err = jobs.New(ctx, o)
	return err
}

// setJobs puts the settings of jobs in place, except where they are kept. The caller holds setting.
func (g *Gateway) setJobs(next *Jobs) error {
	if g.jobs == nil {
		return nil
	}
	if next == nil {
		next = &Jobs{NoTasks: true}
	}
	g.jobs.Change(next.Options.Keep, next.Options.Max, next.Options.MaxSize)
	before := g.jobsOffered
	if before == next.Offer {
		return nil
	}
	g.jobsOffered = next.Offer
	if before {
		return g.fleet.Remove(product.JobsServer)
	}
	return g.addLocal(product.JobsServer, g.jobTools())
}

// Jobs counts the jobs that run, and those whose outcome is kept.
func (g operator) Jobs() (jobs.Counts, error) {
	if g.jobs == nil {
		return jobs.Counts{}, nil
	}
	return g.jobs.Counts(g.life)
}

// offers reports whether the client of a call may know of the calls of a tool.
func (g *Gateway) offers(ctx context.Context, c *gate.Call, tool string) bool {
	return dispatch.Offered(ctx, g.fleet.Lookup, tool, c.Who.Groups, c.Groups)
}

// jobTools are the tools of the server jobs.
func (g *Gateway) jobTools() []options.LocalTool {
	return jobtools.New(g.jobs, jobtools.Parts{Offered: g.offers, Hold: g.held.begin})
}
