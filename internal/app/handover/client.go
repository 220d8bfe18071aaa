package handover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxPending bounds how many requests of one client are remembered while
	// they are under way; further ones are refused. A gateway lets far fewer run
	// at once.
	maxPending = 1024
	// maxAnswer bounds a line of a gateway, in bytes. Its own limits keep it far
	// below; this one is for a gateway that has lost them.
	maxAnswer = 256 << 20
	// replayTime bounds how long a gateway may take to answer a handshake that is
	// replayed to it; one that takes longer is given up.
	replayTime = 10 * time.Second
)

// Errors that a client gets for a request that no gateway has answered.
const (
	textRestarted = "the gateway was restarted; the call may or may not have been carried out"
	textTooMany   = "too many requests are under way"
)

// A Client is an MCP client that speaks in lines, and is served by one gateway
// after another without noticing more than it must: each new one is given the
// client's own handshake. Requests for lists that were under way at the end of the
// old one are sent to it again, and all others are answered with an error.
type Client struct {
	out   *lineWriter
	lines chan []byte // what the client said; closed at its end
	ended error       // why lines was closed; nil if in has ended

	left  chan struct{} // closed when the client says no more
	leave sync.Once

	mu          sync.Mutex
	initialize  []byte // the client's own lines; nil until they have passed
	initialized []byte
	initializer string             // key of the id of initialize
	greeted     bool               // the client has the answer to initialize
	replayed    chan struct{}      // closed when the present gateway has answered it
	pending     map[string]request // those under way, by the key of their id
}

// A request is one that no gateway has answered yet.
type request struct {
	id   json.RawMessage
	line []byte // nil if it may have an effect, so that it is not sent again
}

// repeatable reports whether a request of a method has no effect.
func repeatable(method string) bool { return method == "ping" || strings.HasSuffix(method, "/list") }

// New returns a client that reads requests from in and writes answers to out. A line of in has at most
// max bytes. It begins to read in, and goes on until in ends.
func New(in io.Reader, out io.Writer, max int64) *Client {
	c := &Client{out: &lineWriter{w: out}, lines: make(chan []byte), left: make(chan struct{}), pending: make(map[string]request)}
	go func() {
		defer c.Leave()
		defer close(c.lines)
		for r := bufio.NewReader(in); ; {
			line, err := readLine(r, max)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					c.ended = err
				}
				return
			}
			select {
			case c.lines <- line:
			case <-c.left:
				return
			}
		}
	}()
	return c
}

// Leave ends the client's input early, as its own end would: requests under way are still answered.
func (c *Client) Leave() { c.leave.Do(func() { close(c.left) }) }

// Left is closed when the client says no more.
func (c *Client) Left() <-chan struct{} { return c.left }

// Serve connects the client to a gateway, until either has gone, and reports
// whether it was the client. The gateway reads what the client says from in
// until that ends, and answers on out; its error is the one that is returned.
// Serve is called again, for the next gateway, only after it has returned.
func (c *Client) Serve(ctx context.Context, gateway func(ctx context.Context, in io.Reader, out io.Writer) error) (gone bool, err error) {
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	replayed := c.begin()
	ended := make(chan struct{})
	var g sync.WaitGroup
	g.Go(func() {
		err = gateway(ctx, in, out)
		in.Close()
		out.Close()
	})
	var lost error // the client no longer reads
	g.Go(func() {
		lost = c.answers(fromGateway)
		fromGateway.Close()
		close(ended)
	})
	gone = c.feed(toGateway, replayed, ended)
	toGateway.Close()
	g.Wait()
	if lost != nil {
		return true, err
	}
	if gone {
		return true, errors.Join(err, c.ended)
	}
	c.abandon()
	return false, err
}

// begin returns the channel that is closed when the gateway may be given what
// the client says: after its answer to the handshake, if there was one.
func (c *Client) begin() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replayed = make(chan struct{})
	if c.initialize == nil {
		close(c.replayed)
	}
	return c.replayed
}

