package recording

import (
	"github.com/wasmgate/wasmgate/bridge/fault"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
)

// A Mode says what a gateway that replays a recording does with a tool.
type Mode string

// The modes. What must be stubbed is answered from the recording and never touched;
// pure tools, which only compute, and live ones are called. The zero mode is Pure for
// sandboxed tools without capabilities, and MustStub for all others.
const (
	MustStub Mode = "must_stub"
	Live     Mode = "live"
	Pure     Mode = "pure"
)

// Replay has a gateway answer from a recording. Servers that must be stubbed are not
// started: what they offer are the tools, prompts and resources that the recording tells
// of, the latter with no more of their definitions than that. Prompts are got and
// resources read as tools are called. A call of such a tool is answered with the recorded
// result of the same tool, by its digest where that is known, and of equal arguments (RFC
// 8785), for any caller: in the order of the recording, and each once. A call that the
// recording does not hold fails with a [*MissingError]. Calls go the whole way
// through the gate.
type Replay struct {
	Calls []Call
	// Servers says what is done with the tools of servers and functions, by server; that of
	// modules stands with each.
	Servers map[string]Mode
	// Stub reports whether a tool of a server that is not stubbed is answered from the
	// recording all the same; nil is none.
	Stub func(server, tool string) bool // in the server's own words
	// Definition finds the definition of a tool by its digest; absent if it is not
	// known. Nil knows none. A tool without one is offered as taking any object.
	Definition func(digest string) gate.Doc
	// Declared is what servers declared when they were recorded, as the fleet has it: one that is
	// in it offers these tools and prompts, also those that were not called, and with it no
	// Definition is needed.
	Declared []status.Declaration
	// Lacks gets each call that the recording holds no answer to, before it fails. It may
	// be called concurrently; nil does nothing. A call is not to be changed.
	Lacks func(*gate.Call)
}

// A MissingError says that a recording holds no answer to a call that must not
// reach anybody.
type MissingError struct{ Tool string }

func (e *MissingError) Error() string { return e.Tool + ": " + e.Public() }

// Public returns what a client may read.
func (e *MissingError) Public() string {
	return "the recording that is replayed holds no answer to this call that was not given yet"
}

// Code returns "not_connected": there is no server to call.
func (e *MissingError) Code() string { return string(fault.NotConnected) }
