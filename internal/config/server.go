package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/textproto"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/lookalike"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
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
	Methods    []string   `key:"methods methods"`                   // of its own that it may be asked, beside those of MCP
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

// apps reads on, off, or what pages may use.
func (d *decoder) apps(to **Apps) reader {
	return func(n *tree.Node, path string) {
		*to = new(Apps)
		d.switched(&(*to).Mode, *to)(n, path)
	}
}

// skills reads on, off, or which skills are offered.
func (d *decoder) skills(to **Skills) reader {
	return func(n *tree.Node, path string) {
		*to = new(Skills)
		d.switched(&(*to).Mode, *to)(n, path)
	}
}

// switched reads on or off into mode, or a table into all.
func (d *decoder) switched(mode *string, all any) reader {
	return func(n *tree.Node, path string) {
		if n.Kind == tree.Table {
			d.object(all, n, path)
			return
		}
		d.one(mode, "on", "off")(n, path)
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

// servers reads servers, beside those of base, which another file has.
func (d *decoder) servers(to *[]Server, base []Server, n *tree.Node, path string) {
	alike := d.alike(base)
	d.each(n, path, func(f tree.Field, path string) {
		at := &tree.Node{Line: f.Line}
		switch {
		case !serverPattern.MatchString(f.Key):
			d.fail(at, path, "a server is named with lower-case letters, digits and -, such as %q", serverID(f.Key))
		case slices.Contains(reserved, f.Key):
			d.fail(at, path, "is a reserved name: choose another")
		}
		alike(f, path)
		*to = append(*to, d.server(f, path))
	})
}

func (d *decoder) server(f tree.Field, path string) Server {
	s := Server{ID: f.Key}
	d.fill(&s)
	for _, g := range f.Value.Fields { // first, since it decides how variables are read
		if g.Key == "enabled" {
			d.flag(&s.Enabled)(g.Value, tree.Join(path, g.Written()))
		}
	}
	outer := d.lenient
	d.lenient = !s.Enabled
	defer func() { d.lenient = outer }()
	fault := d.faulting()

	var envFrom, envFile map[string]Secret
	readers := d.fields(&s)
	maps.Copy(readers, map[string]reader{
		"enabled":  func(*tree.Node, string) {},
		"env_from": func(n *tree.Node, path string) { d.envFrom(&envFrom, n, path) },
		"env_file": func(n *tree.Node, path string) { d.envFile(&envFile, n, path) },
		"module":   d.module(&s.Module),
	})
	if f.Value.Get("module") == nil { // which gets its secrets otherwise
		for _, key := range []string{"args", "env", "headers"} {
			readers[key] = d.referring(readers[key])
		}
	}
	of := d.fields(&s.Module)
	for _, key := range ofModule {
		readers[key] = of[key]
	}
	ofHosts(d, f.Value, path, readers)
	d.table(f.Value, path, readers)
	s.Env = joined(envFile, envFrom, s.Env)
	s.Fault = fault()
	s.Written, s.Declared = asWritten(f.Value, s), declared(f.Value, declares, envFile)
	if f.Value.Kind == tree.Table || f.Value.Kind == tree.Null {
		d.oneWay(f.Value, path)
		d.checkServerAuth(f.Value, path, &s)
	}
	if at := f.Value.Get("protocol"); at != nil && s.Protocol == "2026-07-28" && s.Transport == "sse" {
		d.fail(at, tree.Join(path, "protocol"), "the older HTTP+SSE has no revision 2026-07-28: take another transport")
	}
	if at := f.Value.Get("url"); at != nil && insecure(s.URL) {
		d.warn(at.Line, tree.Join(path, "url"), "plain http to another machine: calls and headers can be read on the way")
	}
	return s
}

// ofModule are the keys of a module that a server has which is one.
var ofModule = []string{"sha256", "limits", "verify"}

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
func (d *decoder) oneWay(n *tree.Node, path string) {
	var way string
	for _, key := range []string{"command", "module", "folder", "url"} {
		if n.Get(key) == nil {
			continue
		}
		if way != "" {
			d.fail(n, path, "has both a %s and a %s: keep one", way, key)
			return
		}
		way = key
	}
	if way == "" {
		d.fail(n, path, "needs a command, a url, a module, or a folder of skills")
		return
	}
	for _, f := range n.Fields {
		var needs []string
		for _, other := range []string{"command", "module", "folder", "url"} {
			if slices.Contains(ways[other], f.Key) {
				needs = append(needs, "a "+other)
			}
		}
		if len(needs) > 0 && !slices.Contains(ways[way], f.Key) {
			d.fail(&tree.Node{Line: f.Line}, tree.Join(path, f.Key), "has no effect without %s", strings.Join(needs, " or "))
		}
	}
}

// command reads a program: a bare name is looked for in PATH, anything with a
// separator is a path.
func (d *decoder) command(to *string) reader {
	return func(n *tree.Node, path string) {
		if s, ok := d.checked(n, path, []check{plain}); ok {
			if strings.ContainsRune(filepath.ToSlash(s), '/') {
				s = d.resolve(s)
			}
			*to = s
		}
	}
}

func (d *decoder) args(to *[]string) reader {
	return func(n *tree.Node, path string) {
		d.items(n, path, func(item *tree.Node, at string) {
			if s, ok := d.written(item, at); ok {
				*to = append(*to, s)
			}
		})
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

// secrets reads names with values that are never quoted. Value may be nil.
func (d *decoder) secrets(to *map[string]Secret, name, value check) reader {
	return func(n *tree.Node, path string) {
		*to = map[string]Secret{}
		seen := map[string]bool{}
		d.each(n, path, func(f tree.Field, path string) {
			at := &tree.Node{Line: f.Line}
			if err := name(f.Key); err != nil {
				d.fail(at, path, "%q %v", f.Key, err)
			}
			if value != nil { // a header, whose case means nothing
				folded := strings.ToLower(f.Key)
				if seen[folded] {
					d.fail(at, path, "given twice, in different letter case")
				}
				seen[folded] = true
			}
			s, ok := d.written(f.Value, path)
			if ok && value != nil && !d.unchecked(f.Value) && !variables.Refers(s) {
				if err := value(s); err != nil {
					d.fail(f.Value, path, "%v", err)
				}
			}
			if ok {
				(*to)[f.Key] = Secret(s)
			}
		})
	}
}

// profile reads the name of a profile, alone or as {profile: NAME}.
func (d *decoder) profile(to *string) reader {
	return func(n *tree.Node, path string) {
		if n.Kind == tree.Table {
			d.table(n, path, map[string]reader{"profile": d.one(to, profiles...)})
			return
		}
		d.one(to, profiles...)(n, path)
	}
}

func checkVariable(s string) error {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return errors.New("is not a name of an environment variable: it is empty, or has = or a NUL character")
	}
	return nil
}

var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // token of RFC 9110, 5.6.2

// transportHeaders are set by HTTP and by MCP's transport themselves.
var transportHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Mcp-Method", "Mcp-Name",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func checkHeader(s string) error {
	if !headerPattern.MatchString(s) {
		return errors.New("is not a name of a header")
	}
	if slices.Contains(transportHeaders, textproto.CanonicalMIMEHeaderKey(s)) {
		return errors.New("is set by the transport")
	}
	return nil
}

func checkHeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("the value holds a line break or another control character")
	}
	return nil
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("does not begin with https:// or http://")
	case u.Hostname() == "":
		return errors.New("names no host")
	case u.User != nil:
		return errors.New("holds a user or password: put it into headers")
	case u.Fragment != "":
		return errors.New("holds a fragment, which is not sent")
	}
	return nil
}

