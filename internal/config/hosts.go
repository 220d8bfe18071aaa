package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// ImportMCP reads the servers of an mcp.json as Claude, Cursor, VS Code and Gemini CLI
// write it, or of a config.toml of Codex. Name is the path it has, for reports and because a host's
// ${workspaceFolder} and relative paths mean the folder around it.
//
// Values keep their variables, in the form that wasmgate.yaml expands, so that
// [Render] puts no secret into a file; a value that holds one is checked when it
// is loaded. A server that needs what only its host can give carries the reason
// in Fault, and ${NAME} for it. The problems say what was ignored or renamed;
// the error is a [Problems] if the file cannot be used.
func ImportMCP(r io.Reader, name string) ([]Server, []tree.Problem, error) {
	data, err := io.ReadAll(io.LimitReader(r, tree.MaxJSON+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	file, err := filepath.Abs(name)
	if err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", name, err)
	}
	home, _ := os.UserHomeDir() // unknown: ${userHome} faults the servers that use it
	d := &decoder{file: name, keep: true}
	if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) { // Goose's
		servers := d.hostTree(file, d.parse(data, false), home)
		return servers, d.warnings, d.problems.Err()
	}
	if filepath.Ext(name) == ".toml" {
		if data, err = codexJSON(data); err != nil {
			return nil, nil, tree.Problems{{File: name, Message: "not TOML: " + err.Error()}}
		}
	}
	servers := d.hostServers(file, data, home)
	if err := d.problems.Err(); err != nil {
		return nil, d.warnings, err
	}
	return servers, d.warnings, nil
}

// hostFile returns the configuration that an mcp.json stands for.
func (d *decoder) hostFile(file string, data []byte, dirs Dirs) *Config {
	c := beside(stateFolder(file, dirs))
	if near := filepath.Join(filepath.Dir(file), grantsFile); exists(near) == nil {
		d.warn(0, "", "%s beside it is not read, since it may belong to someone else's project: the grants are in %s", grantsFile, c.Policy.Grants)
	}
	c.Servers = d.hostServers(file, data, dirs.Home)
	return c
}

func (d *decoder) hostServers(file string, data []byte, home string) []Server {
	return d.hostTree(file, d.parse(data, true), home)
}

func (d *decoder) hostTree(file string, root *tree.Node, home string) []Server {
	d.dir = filepath.Dir(file)
	if slices.Contains([]string{".vscode", ".cursor", ".claude", ".codex", ".gemini", ".zed"}, filepath.Base(d.dir)) {
		d.dir = filepath.Dir(d.dir)
	}
	workspace := d.dir
	for _, c := range (clients.System{GOOS: runtime.GOOS, Home: home, Getenv: os.Getenv}).Clients() {
		if slices.ContainsFunc(c.Servers, func(f clients.File) bool { return f.Path == file }) {
			workspace = "" // the file is the user's, which every workspace shares
		}
	}
	if root == nil {
		return nil
	}
	entries, path := d.hostEntries(root)
	if entries == nil {
		return nil
	}
	entries = d.named(entries, path)
	var out []Server
	used, alike := map[string]bool{}, d.alike(nil)
	d.each(entries, path, func(f tree.Field, path string) {
		f.Was, f.Key = f.Key, unused(used, serverID(f.Key))
		if f.Key != f.Was {
			d.warn(f.Line, path, "is imported as %s", f.Key)
		}
		alike(f, path)
		h := &host{decoder: d, home: home, workspace: workspace}
		if d.is(f.Value, path, tree.Table) {
			f.Value = h.server(f.Value, path)
			out = append(out, h.decode(f, path))
		}
	})
	return out
}

// unused returns id, or id with a number if it is taken, and takes it.
func unused(used map[string]bool, id string) string {
	name := id
	for i := 2; used[name]; i++ {
		name = fmt.Sprintf("%s-%d", id, i)
	}
	used[name] = true
	return name
}

