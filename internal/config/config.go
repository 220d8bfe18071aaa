package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"time"
)

// Defaults of what a file leaves out.
const (
	DefaultListen     = "127.0.0.1:7420"
	DefaultDrain      = 20 * time.Second
	DefaultTimeout    = 30 * time.Second      // of a call to a server
	DefaultStart      = 2 * time.Minute       // of a server that is a command; others have DefaultTimeout
	DefaultDecision   = 50 * time.Millisecond // of a policy decision
	DefaultSession    = time.Hour             // without use, after which a session begins anew
	DefaultBody       = 4 << 20               // bytes of a request
	DefaultResult     = 10 << 20              // bytes of an upstream's answer
	DefaultConcurrent = 64                    // calls in progress
	DefaultAuditSize  = 100 << 20             // bytes of a file of the audit log
	DefaultAuditKeep  = 10                    // files of the audit log
	DefaultAuditHold  = 7 * 24 * time.Hour    // age of records before they are removed
)

// A Config is a whole, checked configuration. Every path in it is absolute, and
// every default is filled in unless a field says otherwise. It is not changed
// after [Load], [Open] or [Default] has returned it.
type Config struct {
	File       string        // where it was read from; empty for the defaults
	Project    string        // the trusted project's file that was added; empty without one
	Listen     []string      // host:port, or unix:PATH; see [Config.CheckListen]
	Drain      time.Duration // that calls under way may take to end when the gateway does
	PublicURL  string        // by which clients reach the gateway, without a path; empty: not said
	Vault      Vault         // where the key of the logins is
	TLS        TLS
	Auth       Auth
	Principals []Principal
	Agents     []Agent // whose hooks are answered, in the order of the file
	Console    Console
	Groups     []Group // in the order of the file
	Catalog    Catalog
	Servers    []Server // in the order of the file; the project's after the user's
	Tools      []Module // in the order of the file; the project's after the user's
	Secrets    []BoundSecret
	MustSign   bool // each module has it; see [Module]
	Policy     Policy
	Sanitize   Sanitize
	Pins       Pins
	Approvals  Approvals
	Sessions   Sessions
	Jobs       Jobs
	Audit      Audit
	Limits     Limits
	HTTP       HTTP
	Log        Log
	Telemetry  Telemetry
	Anchor     Anchor
	Arguments  Arguments
	Notify     []Notify // in the order of the file
	ServerInfo ServerInfo
	State      string // folder of keys, caches, control socket
	Warnings   []Problem
	Replay     Replay
	Dev        string // path of the module that its author works on; see [Config.Develop]
}

// ServerInfo is what clients are told of the gateway; empty members are wasmgate's own.
type ServerInfo struct{ Name, Version, Description string }

// Replay says what answers calls in the place of servers. The zero Replay is nothing;
// no file says anything else.
type Replay struct {
	File  string // the recording
	State string // of the gateway whose calls it holds
}

// A Principal is somebody who may be named as the caller.
type Principal struct {
	Tenant, ID string // Tenant is empty where there is none
	Roles      []string
	// Groups are those whose tools it is offered; nil offers all.
	Groups []string
	// Identities are the principal's own addresses, accounts and folders, and domains as
	// @example.com.
	Identities []string
}

