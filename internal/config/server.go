package config

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/hosts"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/lookalike"
)

// A Server is an upstream MCP server. Exactly one of Command, Module, Folder and URL is set.
type Server struct {
	ID        string
	Command   string            `key:"command command"` // absolute, or a bare name to be found in PATH
	Module    Module            // that is the server, in the sandbox: where it is, and its limits
	Args      []string          `key:"args args"`
	Written   []string          // Command and Args as the file has them, if that is not what they are
	Declared  string            // a digest of what the file says of how it runs and is reached
	Env       map[string]Secret `key:"env"`
	Cwd       string            `key:"cwd path"`                                               // empty: the gateway's own
	Confine   *Confine          `key:"confine"`                                                // what the command may do; nil restricts nothing
	Folder    string            `key:"folder path"`                                            // with skills, served by the gateway itself
	URL       string            `key:"url url"`                                                // may hold a secret in its query: show the Server, not this
	Private   bool              `key:"private"`                                                // the host of URL may have a loopback or private address
	Transport string            `key:"transport auto|http|streamable-http|sse" default:"auto"` // auto for a command
	Protocol  string            `key:"protocol auto|2025-11-25|2026-07-28"`                    // empty is auto
	Headers   map[string]Secret `key:"headers header"`
	Auth      *ServerAuth       `key:"auth login"`                    // the credential that it is called with; nil: none
	Start     time.Duration     `key:"start 1s..1h"`                  // how long it may take to be ready; zero: see [Server.StartTime]
	Timeout   time.Duration     `key:"timeout 1ms..24h" default:"5m"` // of one call: clients have limits of their own, and cancel
	Timeouts  []ToolTimeout     `key:"timeouts local"`                // that go before Timeout; the first that matches counts
	Retry     string            `key:"retry never|idempotent"`        // empty: never
	Retries   int               `key:"retries 1..10"`                 // how often a call is sent again at most; zero: once, if it was sent at all
	RetryWait time.Duration     `key:"retry_wait 1ms..30s"`           // before the first of them, doubled by each
	Health    time.Duration     `key:"health health"`                 // silence after which it is pinged; zero: the default; [HealthOff]: never
	// Concurrent is how many calls it has in progress; zero sets no limit of its own.
	Concurrent int        `key:"concurrent 1..65536"`
	Enabled    bool       `key:"enabled" default:"true"`
	Required   bool       `key:"required"`                 // the gateway is not ready without it
	Prefix     bool       `key:"prefix" default:"true"`    // offer its tools as server__tool
	Sessions   string     `key:"sessions auto|own|shared"` // own: each client has a connection of its own; shared: none has; auto: own for a command, else for clients that it can ask something; empty: auto
	Lists      string     `key:"lists untrusted|trusted"`  // "" means untrusted
	Schema     string     `key:"schema declared|normalized" default:"declared"`
	Repair     string     `key:"repair on|off"`                    // empty: on; off: a keyword of a schema that cannot be judged costs its tool
	Input      string     `key:"input coerce|enforce|warn"`        // empty: coerce
	Inputs     []ToolMode `key:"inputs local coerce|enforce|warn"` // that go before Input; the first that matches counts
	Output     string     `key:"output enforce|warn" default:"enforce"`
	Sanitize   string     `key:"sanitize profile"`                  // of its results; empty: see [Sanitize]
	Replay     string     `key:"replay must_stub|live|pure"`        // empty: must_stub
	Replays    []ToolMode `key:"replays local must_stub|live|pure"` // that go before Replay, likewise
	Origin     *Origin    `key:"origin"`                            // nil: it is of no registry
	Apps       *Apps      `key:"apps apps"`                         // nil: once a person has approved a page
	Skills     *Skills    `key:"skills skills"`                     // nil: as pins say
	Methods    []string   `key:"methods methods"`                   // methods of its own that it may be asked, besides those of MCP
	Groups     []string   `key:"groups group"`                      // that all it has is in
	Fault      string     // why it cannot be started as written; empty if it can
}

// An Origin is the entry of a registry that a server was made of. SHA256 is of all that the entry says.
type Origin struct {
	Name     string `key:"name"`
	Version  string `key:"version"`
	Registry string `key:"registry"` // empty: the official one
	SHA256   string `key:"sha256 digest"`
}

