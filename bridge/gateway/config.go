package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/gate/tracing"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/sandbox"
)

// Config configures a [Gateway]. The zero Config lacks only Audit or Recorder.
type Config struct {
	// Name, Version and Description describe the gateway to clients; the name may be that of the
	// program that embeds it. Servers get the name and the version. Empty means wasmgate, its
	// version, and no description.
	Name, Version, Description string
	// Servers are the MCP servers, in the order in which their tools are
	// listed. New sets the sanitizer and the schema compiler of their Tools.
	Servers []options.Endpoint
	// Guests are those of Servers that are WASM modules, by id. Nothing else says
	// how such a server is reached.
	Guests map[string]Guest
	// Modules are WASM modules whose tools are offered; Embedded adds the ones
	// that the gateway brings along, on the server local.
	Modules  []Module
	Embedded bool
	// LeaveOut serves without the modules that cannot be used: see
	// [Gateway.Modules]. Otherwise New fails for the first of them.
	LeaveOut bool
	// Functions are Go functions offered as tools, by server; see [Func], and
	// [Gateway.Publish] for later ones.
	Functions map[string][]options.LocalTool
	// Replay answers calls from a recording; nil answers none.
	Replay *recording.Replay
	// Groups are the groups of tools. At /mcp/GROUP a client is offered only one group, and grants
	// can be given to a group.
	Groups options.Groups
	// Catalog says whether clients can search for tools.
	Catalog CatalogMode
	// HostTools are the names of the tools that the program which embeds the gateway has
	// itself. No tool is offered by one of them.
	HostTools []string
	// Principal finds out who sends a request to the MCP endpoint, before its body is read. If
	// Principal is nil, all requests are from Who. An error that is an [http.Handler] answers the
	// request; any other is answered with 401, and its text is not shown. Sessions, streams, tasks
	// and all else that a request makes belong to its principal, by tenant and id. See also
	// [WithPrincipal].
	Principal func(*http.Request) (*gate.Principal, error)
	// Challenge, if not nil, returns the header WWW-Authenticate with which a request is answered
	// whose access token lacks scopes for a call, as the policy says. Its status is 403 then.
	Challenge func(r *http.Request, scopes []string) string
	// Connect, if not nil, is called for a call that was refused because its caller has not logged
	// in. It returns the page where the caller can log in with a browser, and a channel that is
	// closed when that login has ended; "" if there is no such page.
	Connect func(c *gate.Call, err error) (url string, ended <-chan struct{})
	// The principal of all requests over HTTP if Principal is nil. Nil is [gate.Local].
	Who *gate.Principal

	Policy Policy

	// Audit is the path of the audit log, AuditOptions what else there is to say
	// of it. Recorder gets each record too. One of Audit and Recorder is required.
	Audit        string
	AuditOptions audit.Options
	Recorder     gate.Recorder
	// Observe, if not nil, is called for each record once it was kept, with how long that took, and
	// for one that could not be kept with the error. It must not block, and keeps nothing of r.
	Observe func(r *gate.Record, kept time.Duration, err error)
	// SessionLasted, if not nil, is called with the duration of each MCP session that has ended. It
	// must not block.
	SessionLasted func(time.Duration)
	// Trace places each call of a client in a trace, by its Meta and its Trace.Header; nil places
	// none, and what the client's _meta says of its own trace goes on to the server.
	Trace func(c *gate.Call) tracing.Context
	// Baggage reports whether the baggage in a client's _meta goes on to servers, which may
	// be somebody else's; nil is no.
	Baggage func() bool

	Sanitize clean.Sanitize
	// Inputs say, by server, how arguments are held against the input schemas of its
	// tools. Those of a server without coerce.
	Inputs map[string]*InputRules
	// Agents are those whose hooks the wasmgate command answers by the gateway, by name:
	// claude-code, codex, gemini-cli, opencode.
	Agents map[string]options.Agent
	Limits Limits
	// Pins says which definitions are approved; New sets its Record, and its Log if
	// that is nil. Without it all are.
	Pins *options.Pins
	// Approvals says how people are asked about calls; New sets its Recorder, and its Log if that
	// is nil. Without it, calls that the policy wants to ask about are refused.
	Approvals *approval.Options
	// Propose offers the tool gateway__propose, by which an agent asks one question about all calls that
	// it is going to make.
	Propose bool
	// Jobs says how calls are kept that outlive their request, as jobs and as tasks.
	// Nil keeps none.
	Jobs *Jobs
	// Seal is a secret of at least 32 random bytes; see [host.Config]. Nil makes
	// one that ends with the gateway, and what clients hold by it.
	Seal []byte
	// Sessions says how many sessions are kept, how much of each, and for how long.
	Sessions session.Options
	// OneSession puts all calls of a principal into one session, whatever MCP session
	// they come in.
	OneSession bool
	// TrustPrompt takes the member io.github.wasmgate/prompt of a call's _meta for the
	// user's own words.
	TrustPrompt bool
	// Origins and Hosts are what HTTP requests may name in addition to loopback.
	Origins, Hosts []string
	// Drain is how long a client in lines, as on standard input, that has closed its output gets
	// answers to its requests. Zero cancels requests under way.
	Drain time.Duration
	// Secrets are those that modules can be granted.
	Secrets []dial.Secret
	// Dial configures the connections of modules.
	Dial dial.Options
	// KVDir keeps the values that modules keep, and how much they have written to folders.
	// Empty keeps both in memory.
	KVDir string
	// KV keeps those values where several gateways see them; nil keeps them in KVDir.
	KV options.ModuleValues
	// CacheDir keeps compiled WASM code between processes, for their owner alone.
	// Empty keeps none.
	CacheDir string
	// Snapshot identifies the configuration in the audit log.
	Snapshot string
	// Log gets what an operator should know; nil discards it, except for panics of the program's
	// own functions, which go to [slog.Default].
	Log *slog.Logger
}

