package link

import "github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"

// sessions is the dialect of the revisions that begin with a handshake: what it says holds
// until the connection ends. The server asks by requests of its own (package wire), calls of
// tools may be tasks (sessions_tasks), and it is pinged (health).
type sessions struct{ *Link }

// stateless is the dialect of [mcp.Stateless]: every request stands for itself, and says all
// that the server has to know. The server asks by its answers (stateless_rounds), makes tasks
// of calls as it likes (stateless_tasks), and tells what has changed on a request that stays
// open (stateless_listen, stateless_listening). It knows no ping.
type stateless struct{ *Link }

var (
	_ Dialect = sessions{}
	_ Dialect = stateless{}
)

func (sessions) worded(a outgoing) wire.Request { return a.request(nil) }

func (l stateless) worded(a outgoing) wire.Request {
	r := a.request(l.endpoint.ClientInfo())
	if l.OverHTTP() != nil {
		r.Headers = a.header()
	}
	return r
}
