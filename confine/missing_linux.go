//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func confines() bool {
	ok, _ := supervised()
	return ok
}

func (r Rules) missing() (list []string) {
	if ok, why := supervised(); !ok {
		return []string{"everything: " + why}
	}
	return r.lacking(landlockABI(), hasListeners())
}

// lacking returns what a kernel with this version of Landlock's interface, and
// with listeners of seccomp or not, cannot enforce.
func (r Rules) lacking(abi int, listeners bool) (list []string) {
	const of = " (Landlock %d, since Linux %s; this kernel has %d)"
	if abi < abiFiles {
		list = append(list, fmt.Sprintf("files"+of, abiFiles, "6.2", abi))
	}
	if abi < abiNetwork && (len(r.Connect) > 0 || r.DNS) {
		list = append(list, fmt.Sprintf("which ports are connected to"+of, abiNetwork, "6.7", abi))
	}
	if !listeners {
		list = append(list, "system calls and the number of processes (seccomp with listeners, since Linux 5.5)")
	}
	return list
}

// canLearn returns why a child cannot be watched, if so.
func canLearn() error {
	if ok, why := supervised(); !ok {
		return errors.New("cannot watch: " + why)
	}
	if !hasListeners() {
		return errors.New("cannot watch: this system has no seccomp listeners (since Linux 5.5)")
	}
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(b)) == "3" {
		return errors.New("cannot watch: this system forbids to look into processes (/proc/sys/kernel/yama/ptrace_scope is 3)")
	}
	return nil
}
