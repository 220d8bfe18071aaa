package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// stderrWait bounds the wait for the end of stderr once the child is gone;
// a process out of reach may hold it open.
const stderrWait = time.Second

// Main runs the supervisor of a child if this process was started to be one,
// and then does not return. Otherwise it returns at once.
//
// Call it first in main, and in TestMain of tests that start children: what a
// program does before runs again in each supervisor. Programs that do not call
// it get the weaker guarantees of process groups (see [Supervised]).
func Main() {
	superviseIfAsked()
	mainCalled.Store(true)
}

// Supervised reports whether children started from now on are ended with all
// their descendants however this process ends. If not, why says what is
// lacking.
func Supervised() (ok bool, why string) { return supervised() }

// A Command says what to start. Only Path is required.
type Command struct {
	// Path is a file, or a name without separator that is looked up in the PATH
	// of Env. A relative file is meant from Dir. Entries of PATH that are not
	// absolute are passed over.
	Path string
	// Args are the arguments after the name of the program.
	Args []string
	// Env is the whole environment of the child, as "name=value"; see
	// [Environ]. Of several entries for one name the last counts. Nothing is
	// added, except SystemRoot on Windows, where hardly a program starts
	// without.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// Stderr receives what the child writes to stderr. A file is handed to the
	// child as it is; anything else is written by one goroutine, and bounding
	// it is the writer's business. Nil discards.
	Stderr io.Writer
	// Confine says what the child may do; nil restricts nothing. Start fails with
	// a [*MissingError] if the system cannot enforce it. A confined child has a
	// temporary folder of its own, which TMPDIR names and which goes with it.
	Confine *Rules
	// Learn is called with what the child and its descendants use: see [Propose]. Confine must be
	// nil then. One goroutine at a time calls it, until Wait returns. Nil watches nothing.
	Learn func(Access)

	without string // the guard that a test leaves out
}

// A Child is a started command with its descendants. Its methods may be used
// from several goroutines. It must be closed, also if it ended by itself.
type Child struct {
	name   string
	tree   tree
	stdin  *os.File
	stdout *os.File

	done chan struct{} // closed when the whole tree has ended
	err  error         // of the direct child, once done

	closing  sync.Once
	closeErr error
}

// CPUTime returns what the child and its descendants have had of processors so far: what
// grows while they work. It is 0 where the system does not tell, and without a supervisor.
func (c *Child) CPUTime() time.Duration {
	if t, ok := c.tree.(interface{ cpuTime() time.Duration }); ok {
		return t.cpuTime()
	}
	return 0
}

// Start starts cmd. The error says what could not be executed and why, in the
// words of the operating system where it refused.
//
// ctx bounds only the start: once Start has returned a child, ctx is forgotten. If ctx ends
// earlier, nothing is left running.
func Start(ctx context.Context, cmd Command) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("exec %q: %w", cmd.Path, err)
	}
	x, err := cmd.resolve()
	if _, ok := errors.AsType[notFoundError](err); ok {
		return nil, err // it names the program
	}
	if err != nil {
		return nil, fmt.Errorf("exec %q: %w", cmd.Path, err)
	}
	under, err := cmd.constraints()
	if err != nil {
		return nil, fmt.Errorf("exec %q: %w", cmd.Path, err)
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer stdout.Close()
	x.Stdin, x.Stdout = stdin, stdout
	t, err := startTree(ctx, x, under)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("exec %q: %w", cmd.Path, err), in.Close(), out.Close())
	}
	c := &Child{name: cmd.Path, tree: t, stdin: in, stdout: out, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = t.wait()
	}()
	return c, nil
}

func (c Command) constraints() (constraints, error) {
	under := constraints{learn: c.Learn, without: c.without}
	switch {
	case c.Learn != nil && c.Confine != nil:
		return under, errors.New("a server that is watched cannot be confined at the same time")
	case c.Learn != nil:
		return under, canLearn()
	case c.Confine == nil:
		return under, nil
	}
	var err error
	under.rules, err = c.Confine.confined()
	return under, err
}

// resolve checks the parts of c and returns the process they describe, with
// absolute paths.
func (c Command) resolve() (*exec.Cmd, error) {
	if err := noNUL("argument", c.Args); err != nil {
		return nil, err
	}
	if err := noNUL("environment entry", c.Env); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working directory: %s is not a directory", dir)
	}
	x := &exec.Cmd{
		Args: append([]string{c.Path}, c.Args...),
		Env:  append([]string{}, c.Env...), // not nil, which would mean: inherit
		Dir:  dir, Stderr: c.Stderr, WaitDelay: stderrWait,
	}
	x.Env = x.Environ() // one entry a name
	x.Path, err = lookPath(c.Path, dir, x.Env)
	return x, err
}

// Stdin returns the pipe to the child's standard input.
func (c *Child) Stdin() io.WriteCloser { return c.stdin }

// Stdout returns the pipe from the child's standard output. It can be read to
// its end after the child has ended, until Close.
func (c *Child) Stdout() io.ReadCloser { return c.stdout }

// Wait returns when the child and its descendants have ended. The error is nil
// if the child exited with status 0, an [*ExitError] if it ended otherwise.
func (c *Child) Wait() error {
	<-c.done
	return c.err
}

// Close ends the child and its descendants: it closes stdin, after grace sends SIGTERM, after
// another grace SIGKILL, and returns when all have ended. It ends them at once if grace is 0. The
// error names processes that outlived even SIGKILL by 5 s; how the child ended is what [Child.Wait]
// returns.
//
// Close may be called again and concurrently; all calls return when the first
// does.
func (c *Child) Close(grace time.Duration) error {
	c.closing.Do(func() {
		_ = c.stdin.Close() // perhaps closed by its user
		if !c.endsWithin(grace) {
			if grace > 0 {
				c.tree.terminate()
			}
			if !c.endsWithin(grace) {
				c.tree.kill()
				if !c.endsWithin(killWait) {
					c.closeErr = fmt.Errorf("close %q: still running %s after SIGKILL", c.name, killWait)
				}
			}
		}
		_ = c.stdout.Close() // perhaps closed by its user
	})
	return c.closeErr
}

func (c *Child) endsWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.done:
		return true
	case <-t.C:
		return false
	}
}
