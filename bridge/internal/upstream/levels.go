package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// tuneTime bounds how long a server gets to take a level of logging.
const tuneTime = 2 * time.Second

// Levels are what clients want of the log messages of servers, from which severity on.
// Who has not said gets none: on a connection that clients share there would be no
// telling what a server takes for worth saying. The zero levels are none.
type Levels struct {
	mu sync.Mutex
	by map[gate.SessionKey]mcp.Severity
}

// Set keeps what a session wants; 0 forgets it.
func (s *Levels) Set(k gate.SessionKey, from mcp.Severity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from == 0 {
		delete(s.by, k)
		return
	}
	if s.by == nil {
		s.by = make(map[gate.SessionKey]mcp.Severity)
	}
	s.by[k] = from
}

func (s *Levels) session(k gate.SessionKey) mcp.Severity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[k]
}

// of returns what the client of a call wants. One without a session says so with each.
func (s *Levels) of(c *gate.Call) mcp.Severity {
	if c.Meta.Get(mcp.MetaProtocol).Text() >= mcp.Stateless {
		return mcp.SeverityOf(c.Meta.Get(mcp.MetaLogLevel).Text())
	}
	return s.session(c.Audience())
}

// lowest returns what the session wants that wants the most; 0 if none wants any.
func (s *Levels) lowest() (lowest mcp.Severity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.by {
		if lowest == 0 || one < lowest {
			lowest = one
		}
	}
	return lowest
}

// logs reports whether the server can be told from which severity on to log.
func (l *link) logs() bool {
	return l.capabilities.Get("logging").Kind() == gate.Object && !l.modern()
}

// tune tells the server from which severity on to log, unless it knows. With atMost it
// is told only to say more: a connection that clients share says as much as any of them
// has wanted, and each gets what it wants of that. A server that does not take the level
// is left as it is.
func (l *link) tune(ctx context.Context, from mcp.Severity, atMost bool) {
	if from == 0 || !l.logs() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tuneTime)
	defer cancel()
	select {
	case l.tuning <- struct{}{}:
		defer func() { <-l.tuning }()
	case <-ctx.Done():
		return
	}
	if l.level == from || atMost && l.level != 0 && l.level < from {
		return
	}
	l.level = from
	_, _ = l.peer.Call(ctx, mcp.MethodSetLevel, mcp.MustJSON(map[string]string{"level": from.String()}))
}

// logged takes a log message of the server, in the call of which it is if the transport
// tells. Where it does not, a message belongs to the call that alone is under way; on a
// client's own connection to the foremost one, or else to the client. One that could be
// several clients' is dropped: it could tell one of another.
func (e *Endpoint) logged(l *link, params gate.Doc, of *calling) {
	how := mcp.SeverityOf(params.Get("level").Text())
	if how == 0 || params.Kind() != gate.Object {
		return
	}
	switch {
	case of != nil:
	case e.audience != nil:
		of = e.under.foremost()
	case l.overHTTP() == nil:
		of = e.under.only()
	}
	switch {
	case of != nil && of.level > 0 && how >= of.level:
		of.say(remark{method: mcp.MethodLog, params: params})
	case of == nil && e.audience != nil && !e.audience.pooled:
		if from := e.levels.session(e.audience.session); from > 0 && how >= from {
			e.tell(mcp.Notice{Server: e.cfg.Server, Session: e.audience.session, Method: mcp.MethodLog, Params: params})
		}
	}
}

// SetLevel tells the server what a session wants, over the connection that carries its
// calls. Whatever is not connected is told with the next call.
func (e *Endpoint) SetLevel(ctx context.Context, k gate.SessionKey, from mcp.Severity) {
	ctx = context.WithoutCancel(ctx)
	tune := func(one *Endpoint, atMost bool) {
		one.mu.Lock()
		defer one.mu.Unlock()
		if l := one.link; l != nil && one.phase == Ready {
			one.wg.Go(func() { l.tune(ctx, from, atMost) })
		}
	}
	own := e.audiences.of(k)
	for _, a := range own {
		tune(a.endpoint, false)
	}
	if len(own) == 0 {
		tune(e, true)
	}
}
