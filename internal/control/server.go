package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Backend is the gateway behind the socket. It is called concurrently.
type Backend interface {
	// Handle answers a request. Its answer is encoded as JSON; an error that is
	// an [*Error] reaches the other side as it is.
	Handle(ctx context.Context, method string, params json.RawMessage) (any, error)
	// Client returns what serves an MCP client for the principal as, in lines,
	// until in or ctx ends. It is offered what is in one of the groups; all, if there
	// are none. Its error is as of Handle.
	Client(as string, groups []string) (func(ctx context.Context, in io.Reader, out io.Writer) error, error)
}

// Error is an error that crosses the socket: Code tells kinds apart, and Detail
// is what else the other side needs to make the same error of it.
type Error struct {
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// The paths on the socket.
const (
	pathMethod = "/v1/"
	pathRelay  = "/relay"
	pathAPI    = "/api/"
	// pathNarrowed is pathRelay for a client that is not offered all. A gateway that
	// does not know groups does not know it.
	pathNarrowed = "/relay/narrowed"
)

const (
	maxRequest    = 16 << 20 // bytes; arguments of a call are within limits.body
	headerTimeout = 5 * time.Second
)

// lookEvery is how often a socket that lingers looks whether commands have gone.
const lookEvery = 10 * time.Millisecond

// Serve serves the socket until ctx ends, and ends what it has begun. Commands that are
// connected then may go on until they have gone, for linger at most; MCP clients not. Programs
// are served by api, below /api/; nil is none.
func Serve(ctx context.Context, ln net.Listener, b Backend, api http.Handler, linger time.Duration) error {
	leaving := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &server{ctx: ctx, backend: b}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathMethod+"{method}", s.method)
	mux.HandleFunc("POST "+pathRelay, s.relay)
	mux.HandleFunc("POST "+pathNarrowed, s.relay)
	if api != nil {
		mux.Handle(pathAPI, api)
	}
	hs := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	var open atomic.Int64 // connections of commands
	hs.ConnState = func(_ net.Conn, is http.ConnState) {
		switch is {
		case http.StateNew:
			open.Add(1)
		case http.StateHijacked, http.StateClosed:
			open.Add(-1)
		}
	}
	defer context.AfterFunc(leaving, func() {
		for giveUp := time.Now().Add(linger); open.Load() > 0 && time.Now().Before(giveUp); {
			time.Sleep(lookEvery)
		}
		cancel()
		hs.Close()
	})()
	err := hs.Serve(ln)
	cancel()
	s.relays.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

type server struct {
	ctx     context.Context
	backend Backend
	relays  sync.WaitGroup
}

func (s *server) method(w http.ResponseWriter, r *http.Request) {
	params, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		fail(w, fmt.Errorf("read the request: %w", err))
		return
	}
	if r.Header.Get("Accept") == linesType {
		s.notes(w, r, params)
		return
	}
	res, err := s.backend.Handle(r.Context(), r.PathValue("method"), params)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, res)
}

func fail(w http.ResponseWriter, err error) { answer(w, http.StatusUnprocessableEntity, wired(err)) }

// wired returns an error as it crosses the socket.
func wired(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error()}
	}
	return e
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the other side has gone
}

// relay turns the connection into the lines of an MCP client.
func (s *server) relay(w http.ResponseWriter, r *http.Request) {
	s.relays.Add(1)
	defer s.relays.Done()
	serve, err := s.backend.Client(r.URL.Query().Get("as"), r.URL.Query()["group"])
	if err != nil {
		fail(w, err)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcp\r\n\r\n"); err != nil {
		return
	}
	_ = serve(s.ctx, buf, conn) // the client reads the end of the stream
}