// Apps say whether the pages of a server's apps are shown, what they may use, and which part is
// pinned. With any of the keys they are shown; a nil list leaves what was approved.
type Apps struct {
	Mode        string   // on or off; empty with lists
	Connect     []string `key:"connect source"`
	Resources   []string `key:"resources source"`
	Frames      []string `key:"frames source"`
	Base        []string `key:"base source"`
	Permissions []string `key:"permissions camera|microphone|geolocation|clipboardWrite"`
	Domain      bool     `key:"domain"`               // pages run at the domain that they ask for
	Pin         string   `key:"pin bytes|policy|off"` // the part that is pinned; empty: bytes
}

// Skills say whether the skills of a server are offered, and which of them. With any of the other
// keys they are.
type Skills struct {
	Mode     string // on or off; empty with the others
	Trusted  bool   `key:"trusted"`              // the operator trusts their authors
	Dynamic  bool   `key:"dynamic"`              // also those without digests
	Widening string `key:"widening note|refuse"` // what becomes of those that ask for rights; empty: note
}

// readApps reads on, off, or what pages may use.
func readApps(to **Apps) decode.Reader {
	return func(v decode.Value) {
		*to = new(Apps)
		switched(&(*to).Mode, *to)(v)
	}
}

// readSkills reads on, off, or which skills are offered.
func readSkills(to **Skills) decode.Reader {
	return func(v decode.Value) {
		*to = new(Skills)
		switched(&(*to).Mode, *to)(v)
	}
}

// switched reads on or off into mode, or a table into all.
func switched(mode *string, all any) decode.Reader {
	return func(v decode.Value) {
		if v.Kind == tree.Table {
			v.Object(all)
			return
		}
		decode.One(mode, "on", "off")(v)
	}
}

// OwnByDefault reports whether each client has a process of its own because the configuration says
// nothing else.
func (s Server) OwnByDefault() bool {
	return s.Enabled && s.Command != "" && cmp.Or(s.Sessions, "auto") == "auto"
}

