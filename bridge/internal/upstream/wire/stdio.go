package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// childGrace is how long a child gets at each step of its end: after its
	// input is closed, and after it was asked to terminate.
	childGrace = 2 * time.Second
	// maxUnwritten bounds the messages that wait for a server to read.
	maxUnwritten = 16
)

// ChildMain runs the supervisor of a stdio server if this process was started
// as one, and does not return then. Programs that use this package call it
// first in main; without it a killed gateway can leave servers behind.
func ChildMain() { confine.Main() }

// StdioConn speaks with a child process in lines (MCP 2025-11-25,
// basic/transports, stdio).
type StdioConn struct {
	child  *confine.Child
	stderr *stderrLog
	max    int64 // bytes of a message
	log    *slog.Logger
	to     func(gate.Doc, int64)
	large  func(string, *mcp.TooLarge)
	ending func(error)

	pipe    syscall.RawConn // its input, if that can be written to without waiting; else nil
	writing sync.Mutex      // held over each write to it

	lines  chan *outgoing // to be written
	deaf   chan struct{}  // closed when the server no longer reads
	ended  chan struct{}  // closed by close
	writer sync.WaitGroup // of the one goroutine that writes

	closing  sync.Once
	closeErr error
}

// StartStdio starts a server whose messages have at most max bytes. What it writes on its
// standard error is logged at a level.
func StartStdio(ctx context.Context, cmd confine.Command, max int64, log *slog.Logger, said slog.Level) (*StdioConn, error) {
	stderr := &stderrLog{log: log, level: said}
	cmd.Stderr = stderr
	child, err := confine.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	c := &StdioConn{
		child: child, stderr: stderr, max: max, log: log,
		lines: make(chan *outgoing, maxUnwritten), deaf: make(chan struct{}), ended: make(chan struct{}),
	}
	if in, ok := child.Stdin().(syscall.Conn); ok {
		c.pipe, _ = in.SyscallConn()
	}
	return c, nil
}

// outgoing is a line for a server. The first that takes it decides: either the writer writes it, or
// its sender has gone.
type outgoing struct {
	text    []byte
	taken   atomic.Bool
	written chan error // room for one
}

func (o *outgoing) take() bool { return o.taken.CompareAndSwap(false, true) }

// withdraw returns err, marked, if the line is not written any more, and else what came
// of the writing.
func (o *outgoing) withdraw(ctx context.Context, err error) error {
	if o.take() {
		return &Unseen{err}
	}
	select {
	case err := <-o.written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var (
	errDeaf   = errors.New("the server does not read its input any more")
	errEnding = errors.New("the server is ending")
)

// Send writes msg if there is room for it at once, and otherwise hands it to the writer, because a
// write to a server that does not read would block, even after the end of ctx.
func (c *StdioConn) Send(ctx context.Context, msg []byte, _ http.Header) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if bytes.ContainsAny(msg, "\r\n") { // white space between values: no string can hold them
		msg = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, msg)
	}
	msg = append(msg, '\n')
	if c.pipe != nil && c.writing.TryLock() {
		sent := writeNow(c.pipe, msg)
		c.writing.Unlock()
		if sent {
			return nil
		}
	}
	line := &outgoing{text: msg, written: make(chan error, 1)}
	select {
	case c.lines <- line:
	case <-c.deaf:
	case <-c.ended:
	case <-ctx.Done():
	}
	select {
	case err := <-line.written:
		return err
	case <-c.deaf:
		return line.withdraw(ctx, errDeaf)
	case <-c.ended:
		return line.withdraw(ctx, errEnding)
	case <-ctx.Done():
		return line.withdraw(ctx, ctx.Err())
	}
}

// write writes until the connection is closed. A server that has closed its
// input is ended, after the time to say its last.
func (c *StdioConn) write() {
	for {
		select {
		case line := <-c.lines:
			taken, err := c.writeLine(line)
			if !taken {
				continue
			}
			line.written <- err
			if err != nil {
				c.ending(errDeaf)
				close(c.deaf)
				_ = c.child.Close(childGrace) // close says what it says again
				return
			}
		case <-c.ended:
			return
		}
	}
}

