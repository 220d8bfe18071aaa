package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/textproto"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/loopback"
)

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

var serverPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// reserved are the servers that the gateway itself offers.
var reserved = []string{"local", "jobs", "catalog"}

// servers reads servers, beside those of base, which another file has.
func (d *decoder) servers(to *[]Server, base []Server, n *node, path string) {
	alike := d.alike(base)
	d.each(n, path, func(f field, path string) {
		at := &node{line: f.line}
		switch {
		case !serverPattern.MatchString(f.key):
			d.fail(at, path, "a server is named by lower-case letters, digits and -, such as %q", serverID(f.key))
		case slices.Contains(reserved, f.key):
			d.fail(at, path, "the name is reserved: choose another")
		}
		alike(f, path)
		*to = append(*to, d.server(f, path))
	})
}

func (d *decoder) server(f field, path string) Server {
	s := Server{
		ID: f.key, Transport: "auto", Timeout: DefaultTimeout, Enabled: true, Prefix: true,
		Schema: "declared", Output: "enforce",
	}
	for _, g := range f.value.fields { // first, since it decides how variables are read
		if g.key == "enabled" {
			d.flag(&s.Enabled)(g.value, join(path, g.written()))
		}
	}
	outer := d.lenient
	d.lenient = !s.Enabled
	defer func() { d.lenient = outer }()
	fault := d.faulting()

	var envFrom, envFile map[string]Secret
	readers := map[string]reader{
		"command":    d.command(&s.Command),
		"args":       d.args(&s.Args),
		"env":        d.secrets(&s.Env, checkVariable, nil),
		"env_from":   func(n *node, path string) { d.envFrom(&envFrom, n, path) },
		"env_file":   func(n *node, path string) { d.envFile(&envFile, n, path) },
		"cwd":        d.path(&s.Cwd),
		"confine":    func(n *node, path string) { s.Confine = d.confine(n, path) },
		"module":     d.module(&s.Module),
		"sha256":     d.text(&s.Module.SHA256, matches(digestPattern, "64 hex digits in lower case")),
		"limits":     func(n *node, path string) { d.moduleLimits(&s.Module.ModuleLimits, n, path) },
		"verify":     d.signedBy(&s.Module),
		"url":        d.text(&s.URL, checkURL),
		"private":    d.flag(&s.Private),
		"transport":  d.one(&s.Transport, "auto", "streamable-http", "sse"),
		"protocol":   d.one(&s.Protocol, "auto", "2025-11-25", "2026-07-28"),
		"headers":    d.secrets(&s.Headers, checkHeader, checkHeaderValue),
		"auth":       d.serverAuth(&s.Auth),
		"start":      d.duration(&s.Start, time.Second, time.Hour),
		"timeout":    d.duration(&s.Timeout, time.Millisecond, 24*time.Hour),
		"concurrent": d.count(&s.Concurrent, 1, maxConcurrent),
		"timeouts":   func(n *node, path string) { d.timeouts(&s.Timeouts, n, path) },
		"sessions":   d.one(&s.Sessions, "auto", "own", "shared"),
		"retry":      d.one(&s.Retry, "never", "idempotent"),
		"retries":    d.count(&s.Retries, 1, maxRetries),
		"retry_wait": d.duration(&s.RetryWait, time.Millisecond, maxRetryWait),
		"health":     d.health(&s.Health),
		"enabled":    func(*node, string) {},
		"required":   d.flag(&s.Required),
		"groups":     d.groupNames(&s.Groups),
		"prefix":     d.flag(&s.Prefix),
		"methods":    d.methods(&s.Methods),
		"replay":     d.one(&s.Replay, replayModes...),
		"replays":    d.toolModes(&s.Replays, replayModes),
		"schema":     d.one(&s.Schema, "declared", "normalized"),
		"output":     d.one(&s.Output, "enforce", "warn"),
		"input":      d.one(&s.Input, inputModes...),
		"inputs":     d.toolModes(&s.Inputs, inputModes),
		"sanitize":   d.profile(&s.Sanitize),
		"lists":      d.one(&s.Lists, "untrusted", "trusted"),
	}
	d.table(f.value, path, readers)
	s.Env = joined(envFile, envFrom, s.Env)
	s.Fault = fault()
	s.Written = asWritten(f.value, s)
	if f.value.kind == table || f.value.kind == null {
		d.oneWay(f.value, path)
		d.checkServerAuth(f.value, path, &s)
	}
	if at := f.value.get("protocol"); at != nil && s.Protocol == "2026-07-28" && s.Transport == "sse" {
		d.fail(at, join(path, "protocol"), "the older HTTP+SSE has no revision 2026-07-28: take another transport")
	}
	if at := f.value.get("url"); at != nil && insecure(s.URL) {
		d.warn(at.line, join(path, "url"), "plain http to another machine: calls and headers can be read on the way")
	}
	return s
}

