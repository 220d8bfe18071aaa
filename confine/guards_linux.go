//go:build amd64 || arm64

package confine

// The guards, by the names under which tests leave one out.
const (
	guardFiles     = "files"     // Landlock: paths
	guardNetwork   = "network"   // Landlock: TCP ports
	guardSignals   = "signals"   // Landlock: scopes, or else the supervisor
	guardCalls     = "calls"     // seccomp: what no server needs
	guardSockets   = "sockets"   // seccomp: other networks than TCP
	guardProcesses = "processes" // the supervisor lets them be made or not
	guardMemory    = "memory"    // RLIMIT_DATA
	guardTree      = "tree"      // the supervisor's look at the memory of all
	guardFDs       = "fds"       // RLIMIT_NOFILE
	guardCPU       = "cpu"       // RLIMIT_CPU
	guardCaps      = "capabilities"
	// guardScopes stands for kernels before Linux 6.12, on which the supervisor
	// judges signals.
	guardScopes = "scopes"
	// guardListeners stands for kernels without listeners, and so best effort.
	guardListeners = "listeners"
)

func (l *launch) on(guard string) bool { return l.Without != guard }
