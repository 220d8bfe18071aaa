package gateway

import (
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/internal/clean"
	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/local"
	"github.com/wasmgate/wasmgate/bridge/internal/recording"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/fault"
	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/confine"
	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/secrets"
)

// What users of a gateway name of the packages that it is made of.
type (
	// An EndpointConfig is a server, and how it is reached.
	EndpointConfig = upstream.Config
	// A ServerStatus tells how one server is, and a Phase where it is in its life.
	ServerStatus = upstream.Status
	Phase        = upstream.Phase
	// A Fault is what went wrong with one server.
	Fault = fault.Fault
	// A Declaration is what a server is and declares, at one time.
	Declaration = upstream.Declaration
	// A ToolTimeout is the timeout of some tools.
	ToolTimeout = upstream.ToolTimeout

	// ToolOptions say how the tools of a server are offered.
	ToolOptions = listing.Options
	// AppOptions say how the pages of a server's apps are offered, and AppSources what they
	// may use.
	AppOptions = listing.Apps
	AppSources = apps.Allow
	// SkillOptions say how the skills of a server are offered.
	SkillOptions = listing.Skills
	// Groups say what is in the groups of an operator.
	Groups = listing.Groups

	// A LocalTool is a function that is a tool.
	LocalTool = local.Tool
	// A ToolModule is the WASM module in which a local tool runs: see [LocalTool].
	ToolModule = listing.Module

	// Sanitize chooses the profile for a text: of the first rule in Tools that matches the
	// tool, else its server's, else of the first rule in MIME that matches, else Profile.
	// Empty means text. It says what becomes of secrets, too.
	Sanitize = clean.Sanitize
	// A Rule gives a profile to what matches Pattern: a literal, or a literal with * at its
	// end.
	Rule = clean.Rule
	// SecretRules say what becomes of secrets in arguments and results. The zero value
	// redacts both, but for what only looks like a secret, which is reported.
	SecretRules = clean.SecretRules
	// A SecretRule says so for tools whose qualified names match Pattern.
	SecretRule = clean.SecretRule

	// Lists are those that have changed: see [Fleet].Watch.
	Lists = fleet.Lists

	// Fields of a [Config] and of what it holds have these types.
	PinOptions      = lock.Options     // [Config.Pins]
	ApprovalOptions = approval.Options // [Config.Approvals]
	ApprovalChannel = approval.Channel
	JobOptions      = jobs.Options    // [Jobs.Options]
	SessionOptions  = session.Options // [Config.Sessions]
	DialOptions     = dial.Options    // [Config.Dial]
	Secret          = dial.Secret     // [Config.Secrets]
	HTTPRule        = dial.Rule       // [Grant.HTTP]
	SecretAllow     = secrets.Allow   // [SecretRules.Allow]
	SecretKind      = secrets.Rule    // [SecretRules.Rules]
	ConfineRules    = confine.Rules   // [EndpointConfig.Confine]
)

// The phases of a server.
const (
	Idle       = upstream.Idle
	Connecting = upstream.Connecting
	Starting   = upstream.Starting
	Ready      = upstream.Ready
	Faulted    = upstream.Faulted
	Closing    = upstream.Closing
	Closed     = upstream.Closed
)

// InProcess reaches a server of the MCP SDK in this process: it is the Dial of an
// [EndpointConfig]. Each connection is a session of its own.
func InProcess(s *mcp.Server) func() (mcp.Transport, error) { return wire.InProcess(s) }

// DialStreams returns a Dial for [EndpointConfig] of a server that speaks on two
// streams as one does on its standard input and output. Open begins the server:
// from reads what it writes, to is what it reads. Both are closed when the
// connection ends, which is to end the server.
func DialStreams(open func() (from io.ReadCloser, to io.WriteCloser, err error)) func() (mcp.Transport, error) {
	return wire.DialStreams(open)
}

// NewSecret returns the secret with that name and value, bound to an origin: scheme, host
// and port. The value has 8 to 4096 bytes, and may stand in a header.
func NewSecret(name, value, origin string) (Secret, error) {
	return dial.NewSecret(name, value, origin)
}

// Environ returns the least that a program needs of an environment that lookup knows, for
// [EndpointConfig], and extra, which wins. lookup is [os.LookupEnv]; nil finds nothing.
func Environ(extra map[string]string, lookup func(string) (string, bool)) []string {
	return confine.Environ(extra, lookup)
}

type (
	// Replay has a gateway answer from a recording: what must be stubbed is not started, and
	// answered with the recorded results of the same tools and equal arguments, in the order
	// of the recording, and each once. A call that the recording does not hold fails as
	// not_connected. Calls go the whole way through the gate.
	Replay = recording.Replay
	// A RecordedCall is a call of a tool whose result was written down; or a prompt that was
	// got, or a resource that was read.
	RecordedCall = recording.Call
	// A ReplayMode says what a gateway that replays a recording does with a tool.
	ReplayMode = recording.Mode
)

// The modes. What must be stubbed is answered from the recording and never touched;
// pure tools, which only compute, and live ones are called. The zero mode is Pure for
// sandboxed tools without capabilities, and MustStub for all others.
const (
	MustStub = recording.MustStub
	Live     = recording.Live
	Pure     = recording.Pure
)