// Policy is what decides. The zero Policy is the pack grants without grants:
// it allows what holds no capability.
type Policy struct {
	Files   fs.FS // the user's .rego files; nil for none
	Options policy.Options
}

// A Module is a WASM module.
type Module struct {
	Server string // "" means local
	WASM   []byte
	// Groups are those that its tools are in, in addition to those that match their names.
	Groups []string
	// Config configures it; what it grants comes from Grant.
	Config sandbox.ModuleConfig
	// Broken, if set, says why the module cannot be used; nothing of it is run.
	Broken string
	// Named says that the operator has named the module by its digest, which
	// approves of it.
	Named bool
	// Development says that its author works on it: its tools are pinned by their
	// definitions alone, and each as it was first seen since the gateway was built.
	Development bool
	// Source says where the module was found, and Signer whose key has signed it; "" if
	// that is not known. Policies see both as input.tool.origin.
	Source, Signer string
	// Declared is as that of a server: approvals are bound to it in the place of Grant and the
	// arguments in Config, if it is not empty.
	Declared string
	Grant    Grant
	// Replay is what Config.Replay does with its tools.
	Replay recording.Mode
}

// A Grant is what the operator lets the tools of a module have. The zero Grant
// grants nothing. Policies decide about each use of it, and can narrow it.
type Grant struct {
	HTTP    []dial.Rule
	Dirs    []sandbox.Dir
	Secrets []string // names of Config.Secrets
	KV      bool
	// Config is what the guest may know; see [sandbox.Grants].
	Config map[string]string
}

// InputRules say how arguments are held against the input schemas of a server's tools.
// The zero value coerces.
type InputRules struct {
	Mode  gate.InputMode
	Tools []InputRule // that go before Mode; the first that matches counts
}

// An InputRule says so for the tools that Pattern matches, see [clean.Rule], by their names at
// the server.
type InputRule struct {
	Pattern string
	Mode    gate.InputMode
}

