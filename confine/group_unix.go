//go:build unix

package confine

import (
	"os/exec"
	"runtime"
	"syscall"
)

// group is a child without a supervisor: its process group.
type group struct {
	cmd  *exec.Cmd
	done chan error // of the wait for the child itself
}

// startGroup starts x as attr says, which must make it lead a process group.
func startGroup(x *exec.Cmd, attr *syscall.SysProcAttr) (tree, error) {
	x.SysProcAttr = attr
	g := &group{cmd: x, done: make(chan error, 1)}
	started := make(chan error)
	go func() {
		// On Linux Pdeathsig means the death of the thread that forked, so this
		// one stays as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := x.Start()
		started <- err
		if err == nil {
			g.done <- x.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// The number of a group is in use until its last process is gone, and free for
// a moment only before wait has returned: the kernel hands out all others first.

func (g *group) terminate() { _ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGTERM) }
func (g *group) kill()      { _ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) }

func (g *group) wait() error {
	err := <-g.done
	g.kill() // what the child left behind
	if g.cmd.ProcessState == nil {
		return err
	}
	return ended(g.cmd.ProcessState.Sys().(syscall.WaitStatus))
}

// ended returns nil for the status 0, else an [*ExitError].
func ended(ws syscall.WaitStatus) error {
	if ws.Signaled() {
		return &ExitError{Code: -1, Signal: ws.Signal()}
	}
	if ws.ExitStatus() != 0 {
		return &ExitError{Code: ws.ExitStatus()}
	}
	return nil
}
