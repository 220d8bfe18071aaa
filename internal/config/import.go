package config

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/hosts"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// ImportMCP reads the servers of an mcp.json as Claude, Cursor, VS Code and Gemini CLI
// write it, or of a config.toml of Codex. Name is the path it has, for reports and because a host's
// ${workspaceFolder} and relative paths mean the folder around it.
//
// Values keep their variables, in the form that wasmgate.yaml expands, so that
// [Render] puts no secret into a file; a value that holds one is checked when it
// is loaded. A server that needs what only its host can give carries the reason
// in Fault, and ${NAME} for it. The problems say what was ignored or renamed;
// the error is a [tree.Problems] if the file cannot be used.
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
	d := &decode.File{Name: name, Keep: true, Words: words}
	yaml := slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) // Goose's
	if filepath.Ext(name) == ".toml" {
		if data, err = hosts.CodexJSON(data); err != nil {
			return nil, nil, tree.Problems{{File: name, Message: "not TOML: " + err.Error()}}
		}
	}
	servers := hostServers(d, file, data, !yaml, home)
	if err := d.Problems.Err(); err != nil {
		return nil, d.Warnings, err
	}
	return servers, d.Warnings, nil
}

// hostConfig returns the configuration that an mcp.json stands for.
func hostConfig(d *decode.File, file string, data []byte, dirs Dirs) *Config {
	c := defaults(stateFolder(file, dirs))
	if near := filepath.Join(filepath.Dir(file), grantsFile); check.Exists(near) == nil {
		d.Value(&tree.Node{}, "").Warn("%s beside it is not read, since it may belong to someone else's project: the grants are in %s", grantsFile, c.Policy.Grants)
	}
	c.Servers = hostServers(d, file, data, true, dirs.Home)
	return c
}

// hostServers returns the servers in a client's file, JSON or YAML.
func hostServers(d *decode.File, file string, data []byte, json bool, home string) (all []Server) {
	d.Dir = filepath.Dir(file)
	if slices.Contains([]string{".vscode", ".cursor", ".claude", ".codex", ".gemini", ".zed"}, filepath.Base(d.Dir)) {
		d.Dir = filepath.Dir(d.Dir)
	}
	of := hosts.Client{Home: home, Workspace: d.Dir}
	for _, c := range (clients.System{GOOS: runtime.GOOS, Home: home, Getenv: os.Getenv}).Clients() {
		if slices.ContainsFunc(c.Servers, func(f clients.File) bool { return f.Path == file }) {
			of.Workspace = "" // the file is the user's, which every workspace shares
		}
	}
	root, ok := d.Parse(data, json)
	if !ok {
		return nil
	}
	servers, ok := hosts.Servers(root)
	if !ok {
		return nil
	}
	used, alike := map[string]bool{}, alike(nil)
	for f := range servers.Entries() {
		was := f.Key
		if f.Key = unused(used, serverID(was)); f.Key != was {
			f.At.Warn("is imported as %s", f.Key)
		}
		alike(f)
		if f.Value.Is(tree.Table) {
			all = append(all, hostServer(f, of))
		}
	}
	return all
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

// hostServer returns a server of a client's file. One that is faulted is decoded only for an import,
// since missing values are no mistakes in the file.
func hostServer(f decode.Field, of hosts.Client) Server {
	n, fault := of.Server(f.Value)
	f.Value.Node = n
	if fault == "" || f.Value.File().Keep {
		s := server(f)
		s.Fault = cmp.Or(fault, s.Fault)
		return s
	}
	line := f.At.Line
	f.Value.Node = &tree.Node{Kind: tree.Table, Line: line}
	f.Value.Put(tree.Field{Key: "command", Line: line, Value: &tree.Node{Kind: tree.Text, Text: f.Key, Line: line}})
	if enabled := n.Get("enabled"); enabled != nil {
		f.Value.Put(tree.Field{Key: "enabled", Line: line, Value: enabled})
	}
	s := server(f)
	s.Command, s.Fault = "", fault
	return s
}
