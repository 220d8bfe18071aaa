package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/guest"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/player"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/agents"
	"github.com/wasmgate/wasmgate/internal/drain"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/schema/broken"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/study"
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
	panics *slog.Logger // of the program's own functions; nil is slog.Default

	journal
	policies
	settings
	checking
	locals
	machine
	compiling compiling

	sessions *session.Sessions
	echoes   provenance.Echoes
	asking   *approval.Queue // nil without Config.Approvals
	pins     *lock.Pins      // nil without Config.Pins
	player   *player.Player  // nil without Config.Replay
	jobs     *jobs.Runner    // nil without Config.Jobs
	store    JobStore        // of the jobs

	held held // calls that end with their callers' credentials

	life    context.Context // of servers in the sandbox, and of background work
	end     context.CancelFunc
	serving sync.WaitGroup
}

// toolOptions says how the tools of servers in this process are offered.
func (c *checking) toolOptions() options.Tools {
	return options.Tools{Sanitizer: c}
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
	// Watch calls changed whenever something of a server has changed, with the lists that have
	// changed, until stop is called. changed must not block.
	Watch(changed func(status.Lists)) (stop func())
}

// Fleet returns the servers.
func (g *Gateway) Fleet() Fleet { return g.fleet }

// BrokenInputs returns the tools with calls that were refused because their arguments break the
// input schema, those with the most such calls first.
func (g operator) BrokenInputs() []broken.Input { return g.broken.All() }

// operator is a gateway as the program that runs it for others sees it.
type operator struct{ *Gateway }

// Operator returns further methods that only the wasmgate command needs: answers for its console,
// hooks of agents, reasons for its log. They are not part of what is promised here: any of it may
// change with any version.
func (g *Gateway) Operator() operator { return operator{g} }

// ErrDraining says that a gateway takes no more calls.
var ErrDraining = errors.New("the gateway is shutting down")

// policies are the policy that decides, and the shadow policy.
type policies struct {
	engine  atomic.Pointer[policy.Engine]
	shadow  *study.Shadow // which has a policy if [operator.SetShadow] was given one
	setting sync.Mutex    // held over a change of the gate's parts: one at a time
}

// compiling is what is compiled in the background, so that a gateway listens before its modules are
// ready.
type compiling struct {
	done     chan struct{} // closed when no module of the start waits any more
	current  string        // the module that is compiled; guarded by locals.listed, as are
	since    time.Time
	embedded bool // the embedded tools wait, or are compiled
}

// locals are the servers in this process: of modules, of the embedded tools, of Go
// functions.
type locals struct {
	published published // those of nothing but functions

	starting bool                           // the modules are loaded for the first time
	began    time.Time                      // when that began
	changing sync.Mutex                     // held over a change of the modules: one at a time
	own      map[string][]options.LocalTool // by server: tools other than those of modules
	made     map[string]*local.Server       // by id: servers that modules are in, or can come to
	listed   sync.Mutex                     // guards modules
	modules  []loaded                       // in order

	inDevelopment sync.Map // digests of definitions by server and name, as they were first seen
}

// loaded is a module as it is in use, or out of it.
type loaded struct {
	Module
	secrets []dial.Secret // that could be granted
	code    *guest.Module
	tools   []options.LocalTool
	err     error // why the module is left out; nil if it is not
	newer   error // why the module's new version is not in use; nil if there is none
}

func (m *loaded) server() string { return cmp.Or(m.Server, product.LocalServer) }

// same reports whether a module and its grants are unchanged.
func (m *loaded) same(next *loaded) bool {
	return reflect.DeepEqual(m.Module, next.Module) && (len(m.Grant.Secrets) == 0 || reflect.DeepEqual(m.secrets, next.secrets))
}
