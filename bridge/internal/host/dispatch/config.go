package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/gate"
)

// Config configures a [Dispatcher].
type Config struct {
	// Do carries out calls and Tools lists what a principal may call; required,
	// and both a gate's.
	Do    func(context.Context, gate.Call) (gate.Result, error)
	Tools func(context.Context, *gate.Principal) ([]*gate.Tool, error)
	// Features lists what else a principal may use, a gate's, and Offering says what
	// any server offers, a fleet's. Without both, clients are offered tools alone.
	Features func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error)
	Offering func(context.Context) mcp.Offering
	// AppTools lists the tools that servers have only for their apps, a gate's, and OpenApps
	// names the servers with an app that is open in a session. Without both, clients are
	// offered no pages.
	AppTools func(context.Context, *gate.Principal) ([]*gate.Tool, error)
	OpenApps func(context.Context, gate.SessionKey) ([]string, error)
	// LoadedSkills names the skills that a session has loaded. It is needed where a server has skills.
	LoadedSkills func(context.Context, gate.SessionKey) ([]string, error)
	// Shown has a session learn what it is shown of a listing, a gate's. Nil teaches nothing.
	Shown func(ctx context.Context, c gate.Call, tools []*gate.Tool) error
	// Fresh says for how long clients may keep a listing, a fleet's. Nil lets them keep none.
	Fresh func(gate.Feature) time.Duration
	// Lookup finds a tool, for what its definition wants in the headers of calls, a
	// fleet's. Without it no such headers are looked at.
	Lookup func(context.Context, gate.Action, string) (*gate.Tool, error)
	// Instructions are what servers say about how to use them, a fleet's. Known is as Features, but
	// waits for no server: a client gets the instructions of the servers that offer it something.
	// Without both, clients get no instructions.
	Instructions func() []mcp.Instructions
	Known        func(context.Context, *gate.Principal, gate.Feature) ([]*gate.Tool, error)
	// Jobs carries out the calls that clients make as tasks, and Recall has a session
	// learn what a kept result teaches, a gate's. Without Jobs clients are offered no
	// tasks.
	Jobs   *jobs.Runner
	Recall func(ctx context.Context, c gate.Call, kept gate.Result) error
	// SetLevel says from which severity on a session wants log messages, "" for none;
	// Unsubscribe ends a subscription, by the ID of the call that made it: both a fleet's,
	// see [fleet.Sessions.OnNotice]. Clean makes what servers say outside of calls safe, a gate's Tell.
	// Without them clients are offered neither log messages nor subscriptions.
	SetLevel    func(ctx context.Context, k gate.SessionKey, level string) error
	Unsubscribe func(ctx context.Context, call, uri string) error
	Clean       func(server string, params gate.Doc) (gate.Doc, bool)
	// Connect, if not nil, returns where the caller of a call that was refused for want of a
	// login gets one, with a browser, and what is closed when that has ended; "" for nowhere.
	Connect func(c *gate.Call, err error) (url string, ended <-chan struct{})
	// Brief reports whether clients are listed only the tools by which they find and call
	// the others: see [options.LocalTool.Relay]. Nil lists all. It is asked for each listing.
	Brief func() bool
	// Seal is a secret of at least 32 random bytes. Keys are derived from it for
	// what clients without a session keep for the host between a question and its
	// answer. Nil makes one for the life of the host.
	Seal []byte
	// ParkIdle is how long a call waits for the next request of a client without a
	// session that its server has asked something. Zero means 10 min.
	ParkIdle time.Duration
	// TaskAfter is how long a call goes on before it becomes a task, if its client speaks
	// the extension of tasks (MCP 2026-07-28). Zero means 10 s.
	TaskAfter time.Duration
	// Began is called when a client begins to use a session, and at each request of a client
	// without one. The call names the client and the session. Nil does nothing.
	Began func(gate.Call)
	// PeerChanged is called when the roots of a session's client have changed, and Ended when the
	// session has ended; both are a fleet's, and may be nil.
	PeerChanged, Ended func(gate.SessionKey)
	// Lasted, if not nil, is called with the duration of a session that has ended.
	Lasted func(time.Duration)
	Log    *slog.Logger // nil discards
}

// Terms may change while a dispatcher runs: see [Dispatcher.Change].
type Terms struct {
	// Name, Version and, if it is not empty, Description describe the gateway to clients. If Name
	// or Version is empty, it is wasmgate or its version.
	Name, Version, Description string
	// Asks lets Do ask the person at a client that can (MCP elicitation) whether a call
	// may pass. What servers ask of clients does not depend on it.
	Asks bool
	// NoTasks lets clients make no tasks of calls, though there are Jobs.
	NoTasks bool

	info []byte // how the gateway describes itself to clients
}

// What holds if the configuration does not say.
const (
	// parkIdle is how long a parked call waits, and taskAfter how long a call goes on
	// before it becomes a task.
	parkIdle  = 10 * time.Minute
	taskAfter = 10 * time.Second
)

// check returns an error if the configuration is wrong, and fills in the defaults.
func (c *Config) check() error {
	if c.Do == nil || c.Tools == nil {
		return errors.New("host: the fields Do and Tools of the configuration must be set")
	}
	if c.Jobs != nil && c.Recall == nil {
		return errors.New("a host with jobs needs Recall of a gate")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.ParkIdle, c.TaskAfter = cmp.Or(c.ParkIdle, parkIdle), cmp.Or(c.TaskAfter, taskAfter)
	return nil
}
