package gateway

import (
	"context"
	"io"

	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/jobtools"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/jobs"
)

// Jobs says how calls are kept that outlive the request that started them.
type Jobs struct {
	// Open opens what they are kept in, which ends with the gateway, such as a file of
	// package bridge/sqlite; nil keeps them in memory.
	Open func(context.Context) (JobStore, error)
	// Offer has the tools of the server jobs offered: jobs__start and so on.
	Offer bool
	// NoTasks does not offer clients to call tools as tasks (MCP 2025-11-25,
	// basic/utilities/tasks; 2026-07-28, the extension of that name).
	NoTasks bool
	// Options bound them; New sets the Store and Public, and the Log if it is nil.
	Options jobs.Options
}

// A JobStore keeps jobs.
type JobStore interface {
	jobs.Store
	io.Closer
}

// JobServer is the server of the tools that start jobs and fetch their outcomes.
const JobServer = jobtools.Server

// Relays reports whether the tools of a server carry out calls of others: then it is of the
// gateway's own.
func Relays(server string) bool { return server == CatalogServer || server == JobServer }

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
	o.Store, o.Public = g.store, Public
	if o.Log == nil {
		o.Log = g.cfg.Log
	}
	g.jobs, err = jobs.New(ctx, o)
	return err
}

// setJobs puts what is said of jobs in place, but where they are kept. The caller holds
// setting.
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
		return g.fleet.Remove(JobServer)
	}
	return g.addLocal(JobServer, g.jobTools())
}

// Jobs counts the jobs that run, and those whose outcome is kept.
func (g *Gateway) Jobs() (jobs.Counts, error) {
	if g.jobs == nil {
		return jobs.Counts{}, nil
	}
	return g.jobs.Counts(g.life)
}

// offers reports whether the client of a call may know of the calls of a tool.
func (g *Gateway) offers(ctx context.Context, c *gate.Call, tool string) bool {
	return host.Offered(ctx, g.fleet.Lookup, tool, c.Who.Groups, c.Groups)
}

// jobTools are the tools of the server jobs.
func (g *Gateway) jobTools() []LocalTool {
	return jobtools.New(g.jobs, jobtools.Parts{Offered: g.offers, Hold: g.held.begin})
}
