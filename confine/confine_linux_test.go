package confine_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// patience is for what must happen; short is for what must not, or is not
// waited for.
const (
	patience = 3 * time.Minute
	short    = 100 * time.Millisecond
)

func TestAChildAnswersAndEndsWithItsInput(t *testing.T) {
	c, out := begin(t, command("echo"))
	line(t, out)
	fmt.Fprintln(c.Stdin(), "hello")
	if got := line(t, out); got != "hello" {
		t.Errorf("echo = %q", got)
	}
	if err := c.Close(patience); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("Wait = %v; the end of input alone ends it with status 0", err)
	}
	if err := c.Close(0); err != nil {
		t.Errorf("second Close = %v", err)
	}
}

func TestWaitTellsHowTheChildEnded(t *testing.T) {
	tests := map[string]struct {
		cmd  confine.Command
		want error
	}{
		"success":       {command("exit", "0"), nil},
		"a status":      {command("exit", "3"), &confine.ExitError{Code: 3}},
		"a high status": {command("exit", "137"), &confine.ExitError{Code: 137}},
		"a signal":      {command("suicide"), &confine.ExitError{Code: -1, Signal: syscall.SIGKILL}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, out := begin(t, tt.cmd)
			if diff := cmp.Diff(tt.want, c.Wait()); diff != "" {
				t.Error(diff)
			}
			if tt.cmd.Args[1] == "exit" && line(t, out) != "last words" {
				t.Error("output is lost once the child has ended")
			}
		})
	}
}

