//go:build unix && !linux

package confine

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
)

func superviseIfAsked() {}

func supervised() (ok bool, why string) {
	return false, runtime.GOOS + " has no subreaper: processes that leave the group of their server outlive it, and so does the server itself if the gateway is killed, unless it heeds the end of its input"
}

func startTree(_ context.Context, x *exec.Cmd, _ constraints) (tree, error) {
	return startGroup(x, &syscall.SysProcAttr{Setpgid: true})
}
