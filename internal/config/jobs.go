package config

import "time"

// Jobs says how calls are kept that outlive the request that started them.
type Jobs struct {
	Offer bool // the tools jobs__start and so on
	Tasks bool // clients may call tools as tasks of MCP
	// Keep is how long an outcome is kept after the end of its job, Max how many jobs
	// are, and MaxSize how many bytes of their results.
	Keep    time.Duration
	Max     int
	MaxSize int64
}

// Defaults of jobs.
const (
	DefaultJobKeep = 24 * time.Hour
	DefaultJobs    = 10_000
	DefaultJobSize = 256 << 20 // bytes
)

func defaultJobs() Jobs {
	return Jobs{Tasks: true, Keep: DefaultJobKeep, Max: DefaultJobs, MaxSize: DefaultJobSize}
}

func (d *decoder) jobs(to *Jobs, n *node, path string) {
	d.table(n, path, map[string]reader{
		"offer":    d.flag(&to.Offer),
		"tasks":    d.flag(&to.Tasks),
		"keep":     d.duration(&to.Keep, time.Minute, 365*24*time.Hour),
		"max":      d.count(&to.Max, 1, 1_000_000),
		"max_size": d.size(&to.MaxSize, 1<<20, 1<<40),
	})
}
