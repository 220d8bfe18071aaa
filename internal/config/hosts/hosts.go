package hosts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// NoServers is what a problem says of a file that has no place for servers.
const NoServers = "holds neither mcpServers nor servers"

// Servers returns the servers in a file that a client reads, as a table; false if there are none.
// It reports the keys that it ignores.
func Servers(root decode.Value) (servers decode.Value, found bool) {
	if !root.Is(tree.Table) {
		return servers, false
	}
	var others []string
	for i := range root.Fields {
		f := root.Field(i)
		at, key := f.Value, f.Key
		if key == "mcp" && at.Has("servers") { // settings.json of VS Code
			at, key = at.Get("servers"), "mcp.servers"
		}
		switch key {
		case "mcpServers", "servers", "mcp.servers":
			if found {
				f.At.Place(f.At.Node, key).Fail("the servers are under %s already; keep one of the two keys", servers.Path)
				continue
			}
			servers, found = at, true
		case "inputs":
			f.At.Warn("ignored: only the client can ask for these values")
		case "projects":
			if slices.ContainsFunc(at.Fields, func(p tree.Field) bool {
				s := p.Value.Get("mcpServers")
				return s != nil && len(s.Fields) > 0
			}) {
				f.At.Warn("ignored: the servers of single projects are not read")
			}
		default:
			others = append(others, key)
		}
	}
	for i := 0; !found && i < len(others); i++ {
		at := root.Get(others[i])
		if slices.Contains([]string{"context_servers", "extensions", "mcp"}, others[i]) && ofServers(at.Node) { // of Zed, Goose and OpenCode
			servers, found = ownServers(at), true
			others = slices.Delete(others, i, i+1)
		}
	}
	whole := root.Place(&tree.Node{}, "")
	if !found {
		whole.Fail(NoServers)
	}
	if n := len(others); n > 5 {
		others = append(others[:5:5], fmt.Sprintf("%d more", n-5))
	}
	if len(others) > 0 {
		whole.Warn("ignored, since they concern only the client: %s", strings.Join(others, ", "))
	}
	if servers.Node != nil && servers.Kind == tree.List {
		servers = named(servers)
	}
	return servers, found
}

// ofServers reports whether a table can be one of servers: its values are tables.
func ofServers(n *tree.Node) bool {
	return n.Kind == tree.Table && !slices.ContainsFunc(n.Fields, func(f tree.Field) bool { return f.Value.Kind != tree.Table })
}

// ownServers leaves out what a client has built in, and has no way to start here.
func ownServers(v decode.Value) decode.Value {
	out := &tree.Node{Kind: tree.Table, Line: v.Line}
	for i, f := range v.Fields {
		if !slices.ContainsFunc([]string{"command", "cmd", "url", "uri"}, func(key string) bool { return f.Value.Get(key) != nil }) {
			v.Field(i).At.Warn("not imported, because the client has it built in")
			continue
		}
		out.Put(f)
	}
	return v.Place(out, v.Path)
}

// named makes of a list of servers, as some hosts write them, each with its name, what it
// would be as a table.
func named(list decode.Value) decode.Value {
	out := &tree.Node{Kind: tree.Table, Line: list.Line}
	for item := range list.List() {
		if !item.Is(tree.Table) {
			continue
		}
		name := item.Get("name")
		switch {
		case name.Kind != tree.Text || name.Text == "":
			item.Fail("needs a name")
		case out.Get(name.Text) != nil:
			name.Fail("given twice")
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
	return list.Place(out, list.Path)
}

// CodexJSON returns the servers in a config.toml of Codex as an mcp.json has them.
func CodexJSON(data []byte) ([]byte, error) {
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
