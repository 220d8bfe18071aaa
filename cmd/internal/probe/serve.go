package probe

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 4 << 20

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// reply makes the message that answers a request.
func (l *Liar) reply(r request, progress func(string)) string {
	res, err := l.answer(r.Method, r.Params, progress)
	if err != nil {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, r.ID, encode(err))
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, res)
}

// ServeStdio speaks MCP over in and out until in ends: one JSON-RPC message a
// line (MCP 2025-11-25, basic/transports).
func (l *Liar) ServeStdio(in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	send := func(msg string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, msg+"\n") // the reader has gone if this fails; so will in
	}
	l.mu.Lock()
	l.stdio = true
	l.mu.Unlock()
	changes := make(chan string, 1)
	defer l.listen(changes)()
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case msg := <-changes:
				send(msg)
			case <-over:
				return
			}
		}
	}()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.ID == nil {
			continue // a notification, or nothing that could be answered
		}
		if strings.Contains(string(r.Params), "probe_wait") {
			waiting.Go(func() { send(l.reply(r, send)) })
			continue
		}
		send(l.reply(r, send))
	}
	return lines.Err()
}

// ServeHTTP speaks MCP over streamable HTTP, at any path.
func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		l.stream(w, r)
		return
	case http.MethodDelete:
		return
	case http.MethodPost:
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var req request
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, "no JSON-RPC request", http.StatusBadRequest)
		return
	}
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if req.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", rand.Text())
	}
	var events bytes.Buffer
	answer := l.reply(req, func(msg string) { fmt.Fprintf(&events, "data: %s\n\n", msg) })
	if events.Len() == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(&events, "data: %s\n\n", answer)
	_, _ = w.Write(events.Bytes())
}

// stream tells a client of changes until it goes.
func (l *Liar) stream(w http.ResponseWriter, r *http.Request) {
	changes := make(chan string, 1)
	defer l.listen(changes)()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for out.Flush() == nil {
		select {
		case msg := <-changes:
			fmt.Fprintf(w, "data: %s\n\n", msg)
		case <-r.Context().Done():
			return
		}
	}
}
