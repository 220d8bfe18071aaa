// Package wants keeps what clients want to hear of servers: log messages from a severity on
// ([Levels]), and which resources have changed ([Subscriptions]).
package wants

import (
	"sync"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// Levels are the severities from which on clients want the log messages of servers. A client
// without one gets no messages: on a connection that clients share, each server would choose what
// to log. The zero levels are none.
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

// Session returns the severity that a session wants; 0 if it wants no messages.
func (s *Levels) Session(k gate.SessionKey) mcp.Severity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[k]
}

// Of returns what the client of a call wants. One without a session says so with each.
func (s *Levels) Of(c *gate.Call) mcp.Severity {
	if c.Meta.Get(mcp.MetaProtocol).Text() >= mcp.Stateless {
		return mcp.SeverityOf(c.Meta.Get(mcp.MetaLogLevel).Text())
	}
	return s.Session(c.Audience())
}

// Lowest returns what the session wants that wants the most; 0 if none wants any.
func (s *Levels) Lowest() (lowest mcp.Severity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.by {
		if lowest == 0 || one < lowest {
			lowest = one
		}
	}
	return lowest
}
