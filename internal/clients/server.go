package clients

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// An Entry is how a client reaches an MCP server: it starts Command with Args, or connects to URL.
type Entry struct {
	Command string
	Args    []string
	URL     string // if set, Command is not started
}

// Settings returns an entry as the client writes it. The error says that the client has no such entries.
func (c Client) Settings(name string, e Entry) (map[string]any, error) {
	switch {
	case c.ID == "claude-desktop" && e.URL != "":
		return nil, fmt.Errorf("%s does not support servers at a URL in its settings", c.ID)
	case c.ID == "goose" && e.URL != "":
		return map[string]any{"name": name, "enabled": true, "type": "streamable_http", "uri": e.URL, "timeout": 300}, nil
	case c.ID == "goose":
		return map[string]any{"name": name, "enabled": true, "type": "stdio", "cmd": e.Command, "args": e.Args, "timeout": 300}, nil
	case c.ID == "opencode" && e.URL != "":
		return map[string]any{"type": "remote", "url": e.URL, "enabled": true}, nil
	case c.ID == "opencode":
		return map[string]any{"type": "local", "command": append([]string{e.Command}, e.Args...), "enabled": true}, nil
	}
	s := map[string]any{"command": e.Command, "args": e.Args}
	kind := "stdio"
	if e.URL != "" {
		kind = "http"
		s = map[string]any{urlMember(c.ID): e.URL}
	}
	switch c.ID {
	case "claude-code", "vscode":
		s["type"] = kind
	case "copilot-cli":
		s["tools"] = []string{"*"}
		if s["type"] = kind; kind == "stdio" {
			s["type"] = "local"
		}
	}
	return s, nil
}

// urlMember is the member of an entry that has the URL of a server with Streamable HTTP.
func urlMember(id string) string {
	switch id {
	case "gemini-cli":
		return "httpUrl"
	case "windsurf":
		return "serverUrl"
	}
	return "url"
}

// Entries returns the servers in settings of the client, by their names.
func (c Client) Entries(f Format, settings []byte) (map[string]Entry, error) {
	parsed, err := f.Parse(settings)
	if err != nil {
		return nil, err
	}
	servers, _ := parsed[c.Member].(map[string]any)
	all := make(map[string]Entry, len(servers))
	for name, s := range servers {
		all[name] = entryOf(s)
	}
	return all, nil
}

func entryOf(settings any) (e Entry) {
	s, _ := settings.(map[string]any)
	for _, member := range []string{"url", "httpUrl", "serverUrl", "uri"} {
		if url, ok := s[member].(string); ok {
			e.URL = url
		}
	}
	words := append(texts(s["command"]), append(texts(s["cmd"]), texts(s["args"])...)...)
	if len(words) > 0 {
		e.Command, e.Args = words[0], words[1:]
	}
	return e
}

// texts returns a text, or a list of them.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, fmt.Sprint(one))
		}
	}
	return all
}

// SetServer returns settings with a server in the place of one of the same name. All else stays byte for
// byte. The error says what has to be written by hand.
func (c Client) SetServer(f Format, settings []byte, name string, e Entry) ([]byte, error) {
	entry, err := c.Settings(name, e)
	if err != nil {
		return nil, err
	}
	if f.Name == "json" {
		j, err := f.ParseJSON(settings)
		if err == nil {
			err = j.Set(entry, c.Member, name)
		}
		if err != nil {
			return nil, err
		}
		return j.Bytes(), nil
	}
	without, err := c.RemoveServers(f, settings, name)
	if err != nil {
		return nil, err
	}
	after, block, err := f.with(without, c.Member, name, entry)
	if err == nil {
		err = c.differ(f, without, after, func(servers map[string]any) { servers[name] = entry })
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be edited (%w): write into it\n%s", err, block)
	}
	return after, nil
}

// RemoveServers returns settings without the servers of these names. All else stays byte for byte.
func (c Client) RemoveServers(f Format, settings []byte, names ...string) ([]byte, error) {
	if f.Name == "json" {
		j, err := f.ParseJSON(settings)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			j.Delete(c.Member, name)
		}
		return j.Bytes(), nil
	}
	after := settings
	for _, name := range names {
		after = f.without(after, c.Member, name)
	}
	err := c.differ(f, settings, after, func(servers map[string]any) {
		for _, name := range names {
			delete(servers, name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("cannot be edited (%w): remove by hand %q", err, names)
	}
	return after, nil
}

// differ returns an error unless the servers of two settings differ as change has it, and nothing else does.
func (c Client) differ(f Format, before, after []byte, change func(servers map[string]any)) error {
	was, err := f.Parse(before)
	if err != nil {
		return err
	}
	is, err := f.Parse(after)
	if err != nil {
		return err
	}
	servers := maps.Clone(tableOf(was[c.Member]))
	change(servers)
	now := tableOf(is[c.Member])
	delete(was, c.Member)
	delete(is, c.Member)
	same := len(was) == len(is) && (len(was) == 0 || reflect.DeepEqual(was, is))
	if !same || !slices.Equal(slices.Sorted(maps.Keys(servers)), slices.Sorted(maps.Keys(now))) {
		return fmt.Errorf("%s is written in a form that is not known", c.Member)
	}
	for name, s := range servers {
		if fmt.Sprint(s) != fmt.Sprint(now[name]) {
			return fmt.Errorf("%s is written in a form that is not known", c.Member)
		}
	}
	return nil
}

func tableOf(v any) map[string]any {
	if table, ok := v.(map[string]any); ok {
		return table
	}
	return map[string]any{}
}