// A Server is an upstream MCP server. Exactly one of Command and URL is set.
type Server struct {
	ID        string
	Command   string // absolute, or a bare name to be found in PATH
	Module    Module // that is the server, in the sandbox: where it is, and its limits
	Args      []string
	Written   []string // Command and Args as the file has them, if that is not what they are
	Env       map[string]Secret
	Cwd       string   // empty: the gateway's own
	Confine   *Confine // what the command may do; nil restricts nothing
	URL       string   // may hold a secret in its query: show the Server, not this
	Private   bool     // the host of URL may have a loopback or private address
	Transport string   // auto | streamable-http | sse; auto for a command
	Protocol  string   // auto | 2025-11-25 | 2026-07-28; empty is auto
	Headers   map[string]Secret
	Auth      *ServerAuth   // the credential that it is called with; nil: none
	Start     time.Duration // how long it may take to be ready; zero: see [Server.StartTime]
	Timeout   time.Duration // of one call
	Timeouts  []ToolTimeout // that go before Timeout; the first that matches counts
	Sessions  string        // own: each client has a connection of its own; shared: none has; auto: own for a command, else for clients that it can ask something; empty: auto
	Retry     string        // never | idempotent; empty: never
	Retries   int           // how often a call is sent again at most; zero: once, if it was sent at all
	RetryWait time.Duration // before the first of them, doubled by each
	Health    time.Duration // silence after which it is pinged; zero: the default; [HealthOff]: never
	// Concurrent is how many calls it has in progress; zero sets no limit of its own.
	Concurrent int
	Enabled    bool
	Required   bool       // the gateway is not ready without it
	Groups     []string   // that all it has is in
	Prefix     bool       // offer its tools as server__tool
	Lists      string     // untrusted | trusted; "" means untrusted
	Schema     string     // declared | normalized
	Output     string     // enforce | warn
	Input      string     // coerce | enforce | warn; empty: coerce
	Inputs     []ToolMode // that go before Input; the first that matches counts
	Sanitize   string     // profile of its results; empty: see [Sanitize]
	Methods    []string   // of its own that it may be asked, beside those of MCP
	Replay     string     // must_stub | live | pure; empty: must_stub
	Replays    []ToolMode // that go before Replay, likewise
	Fault      string     // why it cannot be started as written; empty if it can
}

// StartTime is how long the server may take to be ready.
func (s Server) StartTime() time.Duration {
	switch {
	case s.Start != 0:
		return s.Start
	case s.Command != "":
		return DefaultStart
	default:
		return DefaultTimeout
	}
}

// String names the server and its command or the host it is reached at, and
// leaves out arguments, environment, headers and query, which may hold secrets.
func (s Server) String() string {
	if s.Command != "" {
		return fmt.Sprintf("%s (%s)", s.ID, filepath.Base(s.Command))
	}
	if u, err := url.Parse(s.URL); err == nil && u.Host != "" {
		return fmt.Sprintf("%s (%s://%s)", s.ID, u.Scheme, u.Host)
	}
	return s.ID
}

// Format writes what String returns, whatever the verb (see [Secret.Format]).
func (s Server) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue logs the server as String shows it.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.String()) }

// A Module is a WASM module whose tools are offered under Server. Exactly one of
// Path and Ref is set.
type Module struct {
	ID        string
	Path      string
	Ref       string   // oci://registry/repository@sha256:digest, or EmbeddedFiles; Path is empty then
	SHA256    string   // 64 lower-case hex digits; empty: not checked
	Server    string   // local unless the file says otherwise
	Groups    []string // that its tools are in
	Replay    string   // must_stub | live | pure; empty: pure if it is granted nothing, else must_stub
	Grant     ModuleGrant
	Config    map[string]Secret // given to the module as it is
	Args      []string          // of a WASI program; nil: as the module's manifest says
	Isolation string            // call | instance | session; empty: as the module's manifest says
	Verify    *SignedBy         // who has to have signed it; nil is nobody
	MustSign  bool              // it is refused without Verify
	Fault     string            // why it cannot be used as written; empty if it can
	Dev       bool              // its author works on it: see [Config.Develop]
	ModuleLimits
}

// SignedBy says by which key a module has to be signed.
type SignedBy struct {
	Key string // path of a public key in PEM
	// Bundle is the path of a bundle of cosign for the module's file; empty: that of a
	// file with .sigstore.json behind its name, of an artifact what the registry has
	// beside it.
	Bundle   string
	SignedAs string // registry/repository under which an artifact was signed; empty: where it is
}

