package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The limits of a confined child that zero fields of [Rules] mean.
const (
	DefaultMemory    = 1 << 30 // bytes
	DefaultProcesses = 64
	DefaultFiles     = 1024
)

// Bounds of what a rule may ask for. minMemory is what a program needs to get
// to its main at all.
const (
	minMemory = 16 << 20
	maxMemory = 1 << 50
	maxCount  = 1 << 20
	maxPaths  = 1024 // of one list; also the ports
	maxCPU    = 365 * 24 * time.Hour
)

// portOfNames is that of DNS (RFC 1035, 4.2).
const portOfNames = 53

// Rules say what a confined child and all that it starts may do. The zero value
// allows what a program needs to start (the system's programs and libraries, names and certificates) and nothing else: it
// reads no file of its user, writes only to a temporary folder of its own, and
// reaches no network.
//
// Whatever they allow, a confined child gains no privileges and holds no
// capability, cannot trace, signal or inspect processes outside of its own
// tree, opens no UDP, raw or Unix domain socket, does not listen, and makes
// neither namespaces nor mounts. SECURITY.md has the whole list, and what is
// not stopped.
type Rules struct {
	// Read, Write and Execute are absolute paths of files and folders; a folder
	// means everything beneath it, and a symbolic link what it points to. Write
	// and Execute include Read, and Write does not include Execute. All of them
	// must exist when the child starts.
	Read, Write, Execute []string
	// Connect are the TCP ports that may be connected to, on any host: Landlock
	// knows no hosts.
	Connect []uint16
	// DNS opens TCP port 53 and has the C library ask over TCP (RES_OPTIONS,
	// resolv.conf(5), use-vc). UDP stays closed, since no filter sees its ports.
	DNS bool
	// Memory is what the child and its descendants may hold together, in bytes;
	// zero means DefaultMemory. A process that asks for more is refused it
	// (RLIMIT_DATA), and a tree that holds more is ended within about a second.
	Memory int64
	// Processes is how many there may be at a time, threads not counted: of
	// those there may be 32 for each process. Zero means DefaultProcesses.
	Processes int
	// Files is how many descriptors a process may hold (RLIMIT_NOFILE); zero
	// means DefaultFiles.
	Files int
	// CPU is how long each process may compute, in whole seconds; zero means
	// without end (RLIMIT_CPU).
	CPU time.Duration
	// BestEffort starts the child also where [Missing] reports something.
	BestEffort bool
}

// checked returns r with its defaults, or what is wrong with it.
func (r Rules) checked() (Rules, error) {
	if r.Memory == 0 {
		r.Memory = DefaultMemory
	}
	if r.Processes == 0 {
		r.Processes = DefaultProcesses
	}
	if r.Files == 0 {
		r.Files = DefaultFiles
	}
	switch {
	case r.Memory < minMemory || r.Memory > maxMemory:
		return r, fmt.Errorf("confine: memory of %d bytes is not from %d to %d", r.Memory, minMemory, int64(maxMemory))
	case r.Processes < 1 || r.Processes > maxCount:
		return r, fmt.Errorf("confine: %d processes are not from 1 to %d", r.Processes, maxCount)
	case r.Files < 8 || r.Files > maxCount:
		return r, fmt.Errorf("confine: %d files are not from 8 to %d", r.Files, maxCount)
	case r.CPU < 0 || r.CPU > maxCPU || r.CPU%time.Second != 0:
		return r, fmt.Errorf("confine: %s of CPU must be a whole number of seconds, from 0 to %s", r.CPU, maxCPU)
	case len(r.Connect) > maxPaths:
		return r, fmt.Errorf("confine: more than %d ports", maxPaths)
	}
	for name, list := range map[string][]string{"read": r.Read, "write": r.Write, "execute": r.Execute} {
		if len(list) > maxPaths {
			return r, fmt.Errorf("confine.%s: more than %d paths", name, maxPaths)
		}
		for _, path := range list {
			if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
				return r, fmt.Errorf("confine.%s: %q is not an absolute path", name, path)
			}
			if _, err := os.Stat(path); err != nil {
				return r, fmt.Errorf("confine.%s: %w; create it or leave it out", name, err)
			}
		}
	}
	return r, nil
}
