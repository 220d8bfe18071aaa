package app

import (
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/sqlite"
	"github.com/wasmgate/wasmgate/internal/config"
)

// jobsFile is what jobs are kept in, in the state folder.
const jobsFile = "jobs.db"

// jobOptions says how the node keeps jobs.
func jobOptions(c *config.Config, node string) *gateway.Jobs {
	return &gateway.Jobs{
		Open: sqlite.File(filepath.Join(c.State, jobsFile)), Offer: c.Jobs.Offer, NoTasks: !c.Jobs.Tasks,
		Options: jobs.Options{Node: node, Keep: c.Jobs.Keep, Max: c.Jobs.Max, MaxSize: c.Jobs.MaxSize},
	}
}

// countJobs adds to a status how many jobs there are.
func (a *App) countJobs(s *Status) {
	counts, err := a.gateway.Operator().Jobs()
	if err != nil {
		s.Problems = append(s.Problems, "jobs: "+err.Error())
	}
	s.Jobs = counts
}
