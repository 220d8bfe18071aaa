package confine

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// startWait bounds the start of a child: a supervisor that has not answered by
// then is a program that does not call Main first.
const startWait = 20 * time.Second

// self is the running program, also if its file was replaced or removed.
const self = "/proc/self/exe"

func supervised() (ok bool, why string) {
	const lacking = ": processes that leave the group of their server outlive it, and so does all that it started if the gateway is killed"
	if !mainCalled.Load() {
		return false, "this program does not call confine.Main" + lacking
	}
	if _, err := os.Stat(self); err != nil {
		return false, "no " + self + lacking
	}
	return true, ""
}

func startTree(ctx context.Context, x *exec.Cmd, under constraints) (tree, error) {
	if ok, _ := supervised(); ok {
		return startSupervised(ctx, x, under)
	}
	// The child dies with the gateway at least, if not its descendants.
	return startGroup(x, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL})
}

// supervision is the gateway's side of a supervisor.
type supervision struct {
	cmd     *exec.Cmd // the supervisor
	pid     int       // of the child, which leads its process group
	pipes   [2]*os.File
	orders  *gob.Encoder
	reports *gob.Decoder
	learn   func(Access) // nil unless the child is learnt from
}

func startSupervised(ctx context.Context, x *exec.Cmd, under constraints) (tree, error) {
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersR.Close()
	reportsR, reportsW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ordersW.Close())
	}
	s := &supervision{
		cmd: &exec.Cmd{
			Path: self, Args: []string{supervisorName, x.Path}, Env: []string{},
			Stdin: x.Stdin, Stdout: x.Stdout, Stderr: x.Stderr, WaitDelay: x.WaitDelay,
			ExtraFiles:  []*os.File{ordersR, reportsW},
			SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // away from the terminal's signals
		},
		pipes:  [...]*os.File{ordersW, reportsR},
		orders: gob.NewEncoder(ordersW), reports: gob.NewDecoder(reportsR), learn: under.learn,
	}
	err = s.cmd.Start()
	reportsW.Close() // now, so that the end of the supervisor is the end of its reports
	if err != nil {
		s.close()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	if err := s.begin(ctx, x, under); err != nil {
		_ = reportsR.SetReadDeadline(time.Time{})
		s.kill()
		// It may be hung before it got to Main.
		hung := time.AfterFunc(killWait, func() { _ = s.cmd.Process.Kill() })
		defer hung.Stop()
		_ = s.wait()
		return nil, err
	}
	return s, nil
}

// begin has the supervisor start x.
func (s *supervision) begin(ctx context.Context, x *exec.Cmd, under constraints) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, errors.New("the supervisor did not answer: is confine.Main called first in main?"))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		for _, p := range s.pipes {
			_ = p.SetDeadline(time.Now())
		}
	})
	err := s.orders.Encode(launch{
		Path: x.Path, Args: x.Args, Env: x.Env, Dir: x.Dir,
		Rules: under.rules, Learn: under.learn != nil, Without: under.without,
	})
	var r report
	if err == nil {
		r, err = s.next()
	} else {
		_ = s.pipes[0].Close() // half an order is followed by none
	}
	s.pid = r.Pid
	switch {
	case !stop():
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("supervisor: %w", err)
	case r.Step != "" && r.Errno != 0:
		return fmt.Errorf("supervisor: %s: %w", r.Step, r.Errno)
	case r.Step != "":
		return fmt.Errorf("supervisor: %s", r.Step)
	case r.Errno == syscall.ENOENT: // resolve has seen the program itself
		return fmt.Errorf("%s: the interpreter that it names: %w", x.Path, r.Errno)
	case r.Errno != 0:
		return fmt.Errorf("%s in %s: %w", x.Path, x.Dir, r.Errno)
	}
	return nil
}

func (s *supervision) terminate() { _ = s.orders.Encode(orderTerminate) }

// kill closes the pipe of orders after the order: a supervisor that cannot read the one sees the
// other. If the order cannot be written, no supervisor is left to read it.
func (s *supervision) kill() {
	_ = s.pipes[0].SetWriteDeadline(time.Now().Add(killWait))
	_ = s.orders.Encode(orderKill)
	_ = s.pipes[0].Close()
}

// next returns the next report that is about the child's start or end. What it
// used comes in between.
func (s *supervision) next() (report, error) {
	for {
		var r report
		if err := s.reports.Decode(&r); err != nil || r.Seen == nil {
			return r, err
		}
		s.learn(*r.Seen)
	}
}

func (s *supervision) wait() error {
	last, lost := s.next()
	err := s.cmd.Wait()
	s.close()
	if lost == nil {
		return ended(last.Status)
	}
	if s.pid > 0 {
		// Somebody killed the supervisor, and Pdeathsig the child with it; this
		// ends what is left of its group. The number is still the group's, or
		// free since a moment: the kernel hands out all others first.
		_ = syscall.Kill(-s.pid, syscall.SIGKILL)
	}
	return fmt.Errorf("supervisor ended without a report: %w", err)
}

func (s *supervision) close() {
	for _, p := range s.pipes {
		_ = p.Close()
	}
}
