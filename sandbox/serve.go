package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// A ServeConfig configures one run of a module that serves.
type ServeConfig struct {
	Args []string // after the module's name
	// MaxLine is how many bytes the guest may write without the end of a line.
	// Zero means 10 MiB.
	MaxLine int64
}

const defaultMaxLine = 10 << 20

// Serve runs a module that was compiled as a server, an MCP server for example, on its standard
// streams, until it exits or ctx ends. Its output goes to stdout as it comes; its stderr is logged.
//
// Fuel and Timeout of the module's limits bound what the guest does for one line of
// input: they begin anew when it begins to read the next, and time that it waits for
// input is no work. So a server may live as long as it has clients, and none can spin,
// or sleep. Like calls it runs in its turn. Its state lives as long as the call of
// Serve, which has an instance of its own.
//
// The error is nil if the guest exits with 0, and otherwise a [*Trap] or wraps ctx.Err(). The guest
// has no host: functions that need one give it nothing.
func (m *Module) Serve(ctx context.Context, stdin *Pipe, stdout io.Writer, cfg ServeConfig) (err error) {
	defer stdin.end()
	if !m.server {
		return fmt.Errorf("sandbox: module %q was not compiled as a server", m.name)
	}
	if err := m.runtime.begin(); err != nil {
		return err
	}
	defer m.runtime.end()
	c := newCall(ctx, m, m.name, nil, CallConfig{}, m.limits)
	c.begin()
	if err := c.turn.Enter(c); err != nil {
		return c.busy(err)
	}
	defer c.turn.Leave()
	s, _, err := c.prepare()
	if err != nil {
		return err
	}
	max := cfg.MaxLine
	if max == 0 {
		max = defaultMaxLine
	}
	c.serving = true
	if c.process == nil {
		c.process = c.newProcess() // for a command that does not even read
	}
	c.process.Args = append(c.process.Args, cfg.Args...)
	c.process.Stdin, c.process.NonblockStdin = &served{call: c, pipe: stdin}, m.nonblocking
	stderr := &logLines{call: c}
	defer stderr.flush()
	c.process.Stdout, c.process.Stderr = &lines{call: c, to: stdout, max: max}, stderr
	defer c.finish(&Result{}, &err)
	in, err := m.acquire(c, s)
	if err != nil {
		return c.outcome(err)
	}
	defer func() {
		c.measure(in)
		_ = in.close(context.WithoutCancel(ctx)).Close() // only unmaps
	}()
	in.fuel.begin()
	c.meter.globals = in.fuel
	return c.outcome(c.runServer(in))
}

func (c *call) runServer(in *instance) error {
	if err := c.initialize(in); err != nil {
		return err
	}
	err := c.invoke(in.function(exportStart), nil)
	var exit *sys.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && exit.ExitCode() == 0:
		return nil
	}
	return c.failure("it ended", err)
}

// served is the stdin of a server. Only the guest's goroutine uses it.
type served struct {
	call   *call
	pipe   *Pipe
	within bool // a line, whose beginning the guest has read
}

var _ wasi.Waiter = (*served)(nil)

// Wait implements [wasi.Waiter]. The guest's time stands still meanwhile.
func (s *served) Wait(ctx context.Context) (ready bool) {
	if s.pipe.ready() || ctx.Err() != nil {
		return s.pipe.ready()
	}
	life, begun := &s.call.lifetime, time.Now()
	left := life.deadline.Sub(begun)
	life.deadline = begun.Add(maxWait)
	defer func() { life.deadline = time.Now().Add(left) }()
	s.call.away(func() { ready = s.pipe.wait(ctx) })
	return ready
}

// maxWait is how long a server may wait for input: for ever.
const maxWait = 100 * 365 * 24 * time.Hour

// Read implements [io.Reader]. It reads one line at most, so that each has its time.
func (s *served) Read(p []byte) (int, error) {
	if !s.Wait(s.call) {
		return 0, s.call.parent.Err()
	}
	n, err := s.pipe.read(p)
	if n > 0 && !s.within {
		s.call.meter.renew(s.call.limits)
		s.call.log.bytes = 0
	}
	if n > 0 {
		s.within = p[n-1] != '\n'
	}
	return n, err
}

// lines passes on what a server writes, as long as it writes lines.
type lines struct {
	call     *call
	to       io.Writer
	max, len int64
}

var errLine = errors.New("a line is too long")

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (n int, err error) {
	if end := bytes.LastIndexByte(p, '\n'); end >= 0 {
		l.len = int64(len(p) - end - 1)
	} else {
		l.len += int64(len(p))
	}
	if l.len > l.max {
		return 0, errLine
	}
	l.call.away(func() { n, err = l.to.Write(p) })
	return n, err
}

// logLines logs what a server writes to stderr, line by line, in however many pieces it
// writes them.
type logLines struct {
	call *call
	line []byte // that has not ended yet
}

// maxLogLine is where a line is cut.
const maxLogLine = 4 << 10

// Write implements [io.Writer].
func (l *logLines) Write(p []byte) (int, error) {
	for piece := range bytes.Lines(p) {
		l.line = append(l.line, piece...)
		if piece[len(piece)-1] == '\n' || len(l.line) >= maxLogLine {
			l.flush()
		}
	}
	return len(p), nil
}

func (l *logLines) flush() {
	if text := bytes.TrimRight(l.line, "\r\n"); len(text) > 0 {
		l.call.log.message(levels[1], text)
	}
	l.line = l.line[:0]
}