// ModuleLimits bound a call of a module's tool. Zero fields leave the sandbox's
// defaults.
type ModuleLimits struct {
	Timeout    time.Duration
	Memory     int64 // bytes
	Fuel       int   // instructions
	Output     int64 // bytes of a result
	Log        int64 // bytes
	HostCalls  int
	Concurrent int   // calls at once, of all callers
	FilesBytes int64 // written to files
}

// A ModuleGrant is what a module may use beside its arguments. The zero value is
// nothing.
type ModuleGrant struct {
	HTTP    []HTTPGrant
	Dirs    []DirGrant
	Secrets []string // names, all of them in Config.Secrets
	KV      bool
}

// An HTTPGrant lets a module send requests to an origin.
type HTTPGrant struct {
	Origin  string   // as RFC 6454, section 6.2, writes it: in lower case, without the scheme's own port
	Methods []string // in capitals; GET and HEAD unless the file says otherwise
	// Path is what the path of requests begins with, in whole segments: /v1 and
	// /v1/ both stand for /v1 and what is below it. It is / unless the file says
	// otherwise.
	Path    string
	Private bool // the origin may have a loopback, private or link-local address
}

// A DirGrant lets a module read the files in a folder, which need not exist yet.
type DirGrant struct {
	Path  string // absolute and clean
	Write bool   // change them, too
	As    string // what the module calls it, such as /data; "" is Path
}

// A BoundSecret is a secret that modules use without seeing it: it is put into
// requests to its origin alone.
type BoundSecret struct {
	Name   string
	Value  Secret
	Origin string // as that of an HTTPGrant
	Fault  string // why it cannot be used as written; empty if it can
}

// Policy says what decides about calls.
type Policy struct {
	Packs      []string // built-in packs; may be empty
	Paths      []string // files and folders of the user's own policies
	Grants     string   // path of the grants file, which need not exist
	Labels     string   // path of the labels file, see [ReadLabels]; empty for none
	RateLimits string   // path of the rate limits file, see [ReadRateLimits]; empty for none
	Timeout    time.Duration
	Bundles    []Bundle
	// Shadow is a policy that decides beside this one, with its timeout and bundles,
	// and enforces nothing; nil for none.
	Shadow *Policy
}

// Approvals says how people are asked about calls.
type Approvals struct {
	Channels []string      // client and cli; none: what a policy would ask is refused
	By       []string      // who may answer, in the words of grants: ids or role:NAME; nil: anybody who is asked
	NotSelf  bool          // nobody answers about their own calls; says nothing while everybody is local
	Hold     time.Duration // how long a call waits for an answer
	Expire   time.Duration // how long a question can be answered, and the answer be used
}

// Pins says which definitions of tools are approved.
type Pins struct {
	Mode     string // trust-first | strict | off
	Lockfile string // path, which need not exist
	TLSKey   bool   // the key of its certificate is part of what a server with a URL is
}

// Sessions says how sessions are kept.
type Sessions struct {
	// Scope is connection, where each MCP session is one, or principal, where all
	// calls of a principal are in one, whose labels outlive the gateway.
	Scope string
	TTL   time.Duration // without use, after which a session begins anew
	// TrustPrompt takes io.github.wasmgate/prompt in a call's _meta for the user's
	// own words.
	TrustPrompt bool
}

// Sanitize chooses the profile for a result: of the first rule in Tools that
// matches the offered name of the tool, else the profile of its server, else
// Profile; where that is text, code if the text is source. The first rule in MIME
// that matches the content's type makes it stricter at most. A profile is strict,
// html, text, code or off.
type Sanitize struct {
	Profile string
	Tools   []Rule
	MIME    []Rule
	Secrets Secrets
	// Links are the targets to which links and images stay active: origins, hosts,
	// *.host, or *. Nil leaves those that fetch and carry nothing; an empty list
	// leaves none.
	Links []string
}

