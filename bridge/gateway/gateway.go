package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/agents"
	"github.com/wasmgate/wasmgate/internal/drain"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/schema/broken"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Gateway is a running gateway. Use it from several goroutines.
type Gateway struct {
	cfg    Config // as it was built; what may change since is in settings
	gate   *gate.Gate
	fleet  *fleet.Fleet
	agents *agents.Agents
	host   *host.Host
	mux    *http.ServeMux
	calls  drain.Counter // those of Do

	draining atomic.Bool
	leaving  atomic.Bool              // its cluster
	required atomic.Pointer[[]string] // servers

	broken broken.Inputs

	// The parts, each with its own state.
	journal  journal         // the audit log
	checking checking        // how calls are checked
	policies policies        // what decides
	settings settings        // limits, groups, and what else may change
	machine  machine         // what runs WASM
	locals   locals          // servers in this process
	sessions sessions        // for which labels are kept
	jobs     jobServer       // calls that outlive their requests
	asking   *approval.Queue // what waits for people
	pins     *lock.Pins      // nil without Config.Pins
	player   *player.Player  // nil without Config.Replay
	setting  sync.Mutex      // held over a change of the gate's parts: one at a time

	held held // calls that end with their callers' credentials

	life    context.Context // of servers in the sandbox, and of background work
	end     context.CancelFunc
	serving sync.WaitGroup
}

// ChildMain is what this program does as a child of itself: it supervises a server that
// is a command, or compiles a module. It returns if this process is no such child. A
// program that runs a gateway calls it first thing in main.
func ChildMain() {
	wire.ChildMain()
	sandbox.ChildMain()
}

// A Fleet is the servers of a gateway as one. [Gateway.SetServer] and [Gateway.RemoveServer]
// change it.
type Fleet interface {
	// Status tells how each server is, in the order of configuration.
	Status() []status.Server
	// Declared returns what each server has declared last, in the same order and as it was
	// written: also definitions that are quarantined.
	Declared() []status.Declaration
	// Tools returns all tools. It waits as Settle does.
	Tools(context.Context) []*gate.Tool
	// Features is as Tools, of prompts, resources, templates or methods.
	Features(context.Context, gate.Feature) []*gate.Tool
	// KnownFeatures returns what is known now of a feature, such as tools, and waits for nothing.
	KnownFeatures(gate.Feature) []*gate.Tool
	// Skills returns all skills, also those that are quarantined, and waits for nothing.
	Skills() []*gate.Tool
	// Settle waits as a listing does: for servers that start and were never listed, and for
	// listings that must not be kept, for a few seconds at most. With the context that it returns
	// nothing waits for servers any more.
	Settle(context.Context) context.Context
	// Started waits, within ctx, until no server starts for the first time, also if an earlier
	// listing of it is offered meanwhile.
	Started(context.Context)
	// Reload connects a server anew, with the configuration it has.
	Reload(ctx context.Context, server string) error
	// Conflicts returns the names that more than one server, or the program that embeds the gateway,
	// would offer: which one has each, and what became of the other.
	Conflicts() []status.Conflict
	// Watch calls changed whenever something of a server has changed, with the lists that have
	// changed, until stop is called. changed must not block.
	Watch(changed func(status.Lists)) (stop func())
}

// Fleet returns the servers.
func (g *Gateway) Fleet() Fleet { return g.fleet }

// An Operator is a gateway as the program that runs it for others sees it, such as the wasmgate
// command: what it needs for its console, the hooks of agents, and its log. [Gateway.Operator]
// returns one; the zero Operator is of no use. Use it from several goroutines.
type Operator struct{ *Gateway }

// Operator returns the gateway as the program that runs it for others sees it.
func (g *Gateway) Operator() Operator { return Operator{g} }

// BrokenInputs returns the tools with calls that were refused because their arguments break the
// input schema, those with the most such calls first.
func (g Operator) BrokenInputs() []status.BrokenInput { return g.broken.All() }

// ErrDraining says that a gateway takes no more calls.
var ErrDraining = errors.New("the gateway is shutting down")