func TestCloseEndsWhoDoesNotListen(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct {
		mode  string
		grace time.Duration
		want  syscall.Signal
	}{
		"to the end of its input":   {"deaf", time.Second, syscall.SIGTERM},
		"to SIGTERM either":         {"stubborn", short, syscall.SIGKILL},
		"and is given no time":      {"deaf", 0, syscall.SIGKILL},
		"having closed its streams": {"closed", time.Second, syscall.SIGTERM},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, out := begin(t, command(tt.mode))
			if tt.mode == "closed" {
				if _, err := io.ReadAll(out); err != nil { // no other process holds its stdout
					t.Fatal(err)
				}
				if _, err := c.Stdin().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
					t.Errorf("write to closed stdin: %v", err)
				}
			} else {
				line(t, out)
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := c.Close(tt.grace); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if diff := cmp.Diff(&confine.ExitError{Code: -1, Signal: tt.want}, c.Wait()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescendantsEndWithTheChild(t *testing.T) {
	unraced.Long(t)
	hydra := filepath.Join(t.TempDir(), "hydra")
	if err := os.WriteFile(hydra, []byte(forward), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cmd   func() confine.Command
		lines int  // spoken once all are there
		alone bool // the child ends by itself
	}{
		"in its group":                         {func() confine.Command { return command("family") }, 2, false},
		"daemons":                              {func() confine.Command { return command("daemon", "stubborn") }, 2, false},
		"daemons of a child that ends at once": {func() confine.Command { return command("daemon", "exit", "0") }, 2, true},
		"forking themselves forward": {func() confine.Command {
			c := command("")
			c.Path, c.Args = hydra, nil
			return c
		}, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := t.Name() + strconv.Itoa(os.Getpid())
			t.Setenv(mark, m)
			c, out := begin(t, tt.cmd())
			for range tt.lines {
				line(t, out)
			}
			if tt.alone {
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
			} else {
				if len(marked(m)) < 2 {
					t.Fatalf("processes before Close: %v", marked(m))
				}
				if err := c.Close(short); err != nil {
					t.Error(err)
				}
			}
			if left := marked(m); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

func TestNothingOutlivesAKilledGateway(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct {
		kind string
		args []string
	}{
		"under a supervisor, with daemons": {"helper", []string{"daemon", "stubborn"}},
		"without Main, a direct child":     {"plain", []string{"stubborn"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := t.Name() + strconv.Itoa(os.Getpid())
			gw, out := beginGateway(t, m, tt.kind, tt.args...)
			if got, want := line(t, out), fmt.Sprint("supervised: ", tt.kind == "helper"); !strings.HasPrefix(got, want) {
				t.Errorf("gateway says %q, want %q", got, want)
			}
			for range tt.args[1:] {
				line(t, out) // the daemon
			}
			_, parent := pids(t, line(t, out))
			if supervises(parent) != (tt.kind == "helper") {
				t.Fatalf("parent is %d", parent)
			}
			if err := gw.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			timelimit.Wait(t, "all processes are gone", func() bool { return len(marked(m)) == 0 && !supervises(parent) })
		})
	}
}

func TestWithoutMainTheGroupEnds(t *testing.T) {
	m := t.Name() + strconv.Itoa(os.Getpid())
	gw, out := beginGateway(t, m, "plain", "family")
	for range 3 {
		line(t, out)
	}
	gw.Stdin.(io.Closer).Close()
	if err := gw.Wait(); err != nil {
		t.Error(err)
	}
	timelimit.Wait(t, "all processes are gone", func() bool { return len(marked(m)) == 0 })
}

func TestTheGroupEndsWithAKilledSupervisor(t *testing.T) {
	m := t.Name() + strconv.Itoa(os.Getpid())
	t.Setenv(mark, m)
	c, out := begin(t, command("family"))
	line(t, out) // the grandchild
	_, supervisor := pids(t, line(t, out))
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	if xe := new(confine.ExitError); err == nil || errors.As(err, &xe) {
		t.Errorf("Wait = %v, want an error about the supervisor", err)
	}
	timelimit.Wait(t, "all processes are gone", func() bool { return len(marked(m)) == 0 })
}

// Only the kernel is left to end this child.
func TestTheChildEndsWithAKilledSupervisorOfAStoppedGateway(t *testing.T) {
	m := t.Name() + strconv.Itoa(os.Getpid())
	gw, out := beginGateway(t, m, "helper", "echo")
	line(t, out)
	child, supervisor := pids(t, line(t, out))
	if !slices.Contains(marked(m), child) {
		t.Fatalf("child %d is not among %v", child, marked(m))
	}
	if err := errors.Join(gw.Process.Signal(syscall.SIGSTOP), syscall.Kill(supervisor, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	timelimit.Wait(t, "the child is gone", func() bool { return !slices.Contains(marked(m), child) })
}

func TestSignalsOfTheTerminalDoNotReachTheChild(t *testing.T) {
	c, out := begin(t, command("echo"))
	child, supervisor := pids(t, line(t, out))
	for _, pid := range []int{child, supervisor} {
		if pgid, err := unix.Getpgid(pid); err != nil || pgid != pid {
			t.Errorf("process %d is in group %d (%v)", pid, pgid, err)
		}
		if sid, err := unix.Getsid(pid); err != nil || sid != supervisor {
			t.Errorf("process %d is in session %d (%v)", pid, sid, err)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(supervisor, sig); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(c.Stdin(), "alive")
	if got := line(t, out); got != "alive" {
		t.Errorf("echo = %q", got)
	}
	if err := c.Close(patience); err != nil || c.Wait() != nil {
		t.Errorf("Close = %v, Wait = %v", err, c.Wait())
	}
}

func TestNothingLeaks(t *testing.T) {
	unraced.Long(t)
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01\x02"), 0o700); err != nil {
		t.Fatal(err)
	}
	once := func() {
		c, _ := begin(t, command("echo"))
		if err := c.Close(patience); err != nil {
			t.Error(err)
		}
		if _, err := confine.Start(t.Context(), confine.Command{Path: garbage}); err == nil {
			t.Error("started a file that is not a program")
		}
	}
	once() // what the runtime opens for itself
	fds, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 50 {
		once()
	}
	if n := descriptors(t); n > fds {
		t.Errorf("%d descriptors before, %d after", fds, n)
	}
	timelimit.Wait(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if left := children(); len(left) > 0 {
		t.Errorf("zombies: %v", left)
	}
}

func TestManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			c, err := confine.Start(t.Context(), command("echo"))
			if err != nil {
				t.Error(err)
				return
			}
			out := bufio.NewReader(c.Stdout())
			out.ReadString('\n')
			fmt.Fprintln(c.Stdin(), i)
			if got, err := out.ReadString('\n'); got != fmt.Sprintln(i) {
				t.Errorf("echo = %q, %v", got, err)
			}
			// Each sees the end of its input although the others run.
			if err := errors.Join(c.Close(patience), c.Wait()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := children(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSupervisedAfterMain(t *testing.T) {
	if ok, why := confine.Supervised(); !ok || why != "" {
		t.Errorf("Supervised = %v, %q", ok, why)
	}
}

// BenchmarkStart measures a child's whole life: start, an answer, end.
func BenchmarkStart(b *testing.B) {
	cmd := confine.Command{Path: "/bin/cat"}
	b.ReportAllocs()
	for b.Loop() {
		c, err := confine.Start(b.Context(), cmd)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintln(c.Stdin(), "x")
		c.Stdout().Read(make([]byte, 2))
		if err := c.Close(patience); err != nil {
			b.Fatal(err)
		}
	}
}

// forward is a process that forks and exits, over and over, in about 0.3 ms.
// Shells limit recursion, hence the exec.
const forward = `#!/bin/sh
trap '' TERM
[ "$1" ] || echo
n=0
h() { n=$((n+1)); [ $n -lt 500 ] || exec "$0" again; h & exit; }
h
`
