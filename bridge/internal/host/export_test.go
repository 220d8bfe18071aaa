package host

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/elicit"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/host/shares"
	"github.com/wasmgate/wasmgate/gate"
)

// ReadMessages reads lines as a stdio client's input is read, and tells which
// are too long.
func ReadMessages(r io.Reader, max int64) (lines [][]byte, bad []bool, err error) {
	br := bufio.NewReaderSize(r, 16)
	for {
		l, err := readMessage(br, max)
		if err != nil {
			return lines, bad, err
		}
		lines, bad = append(lines, l.text), append(bad, l.bad != nil)
	}
}

// Screen answers what a client's message is refused with, and "" if it may pass.
func (h *Host) Screen(body []byte) string {
	_, no := h.screen(context.Background(), client{who: gate.Local()}, body)
	if no == nil {
		return ""
	}
	return string(no.body)
}

// Seal is [sealed.Sealer.Seal], under a secret.
func Seal(secret []byte, c *gate.Call, approval string, expires time.Time) string {
	s, err := sealed.New(secret)
	if err != nil {
		panic(err)
	}
	return s.Seal(c, approval, expires)
}

// Open is [sealed.Sealer.Open], under a secret.
func Open(secret []byte, c *gate.Call, state string) (approval string, err error) {
	s, err := sealed.New(secret)
	if err != nil {
		return "", err
	}
	return s.Open(c, state)
}

// Elicited is [elicit.Answer].
var Elicited = elicit.Answer

// ExpireTasks has the calls expire that are tasks, as of calls that wait for their clients the
// one does that makes room for another: it may have become a task meanwhile.
func (h *Host) ExpireTasks() {
	h.taskCalls.mu.Lock()
	defer h.taskCalls.mu.Unlock()
	for _, k := range h.taskCalls.by {
		k.Expire()
	}
}

// BoundStreams lets all sessions over HTTP have at most n streams open.
func (h *Host) BoundStreams(n int) { h.clients.streams = shares.New[gate.SessionKey](n) }

// BoundSessions lets the host have at most n sessions over HTTP.
func (h *Host) BoundSessions(n int) { h.clients.sessions.most = n }

// Streams returns how many requests of all sessions have a stream that is kept.
func (h *Host) Streams() (n int) {
	h.clients.sessions.mu.Lock()
	defer h.clients.sessions.mu.Unlock()
	for _, s := range h.clients.sessions.by {
		s.mu.Lock()
		n += len(s.streams)
		s.mu.Unlock()
	}
	return n
}