// hostEntries finds the mapping of servers, and its path.
func (d *decoder) hostEntries(root *tree.Node) (entries *tree.Node, path string) {
	if !d.is(root, "", tree.Table) {
		return nil, ""
	}
	var others []string
	for _, f := range root.Fields {
		at, key := f.Value, f.Key
		if key == "mcp" && at.Get("servers") != nil { // settings.json of VS Code
			at, key = at.Get("servers"), "mcp.servers"
		}
		switch key {
		case "mcpServers", "servers", "mcp.servers":
			if entries != nil {
				d.fail(&tree.Node{Line: f.Line}, key, "the servers are under %s already; keep one of the two keys", path)
				continue
			}
			entries, path = at, key
		case "inputs":
			d.warn(f.Line, key, "ignored: only the client can ask for these values")
		case "projects":
			if slices.ContainsFunc(at.Fields, func(p tree.Field) bool {
				s := p.Value.Get("mcpServers")
				return s != nil && len(s.Fields) > 0
			}) {
				d.warn(f.Line, key, "ignored: the servers of single projects are not read")
			}
		default:
			others = append(others, key)
		}
	}
	for i := 0; entries == nil && i < len(others); i++ {
		key := others[i]
		if slices.Contains([]string{"context_servers", "extensions", "mcp"}, key) && ofServers(root.Get(key)) { // of Zed, Goose and OpenCode
			entries, path = d.ownServers(root.Get(key), key), key
			others = slices.Delete(others, i, i+1)
		}
	}
	if entries == nil {
		d.fail(&tree.Node{}, "", NoServers)
	}
	if n := len(others); n > 5 {
		others = append(others[:5:5], fmt.Sprintf("%d more", n-5))
	}
	if len(others) > 0 {
		d.warn(0, "", "ignored, since they concern only the client: %s", strings.Join(others, ", "))
	}
	return entries, path
}

// ofServers reports whether a table can be one of servers: its values are tables.
func ofServers(n *tree.Node) bool {
	return n.Kind == tree.Table && !slices.ContainsFunc(n.Fields, func(f tree.Field) bool { return f.Value.Kind != tree.Table })
}

// ownServers leaves out what a client has built in, and has no way to start here.
func (d *decoder) ownServers(n *tree.Node, path string) *tree.Node {
	out := &tree.Node{Kind: tree.Table, Line: n.Line}
	for _, f := range n.Fields {
		if !slices.ContainsFunc([]string{"command", "cmd", "url", "uri"}, func(key string) bool { return f.Value.Get(key) != nil }) {
			d.warn(f.Line, tree.Join(path, f.Key), "not imported, because the client has it built in")
			continue
		}
		out.Put(f)
	}
	return out
}

// named makes of a list of servers, as some hosts write them, each with its name, what it
// would be as a table.
func (d *decoder) named(n *tree.Node, path string) *tree.Node {
	if n.Kind != tree.List {
		return n
	}
	out := &tree.Node{Kind: tree.Table, Line: n.Line}
	for i, item := range n.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !d.is(item, at, tree.Table) {
			continue
		}
		name := item.Get("name")
		switch {
		case name == nil || name.Kind != tree.Text || name.Text == "":
			d.fail(item, at, "needs a name")
		case out.Get(name.Text) != nil:
			d.fail(name, tree.Join(at, "name"), "given twice")
		default:
			server := &tree.Node{Kind: tree.Table, Line: item.Line}
			for _, f := range item.Fields {
				if f.Key != "name" {
					server.Put(f)
				}
			}
			out.Put(tree.Field{Key: name.Text, Line: item.Line, Value: server})
		}
	}
	return out
}

// A host turns one server of an mcp.json into one of a wasmgate.yaml.
type host struct {
	*decoder
	home      string
	workspace string // empty: not known
	fault     string
}

// hostKeys are the keys that are honoured, and what they are called here.
var hostKeys = map[string]string{
	"command": "command", "args": "args", "env": "env", "cwd": "cwd", "headers": "headers",
	"cmd": "command", "envs": "env", "environment": "env", "uri": "url", // Goose and OpenCode
	"url": "url", "serverUrl": "url", "httpUrl": "url", "type": "transport", "transport": "transport",
	"enabled": "enabled", "disabled": "enabled",
}

const (
	byGrant = "what may be called is granted with `wasmgate grant`"
	byLogin = "write auth: oauth to the server in wasmgate.yaml, and run `wasmgate login`"
	noSense = "it concerns the host alone"

	ownConfine = "in wasmgate.yaml write confine, which `wasmgate confine learn` proposes"
)