// Limits bound calls. Zero fields mean the defaults.
type Limits struct {
	Body int64 // bytes of a client's message; 4 MiB
	// BodyTime is how long a client may take to send one over HTTP; a minute.
	BodyTime   time.Duration
	Result     int64 // bytes of a server's message; 10 MiB
	Concurrent int   // calls at once; 64
	// Session is how many of them may be of one client session, Servers at a server,
	// by its id, and Tools of each tool that a pattern matches, the first that does.
	// Zero sets no limit.
	Session int
	Servers map[string]int
	Tools   []ToolLimit
	// Wait is how long a call waits for a place among them; 1 s.
	Wait time.Duration
	// Rates are those that several gateways count together; nil counts the calls of this one.
	Rates limits.SharedRates
}

// A ToolLimit is how many calls may be under way of each tool whose qualified name
// matches Pattern: a literal, or a literal with * at its end.
type ToolLimit struct {
	Pattern    string
	Concurrent int
}

func (c *Config) check() error {
	if c.Audit == "" && c.Recorder == nil {
		return errors.New("gateway: set Audit or Recorder in the Config: calls that cannot be recorded are refused")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := c.checkPropose(); err != nil {
		return err
	}
	return c.checkCatalog()
}

// A Guest is an MCP server that is a WASM module: a WASI command which speaks on
// its standard streams. It computes, and reaches nothing else.
type Guest struct {
	WASM []byte
	Args []string
	// Named says that the operator has named the module by its digest, which
	// approves of it and of what it declares.
	Named bool
	// Development says that its author works on it, and approves of the module, but not
	// of what it declares.
	Development bool
	// Config configures the module. Its Server is set, and of what it grants only Config counts.
	Config sandbox.ModuleConfig
}

// A CatalogMode says whether clients are offered the tools of the server catalog, by
// which they search for others and call them.
type CatalogMode string

// The modes. Only lists them in the place of all others, which can be called by name all
// the same.
const (
	CatalogOff    CatalogMode = ""
	CatalogBeside CatalogMode = "beside"
	CatalogOnly   CatalogMode = "only"
)

func (m CatalogMode) check() error {
	switch m {
	case CatalogOff, CatalogBeside, CatalogOnly:
		return nil
	default:
		return fmt.Errorf("gateway: unknown mode %q of the catalog", m)
	}
}

func (c *Config) checkPropose() error {
	if _, taken := c.Functions[product.GatewayServer]; c.Propose && (taken || slices.ContainsFunc(c.Servers, func(s options.Endpoint) bool { return s.Server == product.GatewayServer })) {
		return fmt.Errorf("gateway: the server id %s is reserved for the tool that proposes calls; choose another", product.GatewayServer)
	}
	return nil
}

func (c *Config) checkCatalog() error {
	if err := c.Catalog.check(); err != nil || c.Catalog == CatalogOff {
		return err
	}
	if _, taken := c.Functions[product.CatalogServer]; taken || slices.ContainsFunc(c.Servers, func(s options.Endpoint) bool { return s.Server == product.CatalogServer }) {
		return fmt.Errorf("gateway: the server id %s is reserved for the catalog; choose another", product.CatalogServer)
	}
	return nil
}

// Jobs says how calls are kept that outlive the request that started them.
type Jobs struct {
	// Open opens the store of the jobs, such as a file of package bridge/sqlite. The store is
	// closed with the gateway. Nil keeps the jobs in memory.
	Open func(context.Context) (JobStore, error)
	// Offer has the tools of the server jobs offered: jobs__start and so on.
	Offer bool
	// NoTasks does not offer clients to call tools as tasks (MCP 2025-11-25,
	// basic/utilities/tasks; 2026-07-28, the extension of that name).
	NoTasks bool
	// Options bound them; New sets the Store and Public, and the Log if it is nil.
	Options jobs.Options
}

// A JobStore keeps jobs.
type JobStore interface {
	jobs.Store
	io.Closer
}

// A Server is an MCP server that comes, or changes, while the gateway runs.
type Server struct {
	options.Endpoint
	// Guest is the WASM module that the server is, if it is one; nothing else says
	// then how it is reached.
	Guest *Guest
	// Sanitize is the profile for its texts; "" leaves that to [Config.Sanitize].
	Sanitize string
	// Input says how arguments are held against its schemas; nil coerces.
	Input *InputRules
	// Concurrent is how many calls may be under way there; zero or less sets no limit
	// of its own.
	Concurrent int
}