// feed gives the gateway the handshake that others had before it, and then what
// the client says, until the client has gone or the gateway has ended.
func (c *Client) feed(w io.Writer, replayed, ended <-chan struct{}) (gone bool) {
	c.mu.Lock()
	handshake := [][]byte{c.initialize, c.initialized}
	var again [][]byte
	for _, r := range c.pending {
		again = append(again, r.line)
	}
	c.mu.Unlock()
	for _, line := range handshake {
		if line == nil {
			continue
		}
		if _, err := w.Write(line); err != nil {
			return false
		}
		select {
		case <-replayed:
		case <-time.After(replayTime):
			return false
		case <-ended:
			return false
		}
	}
	for _, line := range again {
		if _, err := w.Write(line); err != nil {
			return false
		}
	}
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return true
			}
			if refused := c.asks(line); refused != nil {
				_ = c.out.fail(refused, textTooMany) // a client that does not read has gone, which answers finds
				continue
			}
			if _, err := w.Write(line); err != nil {
				return false
			}
		case <-c.left:
			return true
		case <-ended:
			return false
		}
	}
}

// A message is what a line is looked at for.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// asks notes what the client sends, and returns the id of a request that may not pass. A line that is
// no message passes, because the gateway refuses it.
func (c *Client) asks(line []byte) (refused json.RawMessage) {
	var m message
	if json.Unmarshal(line, &m) != nil || m.Method == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Method == "initialize":
		c.initialize, c.initializer, c.greeted = line, key(m.ID), false
	case m.Method == "notifications/initialized":
		c.initialized = line
	case m.Method == "notifications/cancelled": // what it names gets no answer
		var n struct {
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &n) == nil {
			delete(c.pending, key(n.Params.RequestID))
		}
	case m.ID == nil:
	case len(c.pending) >= maxPending:
		return m.ID
	default:
		r := request{id: m.ID}
		if repeatable(m.Method) {
			r.line = line
		}
		c.pending[key(m.ID)] = r
	}
	return nil
}

// answers passes on what a gateway says, until it has ended. The error says that
// the client does not read any more.
func (c *Client) answers(from io.Reader) error {
	for r := bufio.NewReader(from); ; {
		line, err := readLine(r, maxAnswer)
		if err != nil {
			return nil
		}
		if !c.answered(line) {
			continue
		}
		if err := c.out.write(line); err != nil {
			return err
		}
	}
}

// answered takes note of what a gateway says, and reports whether the client is
// to see it.
func (c *Client) answered(line []byte) bool {
	var m message
	if json.Unmarshal(line, &m) != nil || m.Method != "" || m.ID == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key(m.ID)
	delete(c.pending, k)
	if k != c.initializer || c.initialize == nil {
		return true
	}
	first := !c.greeted
	c.greeted = true
	select {
	case <-c.replayed:
		return true
	default:
		close(c.replayed)
		return first
	}
}

// abandon answers the requests that the gateway has not, unless the next one can.
func (c *Client) abandon() {
	c.mu.Lock()
	var failed []json.RawMessage
	for k, r := range c.pending {
		if r.line == nil {
			failed = append(failed, r.id)
			delete(c.pending, k)
		}
	}
	c.mu.Unlock()
	for _, id := range failed {
		_ = c.out.fail(id, textRestarted) // a client that does not read has gone, which answers finds
	}
}

// key makes ids comparable: as the MCP SDK does, which answers 1.0 with 1.
func key(id json.RawMessage) string {
	var v any
	_ = json.Unmarshal(id, &v) // it is part of a message that could be read
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	s, _ := v.(string)
	return strconv.Quote(s)
}

// A lineWriter writes whole lines, from several goroutines.
type lineWriter struct {
	mu sync.Mutex // held over the write: that is what keeps lines whole
	w  io.Writer
}

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(line)
	return err
}

// fail answers a request with an internal error (JSON-RPC 2.0, 5.1).
func (l *lineWriter) fail(id json.RawMessage, text string) error {
	return l.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`+"\n", bytes.TrimSpace(id), text))
}

// readLine returns a line with its end. A line without an end was torn off: the error is io.EOF.
func readLine(r *bufio.Reader, max int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > max+1 {
			return nil, fmt.Errorf("the message has more than %d bytes", max)
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
