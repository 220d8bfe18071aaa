package gateway

import (
	"cmp"
	"context"

	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/recording"
)

type (
	// A RecordedCall is a call of a tool whose result was written down; or a prompt that was
	// got, or a resource that was read.
	RecordedCall = recording.Call
	// Replay has a gateway answer from a recording: what must be stubbed is not started, and
	// answered with the recorded results of the same tools and equal arguments, in the order
	// of the recording, and each once. A call that the recording does not hold fails with a
	// [*NotRecordedError]. Calls go the whole way through the gate.
	Replay = recording.Replay
	// A ReplayMode says what a gateway that replays a recording does with a tool.
	ReplayMode = recording.Mode
	// A NotRecordedError says that a recording holds no answer to a call that must not
	// reach anybody.
	NotRecordedError = recording.MissingError
)

// The modes. What must be stubbed is answered from the recording and never touched;
// pure tools, which only compute, and live ones are called. The zero mode is Pure for
// sandboxed tools without capabilities, and MustStub for all others.
const (
	MustStub = recording.MustStub
	Live     = recording.Live
	Pure     = recording.Pure
)

// ErrNothingRecorded says that a recording has calls and no results: the audit log
// has to be kept with record: full.
var ErrNothingRecorded = recording.ErrNothing

// ReadRecording reads what was called, got and read that a file tells of, in its order:
// an audit log that holds results, over all its files, or recorded sessions, one a line,
// as [policy.ReadTrace] takes them. Calls that came to no result are left out. The error
// wraps [ErrNothingRecorded] if no result was recorded.
func ReadRecording(ctx context.Context, path string) ([]RecordedCall, error) {
	return recording.Read(ctx, path, Relays)
}

// ReplayLeft returns the calls of [Config].Replay that nobody has made, in their order.
func (g *Gateway) ReplayLeft() []RecordedCall {
	if g.player == nil {
		return nil
	}
	return g.player.Left()
}

// replayed returns functions of a server as they are offered.
func (g *Gateway) replayed(server string, tools []LocalTool) []LocalTool {
	tools = g.watched(tools)
	if g.player == nil {
		return tools
	}
	return g.player.Stubbed(g.player.Servers[server], tools)
}

// stubs returns what stands in the place of servers that are not started.
func (g *Gateway) stubs(o ToolOptions) ([]*local.Server, error) {
	if g.player == nil {
		return nil, nil
	}
	local := map[string]bool{CatalogServer: true, JobServer: true}
	if g.cfg.Embedded {
		local[LocalServer] = true
	}
	for _, m := range g.cfg.Modules {
		local[cmp.Or(m.Server, LocalServer)] = true
	}
	for server := range g.cfg.Functions {
		local[server] = true
	}
	return g.player.Locals(g.cfg.Servers, local, o)
}