// ignoredKeys are the keys that are known and not honoured, and why.
var ignoredKeys = map[string]string{
	"autoApprove": "never honoured: " + byGrant, "alwaysAllow": "never honoured: " + byGrant, "trust": "never honoured: " + byGrant,
	"allowedTools": "ignored: " + byGrant, "disabledTools": "ignored: " + byGrant, "enabledTools": "ignored: " + byGrant,
	"enabled_tools": "ignored: " + byGrant, "disabled_tools": "ignored: " + byGrant, "default_tools_approval_mode": "never honoured: " + byGrant,
	"startup_timeout_sec": "ignored: in wasmgate.yaml write start: 30s", "tool_timeout_sec": "ignored: in wasmgate.yaml write timeout: 30s", "required": "ignored: " + noSense,
	"includeTools": "ignored: " + byGrant, "excludeTools": "ignored: " + byGrant, "tools": "ignored: " + byGrant,
	"envFile":       "ignored: name the variables that it sets in env, as ${NAME}",
	"timeout":       "ignored: hosts disagree on its unit; in wasmgate.yaml write timeout: 30s",
	"oauth":         "ignored: " + byLogin,
	"auth":          "ignored: " + byLogin,
	"headersHelper": "ignored: write the headers, with ${NAME} for what is secret",
	"sandbox":       "ignored: " + ownConfine, "sandboxEnabled": "ignored: " + ownConfine,
	"name": "ignored: " + noSense, "description": "ignored: " + noSense, "icon": "ignored: " + noSense, "version": "ignored: " + noSense,
	"gallery": "ignored: " + noSense, "dev": "ignored: " + noSense, "id": "ignored: " + noSense,
}

// ofHosts adds readers of the keys that only an mcp.json has, which say what to write in a wasmgate.yaml.
func ofHosts(d *decoder, n *tree.Node, path string, readers map[string]reader) {
	for _, f := range n.Fields {
		own, known := hostKeys[f.Key], ignoredKeys[f.Key]
		_, reason, _ := strings.Cut(known, ": ")
		switch {
		case readers[f.Key] != nil:
			continue
		case f.Key == "type":
			reason = "leave it out: command or url says how the server is reached; transport: sse is for older servers"
		case f.Key == "disabled":
			reason = "write enabled: false"
		case own != "":
			reason = "here it is called " + own
		case reason == "":
			continue
		}
		readers[f.Key] = func(*tree.Node, string) {
			d.fail(&tree.Node{Line: f.Line}, tree.Join(path, f.Key), "unknown key; %s", reason)
		}
	}
}

// server returns n with the keys and variables of a wasmgate.yaml.
func (h *host) server(n *tree.Node, path string) *tree.Node {
	out := &tree.Node{Kind: tree.Table, Line: n.Line}
	for _, f := range n.Fields {
		key, known := hostKeys[f.Key]
		at := tree.Join(path, f.Key)
		if !known {
			reason := ignoredKeys[f.Key]
			if reason == "" {
				reason = "ignored: unknown key" + spelling.Suggest(f.Key, []string{"command", "args", "env", "cwd", "headers", "url", "type", "disabled"})
			}
			h.warn(f.Line, at, "%s", reason)
			continue
		}
		if out.Get(key) != nil {
			h.fail(&tree.Node{Line: f.Line}, at, "means the same as another key here: keep one of them")
			continue
		}
		value := h.translated(f.Value)
		switch f.Key {
		case "command", "cmd":
			value = h.program(out, value)
		case "disabled":
			value.Text = map[string]string{"true": "false", "false": "true"}[value.Text]
		case "type", "transport":
			if value.Kind == tree.Text && !h.transport(value) {
				continue
			}
		}
		out.Put(tree.Field{Key: key, Line: f.Line, Value: value, Was: f.Key})
	}
	if n.Get("httpUrl") != nil && out.Get("transport") == nil { // Gemini's way to say so
		out.Put(tree.Field{Key: "transport", Line: n.Line, Value: &tree.Node{Kind: tree.Text, Line: n.Line, Text: "streamable-http"}})
	}
	return out
}

// program returns the program of a command, which can be a table with its arguments, as Zed had it, or a
// list with them, as OpenCode has it.
func (h *host) program(out, command *tree.Node) *tree.Node {
	switch {
	case command.Kind == tree.List && len(command.Items) > 0:
		out.Put(tree.Field{Key: "args", Line: command.Line, Value: &tree.Node{Kind: tree.List, Line: command.Line, Items: command.Items[1:]}, Was: "command"})
		return command.Items[0]
	case command.Kind == tree.Table && command.Get("path") != nil:
		for _, key := range []string{"args", "env"} {
			if v := command.Get(key); v != nil {
				out.Put(tree.Field{Key: key, Line: v.Line, Value: v, Was: "command." + key})
			}
		}
		return command.Get("path")
	}
	return command
}

// transport renames the transport in n. It returns false for stdio, which the
// command says already.
func (h *host) transport(n *tree.Node) bool {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(n.Text)) {
	case "stdio", "local":
		return false
	case "http", "streamablehttp", "remote":
		n.Text = "streamable-http"
	case "sse":
		n.Text = "sse"
	default:
		h.faulty("its transport %q is not known here", n.Text)
		return false
	}
	return true
}