// inputModes are how arguments are held against the input schema of a tool.
var inputModes = []string{"coerce", "enforce", "warn"}

// A ToolMode is a mode of the tools that Pattern matches, in the words of their server.
type ToolMode struct{ Pattern, Mode string }

// toolModes reads modes of tools, in their order.
func (d *decoder) toolModes(to *[]ToolMode, modes []string) reader {
	return func(n *node, path string) {
		d.each(n, path, func(f field, path string) {
			t := ToolMode{Pattern: f.key}
			if err := matches(localPattern, "the name of a tool as its server has it, or its beginning and *")(f.key); err != nil {
				d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
			}
			d.one(&t.Mode, modes...)(f.value, path)
			*to = append(*to, t)
		})
	}
}

// replayModes are what serve --replay does with the tools of a server or module.
var replayModes = []string{"must_stub", "live", "pure"}

// ways are the keys by which a server is reached, with those that belong to each.
var ways = map[string][]string{
	"command": {"args", "env", "env_from", "env_file", "cwd", "confine", "protocol", "start"},
	"module":  {"args", "env", "sha256", "limits", "verify"},
	"url":     {"transport", "protocol", "headers", "auth", "private", "start"},
}

// oneWay reports a server that is reached in no way or in several, and keys that
// belong to another way.
func (d *decoder) oneWay(n *node, path string) {
	var way string
	for _, key := range []string{"command", "module", "url"} {
		if n.get(key) == nil {
			continue
		}
		if way != "" {
			d.fail(n, path, "has both a %s and a %s: keep one", way, key)
			return
		}
		way = key
	}
	if way == "" {
		d.fail(n, path, "needs a command, a url, or a module")
		return
	}
	for _, f := range n.fields {
		var needs []string
		for _, other := range []string{"command", "module", "url"} {
			if slices.Contains(ways[other], f.key) {
				needs = append(needs, "a "+other)
			}
		}
		if len(needs) > 0 && !slices.Contains(ways[way], f.key) {
			d.fail(&node{line: f.line}, join(path, f.key), "has no effect without %s", strings.Join(needs, " or "))
		}
	}
}

// command reads a program: a bare name is looked for in PATH, anything with a
// separator is a path.
func (d *decoder) command(to *string) reader {
	return func(n *node, path string) {
		if s, ok := d.checked(n, path, []check{plain}); ok {
			if strings.ContainsRune(filepath.ToSlash(s), '/') {
				s = d.resolve(s)
			}
			*to = s
		}
	}
}

func (d *decoder) args(to *[]string) reader {
	return func(n *node, path string) {
		d.items(n, path, func(item *node, at string) {
			if s, ok := d.written(item, at); ok {
				*to = append(*to, s)
			}
		})
	}
}

// asWritten returns a server's command and arguments before variables were
// replaced and paths resolved, or nil if that changed nothing.
func asWritten(n *node, s Server) []string {
	command := n.get("command")
	if command == nil {
		return nil
	}
	written := []string{command.text}
	if args := n.get("args"); args != nil {
		for _, item := range args.items {
			written = append(written, item.text)
		}
	}
	if slices.Equal(written, append([]string{s.Command}, s.Args...)) {
		return nil
	}
	return written
}

