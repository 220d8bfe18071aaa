package dispatch

import (
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/internal/drain"
)

// A Place is where a dispatcher is among the gateways of a database, and what is under way there.
type Place struct {
	node  string // "" if it is the only one
	calls drain.Counter
}

// Share gives a gateway its name among several. It is called before the first request.
func (p *Place) Share(node string) { p.node = node }

// Begin counts a request that another gateway answers, until End is called; it is false once the
// dispatcher drains.
func (p *Place) Begin() bool { return p.calls.Begin() }

// End says that such a request has been answered.
func (p *Place) End() { p.calls.End() }

// NodeOf returns the gateway that has what a message of a client without a session is about: a parked
// call, or a task. It is "" if there is no such thing.
func NodeOf(m message.Message) string {
	switch m.Method {
	case mcp.MethodTaskGet, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		return jobs.NodeOf(m.Params.Get("taskId").Text())
	case mcp.MethodListen: // of tasks elsewhere the client hears once they have ended
		for id := range m.Params.Get("notifications").Get("taskIds").Elements() {
			return jobs.NodeOf(id.Text())
		}
		return ""
	}
	return parkedAt(m.Params.Get("requestState").Text())
}

// nodeEnd ends the gateway in the state of a parked call.
const nodeEnd = "."

// parked is the form of the states of parked calls: they name the gateway that has them.
func (p *Place) parked() string {
	if p.node == "" {
		return sealed.Parked
	}
	return sealed.Parked + p.node + nodeEnd
}

// parkedAt returns the gateway that the state of a parked call names; "" if it names none.
func parkedAt(state string) string {
	rest, _ := strings.CutPrefix(state, sealed.Parked)
	node, _, found := strings.Cut(rest, nodeEnd)
	if !found || len(rest) == len(state) {
		return ""
	}
	return node
}
