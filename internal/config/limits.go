package config

// Limits bound one call and all of them.
type Limits struct {
	Body       int64 // bytes of a request
	Result     int64 // bytes of an upstream's answer
	Concurrent int   // calls in progress
	Session    int   // those of one session; zero sets no limit of its own
	Processes  int   // of one server that belong to a client each; zero: 16. At most 64 of all servers together
	Tools      []ToolLimit
}

// A ToolLimit is how many calls may be in progress of each tool that Pattern
// matches: a literal, or a literal with * at its end. The first that matches counts.
type ToolLimit struct {
	Pattern    string
	Concurrent int
}

func (d *decoder) limits(to *Limits, n *node, path string) {
	d.table(n, path, map[string]reader{
		"body":       d.size(&to.Body, 1<<10, maxSize),
		"result":     d.size(&to.Result, 1<<10, maxSize),
		"concurrent": d.count(&to.Concurrent, 1, maxConcurrent),
		"session":    d.count(&to.Session, 1, maxConcurrent),
		"processes":  d.count(&to.Processes, 1, maxProcesses),
		"tools":      func(n *node, path string) { d.toolLimits(&to.Tools, n, path) },
	})
}

const maxSize = 1 << 30 // of what is held in memory, in bytes

const (
	// maxConcurrent bounds limits on calls in progress.
	maxConcurrent = 65_536
	// maxProcesses bounds those on processes of a server.
	maxProcesses = 1_024
)

func (d *decoder) toolLimits(to *[]ToolLimit, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		l := ToolLimit{Pattern: f.key}
		if err := checkTools(f.key); err != nil {
			d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
		}
		d.count(&l.Concurrent, 1, maxConcurrent)(f.value, path)
		*to = append(*to, l)
	})
}