// A Rule gives a profile to what matches Pattern: a literal, or a literal
// with * at its end.
type Rule struct{ Pattern, Profile string }

// Audit says where and how calls are recorded.
type Audit struct {
	Path    string
	Record  string // digest | full
	Sync    string // group | always
	MaxSize int64  // bytes, after which the log is continued in a new file
	Keep    int    // files that are kept
	// Hold is how old records are before a file of them is removed; zero leaves that to
	// Keep. Strict refuses calls rather than removing younger ones.
	Hold    time.Duration
	Strict  bool
	HardMax int64 // bytes of all files while younger ones are held; zero is four times those of Keep
	// Rotate is the age at which a file is continued in a new one; zero leaves that to
	// MaxSize. MaxAge is how old records may become; zero sets no end. Compress packs old
	// files.
	Rotate, MaxAge time.Duration
	Compress       bool
}

// Limits bound one call and all of them.
type Limits struct {
	Body       int64 // bytes of a request
	Result     int64 // bytes of an upstream's answer
	Concurrent int   // calls in progress
	Session    int   // those of one session; zero sets no limit of its own
	Processes  int   // of one server that belong to a client each; zero: 16. At most 64 of all servers together
	Tools      []ToolLimit
}

// A ToolLimit is how many calls may be in progress of each tool that Pattern
// matches: a literal, or a literal with * at its end. The first that matches counts.
type ToolLimit struct {
	Pattern    string
	Concurrent int
}

// HTTP lists what the endpoint accepts beside loopback.
type HTTP struct {
	Origins []string // scheme://host[:port]
	Hosts   []string // host[:port]
}

// Log says what the operator's log holds.
type Log struct {
	Level  slog.Level
	Format string // text | json
}

// A Secret is text that must not be shown. Its value is string(s); however it
// is formatted, logged or marshalled, it reads "[redacted]".
type Secret string

const redacted = "[redacted]"

// Format writes "[redacted]" whatever the verb. A String method alone would not
// do: fmt prints the raw value for a verb that does not fit a string.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Default returns what holds without any file: no servers, the embedded
// packs, the log in the state folder of d and the grants, which a person edits,
// in its configuration folder.
func Default(d Dirs) *Config {
	c := beside(d.State)
	c.State = d.State
	c.Policy.Grants = filepath.Join(d.Config, grantsFile)
	c.Pins.Lockfile = filepath.Join(d.Config, lockFile)
	return c
}

const (
	grantsFile = "grants.yaml"
	auditFile  = "audit.jsonl"
	lockFile   = "wasmgate.lock"
)

// beside returns the defaults of a file in dir.
func beside(dir string) *Config {
	return &Config{
		Listen:   []string{DefaultListen},
		Drain:    DefaultDrain,
		Auth:     Auth{Local: true},
		Policy:   Policy{Packs: []string{"grants"}, Grants: filepath.Join(dir, grantsFile), Timeout: DefaultDecision},
		Catalog:  Catalog{Mode: "off"},
		Sanitize: Sanitize{Profile: "text"},
		Pins:     Pins{Mode: "trust-first", Lockfile: filepath.Join(dir, lockFile)},
		Sessions: Sessions{Scope: "connection", TTL: DefaultSession},
		Jobs:     defaultJobs(),
		Approvals: Approvals{
			Channels: slices.Clone(channels), Hold: 55 * time.Second, Expire: 10 * time.Minute,
		},
		Audit: Audit{
			Path: filepath.Join(dir, auditFile), Record: "digest", Sync: "group",
			MaxSize: DefaultAuditSize, Keep: DefaultAuditKeep, Hold: DefaultAuditHold,
		},
		Limits:    Limits{Body: DefaultBody, Result: DefaultResult, Concurrent: DefaultConcurrent},
		Log:       Log{Level: slog.LevelInfo, Format: "text"},
		Telemetry: defaultTelemetry(),
		State:     filepath.Join(dir, "state"),
	}
}