// secrets reads names with values that are never quoted. Value may be nil.
func (d *decoder) secrets(to *map[string]Secret, name, value check) reader {
	return func(n *node, path string) {
		*to = map[string]Secret{}
		seen := map[string]bool{}
		d.each(n, path, func(f field, path string) {
			at := &node{line: f.line}
			if err := name(f.key); err != nil {
				d.fail(at, path, "%q %v", f.key, err)
			}
			if value != nil { // a header, whose case means nothing
				folded := strings.ToLower(f.key)
				if seen[folded] {
					d.fail(at, path, "given twice, in another case")
				}
				seen[folded] = true
			}
			s, ok := d.written(f.value, path)
			if ok && value != nil && !d.unchecked(f.value) {
				if err := value(s); err != nil {
					d.fail(f.value, path, "%v", err)
				}
			}
			if ok {
				(*to)[f.key] = Secret(s)
			}
		})
	}
}

// profile reads the name of a profile, alone or as {profile: NAME}.
func (d *decoder) profile(to *string) reader {
	return func(n *node, path string) {
		if n.kind == table {
			d.table(n, path, map[string]reader{"profile": d.one(to, profiles...)})
			return
		}
		d.one(to, profiles...)(n, path)
	}
}

func checkVariable(s string) error {
	if s == "" || strings.ContainsAny(s, "=\x00") {
		return errors.New("is no name of an environment variable")
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
		return errors.New("is no name of a header")
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
	l.text("command", s.Command, "")
	l.text("module", s.Module.Path+s.Module.Ref, "")
	l.text("sha256", s.Module.SHA256, "")
	l.column("args", s.Args)
	l.block("env", s.Env)
	l.text("cwd", s.Cwd, "")
	if s.Confine != nil {
		l.under("confine", func(l lines) { renderConfine(l, *s.Confine) })
	}
	if s.Module.ModuleLimits != (ModuleLimits{}) {
		l.under("limits", func(l lines) { renderLimits(l, s.Module.ModuleLimits) })
	}
	if v := s.Module.Verify; v != nil {
		l.under("verify", func(l lines) {
			l.text("key", v.Key, "")
			l.text("bundle", v.Bundle, "")
			l.text("signed_as", v.SignedAs, "")
		})
	}
	l.text("url", s.URL, "")
	l.flag("private", s.Private, false)
	l.text("transport", s.Transport, "auto")
	l.text("protocol", s.Protocol, "auto")
	l.block("headers", s.Headers)
	if s.Auth != nil {
		l.under("auth", func(l lines) { renderAuth(l, *s.Auth) })
	}
	renderTimes(l, s)
	l.number("concurrent", s.Concurrent)
	l.flag("enabled", s.Enabled, true)
	l.flag("required", s.Required, false)
	l.flag("prefix", s.Prefix, true)
	l.text("sessions", s.Sessions, "auto")
	l.text("lists", s.Lists, "")
	l.text("schema", s.Schema, "declared")
	l.text("input", s.Input, "coerce")
	l.modes("inputs", s.Inputs)
	l.text("output", s.Output, "enforce")
	l.text("sanitize", s.Sanitize, "")
	l.text("replay", s.Replay, "")
	l.modes("replays", s.Replays)
	l.row("methods", s.Methods)
	l.row("groups", s.Groups)
}

// renderTimes writes how long a server may take, and what is done when it fails.
func renderTimes(l lines, s Server) {
	l.time("start", s.Start)
	if s.Timeout != DefaultTimeout {
		l.time("timeout", s.Timeout)
	}
	if len(s.Timeouts) > 0 {
		l.under("timeouts", func(l lines) {
			for _, t := range s.Timeouts {
				l.time(t.Pattern, t.Timeout)
			}
		})
	}
	l.text("retry", s.Retry, "never")
	l.number("retries", s.Retries)
	l.time("retry_wait", s.RetryWait)
	if s.Health == HealthOff {
		l.text("health", "off", "")
	} else {
		l.time("health", s.Health)
	}
}