func (h *host) faulty(format string, args ...any) {
	if h.fault == "" {
		h.fault = fmt.Sprintf(format, args...)
	}
}

// decode returns the server. One that is faulted is decoded only for an import,
// since values that nobody has are no mistakes in the file.
func (h *host) decode(f tree.Field, path string) Server {
	if h.fault == "" || h.keep {
		s := h.decoder.server(f, path)
		s.Fault = cmp.Or(h.fault, s.Fault)
		return s
	}
	at := tree.Field{Key: f.Key, Line: f.Line, Value: &tree.Node{Kind: tree.Table, Line: f.Line}}
	at.Value.Put(tree.Field{Key: "command", Line: f.Line, Value: &tree.Node{Kind: tree.Text, Text: f.Key, Line: f.Line}})
	if n := f.Value.Get("enabled"); n != nil {
		at.Value.Put(tree.Field{Key: "enabled", Line: f.Line, Value: n})
	}
	s := h.decoder.server(at, path)
	s.Command, s.Fault = "", h.fault
	return s
}

// translated returns n with the variables in its texts translated.
func (h *host) translated(n *tree.Node) *tree.Node {
	out := &tree.Node{Kind: n.Kind, Line: n.Line, Text: n.Text}
	if n.Kind == tree.Text {
		out.Text = h.text(n.Text)
	}
	for _, f := range n.Fields {
		f.Value = h.translated(f.Value)
		out.Put(f)
	}
	for _, item := range n.Items {
		out.Items = append(out.Items, h.translated(item))
	}
	return out
}

var hostVariable = regexp.MustCompile(`\$\{[^}]*\}|\$`)

// text returns s in the language of wasmgate.yaml, in which a dollar that
// stands for itself is doubled.
func (h *host) text(s string) string {
	return hostVariable.ReplaceAllStringFunc(s, func(v string) string {
		if v == "$" {
			return "$$"
		}
		name := v[2 : len(v)-1]
		known, ok := h.known(name)
		switch {
		case ok && known != "":
			return strings.ReplaceAll(known, "$", "$$")
		case !ok && variables.Is(name):
			return v
		}
		_, id, found := strings.Cut(name, ":")
		if !found {
			id = name
		}
		own := "${" + variables.Name(id) + "}"
		h.faulty("only the client with these settings can fill in %s; in wasmgate.yaml write %s", v, own)
		return own
	})
}

// known returns the value of a host's own variable, which is empty if the host
// alone has it, and false if name is none.
func (h *host) known(name string) (string, bool) {
	switch name {
	case "workspaceFolder", "workspaceRoot", "cwd":
		return h.workspace, true
	case "workspaceFolderBasename":
		if h.workspace == "" {
			return "", true
		}
		return filepath.Base(h.workspace), true
	case "userHome":
		return h.home, true
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	case "file", "fileBasename", "fileDirname", "lineNumber", "selectedText", "execPath", "defaultBuildTask":
		return "", true
	}
	return "", false
}

// NoServers is what a problem says of a file that has no place for servers.
const NoServers = "holds neither mcpServers nor servers"

// codexJSON returns the servers in a config.toml of Codex as an mcp.json has them.
func codexJSON(data []byte) ([]byte, error) {
	file := struct {
		Servers map[string]map[string]any `toml:"mcp_servers" json:"mcpServers"`
	}{Servers: map[string]map[string]any{}}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for _, s := range file.Servers {
		headers, _ := s["http_headers"].(map[string]any)
		env, _ := s["env"].(map[string]any)
		put := func(to *map[string]any, key string, value string) {
			if *to == nil {
				*to = map[string]any{}
			}
			(*to)[key] = value
		}
		named, _ := s["env_http_headers"].(map[string]any)
		for header, variable := range named {
			put(&headers, header, fmt.Sprintf("${%v}", variable))
		}
		if variable, ok := s["bearer_token_env_var"].(string); ok {
			put(&headers, "Authorization", "Bearer ${"+variable+"}")
		}
		passed, _ := s["env_vars"].([]any)
		for _, variable := range passed {
			if name, ok := variable.(string); ok {
				put(&env, name, "${"+name+"}")
			}
		}
		for _, key := range []string{"http_headers", "env_http_headers", "bearer_token_env_var", "env_vars"} {
			delete(s, key)
		}
		if headers != nil {
			s["headers"] = headers
		}
		if env != nil {
			s["env"] = env
		}
	}
	return json.Marshal(file)
}