// insecure reports whether what goes to the URL can be read on the way.
func insecure(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "http" && u.Hostname() != "" && !loopback.Host(u.Hostname())
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

// Render returns the servers as the `servers:` block of a wasmgate.yaml, which
// [Load] reads back as they are. Values are written with their variables, as
// [ImportMCP] returns them; pass the servers through [Extract] first. What env_from
// and env_file have brought stands under env. A fault becomes a comment above its
// server.
func Render(servers []Server) []byte {
	var b bytes.Buffer
	b.WriteString("servers:\n")
	for _, s := range servers {
		renderServer(&b, s)
	}
	return b.Bytes()
}

func renderServer(b *bytes.Buffer, s Server) {
	if s.Fault != "" {
		fmt.Fprintf(b, "  # %s\n", oneLine(s.Fault))
	}
	fmt.Fprintf(b, "  %s:\n", scalar(s.ID))
	l := lines{b, "    "}
	l.text("module", s.Module.Path+s.Module.Ref, "")
	for _, k := range keys(reflect.ValueOf(s.Module)) {
		if slices.Contains(ofModule, k.name) && !k.field.IsZero() {
			l.value(k)
		}
	}
	l.values(s)
}

// alike returns a function that reports a server which could be taken for one
// before it, for one of base, or for one of the gateway's own: a server's name
// begins the names of its tools, by which people grant them and agents choose them.
func (d *decoder) alike(base []Server) func(f tree.Field, path string) {
	var known lookalike.Index
	for _, id := range reserved {
		known.Add(id)
	}
	for _, s := range base {
		known.Add(s.ID)
	}
	return func(f tree.Field, path string) {
		if other, why, alike := known.Alike(f.Key, nil); alike {
			d.fail(&tree.Node{Line: f.Line}, path, "the server's name, %s, looks like %s (%s): rename one of them", f.Key, other, why)
		}
		known.Add(f.Key)
	}
}
