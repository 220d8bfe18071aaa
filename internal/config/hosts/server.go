package hosts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A Client is what a client fills into the variables of its file.
type Client struct {
	Home      string // empty: not known
	Workspace string // empty: not known
}

// Server returns a server of a client's file with the keys and variables of a wasmgate.yaml. Fault
// says what only the client can give; empty if nothing.
func (c Client) Server(v decode.Value) (server *tree.Node, fault string) {
	h := &host{Client: c}
	return h.server(v), h.fault
}

// A host turns one server.
type host struct {
	Client
	fault string
}

func (h *host) server(v decode.Value) *tree.Node {
	out := &tree.Node{Kind: tree.Table, Line: v.Line}
	for f := range v.Entries() {
		key, known := keys[f.Key]
		if !known {
			reason := ignored[f.Key]
			if reason == "" {
				reason = "ignored: unknown key" + spelling.Suggest(f.Key, []string{"command", "args", "env", "cwd", "headers", "url", "type", "disabled"})
			}
			f.At.Warn("%s", reason)
			continue
		}
		if out.Get(key) != nil {
			f.At.Fail("means the same as another key here: keep one of them")
			continue
		}
		value := h.translated(f.Value.Node)
		switch f.Key {
		case "command", "cmd":
			value = program(out, value)
		case "disabled":
			value.Text = map[string]string{"true": "false", "false": "true"}[value.Text]
		case "type", "transport":
			if value.Kind == tree.Text && !h.transport(value) {
				continue
			}
		}
		out.Put(tree.Field{Key: key, Line: f.At.Line, Value: value, Was: f.Key})
	}
	if v.Has("httpUrl") && out.Get("transport") == nil { // Gemini's way to say so
		out.Put(tree.Field{Key: "transport", Line: v.Line, Value: &tree.Node{Kind: tree.Text, Line: v.Line, Text: "streamable-http"}})
	}
	return out
}

// program returns the program of a command, which can be a table with its arguments, as Zed had it, or a
// list with them, as OpenCode has it.
func program(out, command *tree.Node) *tree.Node {
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

var variable = regexp.MustCompile(`\$\{[^}]*\}|\$`)

// text returns s in the language of wasmgate.yaml, in which a dollar that
// stands for itself is doubled.
func (h *host) text(s string) string {
	return variable.ReplaceAllStringFunc(s, func(v string) string {
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
		return h.Workspace, true
	case "workspaceFolderBasename":
		if h.Workspace == "" {
			return "", true
		}
		return filepath.Base(h.Workspace), true
	case "userHome":
		return h.Home, true
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	case "file", "fileBasename", "fileDirname", "lineNumber", "selectedText", "execPath", "defaultBuildTask":
		return "", true
	}
	return "", false
}