// StartTime is how long the server may take to be ready.
func (s Server) StartTime() time.Duration {
	switch {
	case s.Start != 0:
		return s.Start
	case s.Command != "":
		return DefaultStart
	default:
		return DefaultReach
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

var serverPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// reserved are the servers that the gateway itself offers.
var reserved = []string{"local", "jobs", "catalog"}

// servers reads servers, whose ids must not be those of base, which is from another file.
func servers(to *[]Server, base []Server) decode.Reader {
	return func(v decode.Value) {
		alike := alike(base)
		for f := range v.Entries() {
			switch {
			case !serverPattern.MatchString(f.Key):
				f.At.Fail("a server is named with lower-case letters, digits and -, such as %q", serverID(f.Key))
			case slices.Contains(reserved, f.Key):
				f.At.Fail("is a reserved name: choose another")
			}
			alike(f)
			*to = append(*to, server(f))
		}
	}
}

// CheckServers reports what is wrong with the servers of the wasmgate.yaml at path, whose variables
// are left as they are. The error is a [tree.Problems].
func CheckServers(path string, n *tree.Node) error {
	f := &decode.File{Name: path, Dir: filepath.Dir(path), Keep: true, Words: words}
	var all []Server
	servers(&all, nil)(f.Value(n, "servers"))
	return f.Problems.Err()
}

func server(f decode.Field) Server {
	s, v := Server{ID: f.Key}, f.Value
	v.File().Fill(&s)
	for i, g := range v.Fields { // first, since it decides how variables are read
		if g.Key == "enabled" {
			decode.Flag(&s.Enabled)(v.Field(i).Value)
		}
	}
	if !s.Enabled {
		v = v.Lenient()
	}
	v, fault := v.Faulting()

	var envFrom, envFile map[string]Secret
	readers := words.Fields(&s)
	maps.Copy(readers, map[string]decode.Reader{
		"enabled":  func(decode.Value) {},
		"env_from": readEnvFrom(&envFrom),
		"env_file": readEnvFile(&envFile),
		"module":   module(&s.Module),
	})
	if !v.Has("module") { // which gets its secrets otherwise
		for _, key := range []string{"args", "env", "headers"} {
			readers[key] = decode.Referring(readers[key])
		}
	}
	of := words.Fields(&s.Module)
	for _, key := range ModuleKeys {
		readers[key] = of[key]
	}
	hosts.Explain(v, readers)
	v.Table(readers)
	s.Env = joined(envFile, envFrom, s.Env)
	s.Fault = fault()
	s.Written, s.Declared = asWritten(v.Node, s), declared(v.Node, declares, envFile)
	if v.Kind == tree.Table || v.Kind == tree.Null {
		oneWay(v)
		s.checkAuth(v)
	}
	if v.Has("protocol") && s.Protocol == "2026-07-28" && s.Transport == "sse" {
		v.Get("protocol").Fail("the older HTTP+SSE has no revision 2026-07-28: take another transport")
	}
	if v.Has("url") && check.Insecure(s.URL) {
		v.Get("url").Warn("plain http to another machine: calls and headers can be read on the way")
	}
	return s
}

// ModuleKeys are the keys of a module that a server has which is one.
var ModuleKeys = []string{"sha256", "limits", "verify"}

// A ToolMode is a mode of the tools that Pattern matches, in the words of their server.
type ToolMode struct {
	Pattern string `key:"*"`
	Mode    string `key:"="`
}

// ways are the keys by which a server is reached, with those that belong to each.
var ways = map[string][]string{
	"command": {"args", "env", "env_from", "env_file", "cwd", "confine", "protocol", "start"},
	"module":  {"args", "env", "sha256", "limits", "verify"},
	"folder":  {},
	"url":     {"transport", "protocol", "headers", "auth", "private", "start"},
}

// oneWay reports a server that is reached in no way or in several, and keys that
// belong to another way.
func oneWay(v decode.Value) {
	var way string
	for _, key := range []string{"command", "module", "folder", "url"} {
		if !v.Has(key) {
			continue
		}
		if way != "" {
			v.Fail("has both a %s and a %s: keep one", way, key)
			return
		}
		way = key
	}
	if way == "" {
		v.Fail("needs a command, a url, a module, or a folder of skills")
		return
	}
	for i, f := range v.Fields {
		var needs []string
		for _, other := range []string{"command", "module", "folder", "url"} {
			if slices.Contains(ways[other], f.Key) {
				needs = append(needs, "a "+other)
			}
		}
		if len(needs) > 0 && !slices.Contains(ways[way], f.Key) {
			at := v.Field(i).At
			at.Path = tree.Join(v.Path, f.Key)
			at.Fail("has no effect without %s", strings.Join(needs, " or "))
		}
	}
}

// command reads a program: a bare name is looked for in PATH, anything with a
// separator is a path.
func command(to *string) decode.Reader {
	return func(v decode.Value) {
		if s, ok := v.Checked(check.Plain); ok {
			if strings.ContainsRune(filepath.ToSlash(s), '/') {
				s = v.Resolve(s)
			}
			*to = s
		}
	}
}

// asWritten returns a server's command and arguments before variables were
// replaced and paths resolved, or nil if that changed nothing.
func asWritten(n *tree.Node, s Server) []string {
	command := n.Get("command")
	if command == nil {
		return nil
	}
	written := []string{command.Text}
	if args := n.Get("args"); args != nil {
		for _, item := range args.Items {
			written = append(written, item.Text)
		}
	}
	if slices.Equal(written, append([]string{s.Command}, s.Args...)) {
		return nil
	}
	return written
}

var profiles = []string{"strict", "html", "text", "code", "off"}

// profile reads the name of a profile, as it is or as {profile: NAME}.
func profile(to *string) decode.Reader {
	return func(v decode.Value) {
		if v.Kind == tree.Table {
			v.Table(map[string]decode.Reader{"profile": decode.One(to, profiles...)})
			return
		}
		decode.One(to, profiles...)(v)
	}
}

// serverID makes a server id of any name.
func serverID(name string) string {
	id := strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	switch {
	case id == "":
		return "server"
	case slices.Contains(reserved, id):
		return id + "-server"
	}
	return id
}

// alike returns a function that reports a server which could be taken for one
// before it, for one of base, or for one of the gateway's own: a server's name
// begins the names of its tools, by which people grant them and agents choose them.
func alike(base []Server) func(f decode.Field) {
	var known lookalike.Index
	for _, id := range reserved {
		known.Add(id)
	}
	for _, s := range base {
		known.Add(s.ID)
	}
	return func(f decode.Field) {
		if other, why, alike := known.Alike(f.Key, nil); alike {
			f.At.Fail("the server's name, %s, looks like %s (%s): rename one of them", f.Key, other, why)
		}
		known.Add(f.Key)
	}
}
