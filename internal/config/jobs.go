package config

import "time"

// Jobs says how calls are kept that outlive the request that started them.
type Jobs struct {
	Offer bool `key:"offer"`                // the tools jobs__start and so on
	Tasks bool `key:"tasks" default:"true"` // clients may call tools as tasks of MCP
	// Keep is how long an outcome is kept after the end of its job, Max how many jobs
	// are, and MaxSize how many bytes of their results.
	Keep    time.Duration `key:"keep 1m..365d" default:"24h"`
	Max     int           `key:"max 1..1000000" default:"10000"`
	MaxSize int64         `key:"max_size 1MiB..1024GiB" default:"256MiB"`
}