// writeLine writes a line, unless its sender has gone.
func (c *StdioConn) writeLine(line *outgoing) (taken bool, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !line.take() {
		return false, nil
	}
	n, err := c.child.Stdin().Write(line.text)
	if err != nil && n == 0 {
		err = &Unseen{err}
	}
	return true, err
}

func (c *StdioConn) bind(deliver func(gate.Doc, int64), tooLarge func(string, *mcp.TooLarge), ending func(error)) {
	c.to, c.large, c.ending = deliver, tooLarge, ending
}

func (c *StdioConn) receive() error {
	c.writer.Go(c.write)
	r := bufio.NewReaderSize(c.child.Stdout(), 64<<10)
	noise := noise{log: c.log}
	for {
		line, err := mcp.ReadLine(r, c.max)
		if long, ok := errors.AsType[*mcp.ProtocolError](err); ok {
			if err = c.skip(r, line, long); err == nil {
				continue
			}
		}
		if err != nil {
			return c.endOf(err, noise.heard)
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
		if len(line) == 0 {
			continue
		}
		if isBatch(line) {
			return &mcp.ProtocolError{Err: errors.New("the server sent a JSON-RPC batch, which MCP does not allow")}
		}
		doc, err := parseMessage(line)
		if err != nil && isNoise(line) {
			if err := noise.add(line, time.Now()); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		noise.heard = false
		c.to(doc, 0)
	}
}

// skip reads a message that is too large to its end, and fails the request that it
// answers: the server has a state, and other clients, that go on.
func (c *StdioConn) skip(r *bufio.Reader, begun []byte, long error) error {
	var skim mcp.Skim
	_, _ = skim.Write(begun)
	for ended := bytes.HasSuffix(begun, []byte("\n")); !ended; {
		part, err := r.ReadSlice('\n')
		_, _ = skim.Write(part)
		if ended = err == nil; !ended && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if skim.Size > mcp.MaxSkipped {
			return long
		}
	}
	large := &mcp.TooLarge{Size: skim.Size, Max: c.max}
	id, ok := skim.ID()
	switch {
	case ok:
		c.large(id, large)
	case !skim.Told(): // it may be an answer, and its caller is not known
		return long
	}
	c.log.Warn("message left out", "error", large)
	return nil
}

// isBatch tells an array of messages from a line of a log in brackets.
func isBatch(line []byte) bool {
	if line[0] != '[' {
		return false
	}
	doc, err := gate.ParseDoc(line)
	return err == nil && !doc.At("/0/jsonrpc").IsZero()
}

// endOf says why a server's output ended: most often because the server did.
func (c *StdioConn) endOf(err error, noise bool) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	c.ending(errEnding) // the cause is known once it has ended
	if c.Close() == nil {
		if err = c.child.Wait(); err == nil {
			err = errors.New("exit status 0")
		}
		if said := Telling(c.stderr.Tail()); said != "" {
			err = fmt.Errorf("%w; it said: %s", err, mcp.Quote([]byte(said)))
		}
		if what := advice(c.stderr.Tail()); what != "" {
			err = fmt.Errorf("%w; %s", err, what)
		}
	}
	if noise {
		return &mcp.ProtocolError{Err: fmt.Errorf("the server wrote a line to standard output that is not a message, and ended: %w", err)}
	}
	return fmt.Errorf("the server ended: %w", err)
}

// Ended reports whether an error tells no more than that the child reads and writes no more.
func (c *StdioConn) Ended(err error) bool {
	return errors.Is(err, errDeaf) || errors.Is(err, errEnding) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE)
}

// Said returns the last lines of the server's standard error, the oldest first.
func (c *StdioConn) Said() []string { return c.stderr.Tail() }

// Work returns a number that grows while the server works or talks, however slowly: the
// lines that it has written, and the time that its processes have had.
func (c *StdioConn) Work() int64 { return c.stderr.written.Load() + c.child.CPUTime().Milliseconds() }

// Close implements [Conn].
func (c *StdioConn) Close() error {
	c.closing.Do(func() {
		close(c.ended)
		c.closeErr = c.child.Close(childGrace)
		c.writer.Wait()
		if c.closeErr == nil {
			c.stderr.end() // nothing writes to it any more
		}
	})
	return c.closeErr
}
