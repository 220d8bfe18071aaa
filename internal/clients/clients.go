package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A System is where the files of clients are looked for.
type System struct {
	GOOS, Home string
	Getenv     func(string) string
}

// Here is the system of this process.
func Here() (System, error) {
	home, err := os.UserHomeDir()
	return System{runtime.GOOS, home, os.Getenv}, err
}

// A Scope says for whom a file is.
type Scope string

// The scopes.
const (
	Project Scope = "project" // who works in a folder; the path is below it
	User    Scope = "user"
	Machine Scope = "machine" // all users
)

// A Format is what a client takes in a file.
type Format struct {
	Name     string // json, toml, yaml or js
	Comments bool   // of JSON: comments are allowed
	BOM      bool   // of JSON: a byte order mark is allowed
	Commas   bool   // of JSON: a comma after the last member is allowed
}

// A File is one in which a client keeps settings.
type File struct {
	Path     string
	Scope    Scope
	Format   Format
	Variable string // that decided where it is; "" if none did
}

// A Client is a program that keeps settings. Its files are in the order in which the client, or a
// person, looks for them: those of the project first.
type Client struct {
	ID      string
	Servers []File // with MCP servers
	Member  string // of these files, in which the servers are
	Hooks   []File // from which it takes hooks; the first is the user's own
	// Switches are settings that can switch hooks off, in addition to Hooks.
	Switches []File
	// Elsewhere are places of its hooks that a variable has moved: it does not look there.
	Elsewhere []string
}

// Names returns the names by which [System.Named] knows clients.
func Names() []string {
	return []string{"claude", "cursor", "vscode", "codex", "gemini", "copilot", "goose", "opencode", "windsurf", "zed"}
}

// Named returns the clients of a name: claude is Claude Code and Claude Desktop.
func (s System) Named(name string) []Client {
	return slices.DeleteFunc(s.Clients(), func(c Client) bool { return c.ID != name && !strings.HasPrefix(c.ID, name+"-") })
}

// Name returns the name under which [System.Named] has the client.
func (c Client) Name() string {
	for _, name := range Names() {
		if c.ID == name || strings.HasPrefix(c.ID, name+"-") {
			return name
		}
	}
	return c.ID
}

// Client returns a client by its ID.
func (s System) Client(id string) (Client, bool) {
	all := s.Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

var (
	strict    = Format{Name: "json"}
	tolerated = Format{Name: "json", BOM: true}
	commented = Format{Name: "json", Comments: true}
	relaxed   = Format{Name: "json", Comments: true, Commas: true, BOM: true}
	tables    = Format{Name: "toml"}
	document  = Format{Name: "yaml", Comments: true}
	script    = Format{Name: "js"}
)

// Clients returns all clients that are known, with their files on the system.
func (s System) Clients() []Client {
	return []Client{s.claudeCode(), s.claudeDesktop(), s.cursor(), s.vscode(), s.codex(), s.gemini(), s.copilot(), s.goose(), s.opencode(), s.windsurf(), s.zed()}
}

// Claude Code 2.1 takes CLAUDE_CONFIG_DIR, without spaces around it, in the place of ~/.claude, and then
// has .claude.json in it. A comment in settings.json costs the whole file; a byte order mark does not.
func (s System) claudeCode() Client {
	dir, by := s.moved(filepath.Join(s.Home, ".claude"), "CLAUDE_CONFIG_DIR")
	servers := filepath.Join(s.Home, ".claude.json")
	if by != "" {
		servers = filepath.Join(dir, ".claude.json")
	}
	c := Client{
		ID:      "claude-code",
		Member:  "mcpServers",
		Servers: []File{{".mcp.json", Project, tolerated, ""}, {servers, User, tolerated, by}},
		Hooks: []File{
			{filepath.Join(dir, "settings.json"), User, tolerated, by},
			{s.ofMachine("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`, "managed-settings.json"), Machine, tolerated, ""},
			{filepath.Join(".claude", "settings.json"), Project, tolerated, ""},
			{filepath.Join(".claude", "settings.local.json"), Project, tolerated, ""},
		},
	}
	if by != "" {
		c.Elsewhere = []string{filepath.Join(s.Home, ".claude", "settings.json")}
	}
	return c
}

func (s System) claudeDesktop() Client {
	dir, by := s.config()
	return Client{ID: "claude-desktop", Member: "mcpServers", Servers: []File{{filepath.Join(dir, "Claude", "claude_desktop_config.json"), User, strict, by}}}
}

func (s System) cursor() Client {
	return Client{ID: "cursor", Member: "mcpServers", Servers: []File{{filepath.Join(".cursor", "mcp.json"), Project, relaxed, ""}, {filepath.Join(s.Home, ".cursor", "mcp.json"), User, relaxed, ""}}}
}

// VS Code keeps a folder for each of its editions; a portable one has its own.
func (s System) vscode() Client {
	c := Client{ID: "vscode", Member: "servers", Servers: []File{{filepath.Join(".vscode", "mcp.json"), Project, relaxed, ""}}}
	if portable := s.Getenv("VSCODE_PORTABLE"); portable != "" {
		c.Servers = append(c.Servers, File{filepath.Join(portable, "user-data", "User", "mcp.json"), User, relaxed, "VSCODE_PORTABLE"})
		return c
	}
	dir, by := s.config()
	dir, by = s.movedBy(dir, by, "VSCODE_APPDATA")
	for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
		c.Servers = append(c.Servers, File{filepath.Join(dir, edition, "User", "mcp.json"), User, relaxed, by})
	}
	return c
}

// Codex reads hooks.json strictly; [features] in config.toml can switch hooks off.
func (s System) codex() Client {
	dir, by := s.moved(filepath.Join(s.Home, ".codex"), "CODEX_HOME")
	config := File{filepath.Join(dir, "config.toml"), User, tables, by}
	c := Client{
		ID:       "codex",
		Member:   "mcp_servers",
		Servers:  []File{{filepath.Join(".codex", "config.toml"), Project, tables, ""}, config},
		Hooks:    []File{{filepath.Join(dir, "hooks.json"), User, strict, by}},
		Switches: []File{config, {filepath.Join(".codex", "config.toml"), Project, tables, ""}},
	}
	if by != "" {
		c.Elsewhere = []string{filepath.Join(s.Home, ".codex", "hooks.json")}
	}
	return c
}

// Gemini CLI takes GEMINI_CLI_HOME in the place of the home folder. It allows comments in settings, but
// neither a comma at the end nor a byte order mark.
func (s System) gemini() Client {
	home, by := s.moved(s.Home, "GEMINI_CLI_HOME")
	project, user := File{filepath.Join(".gemini", "settings.json"), Project, commented, ""}, File{filepath.Join(home, ".gemini", "settings.json"), User, commented, by}
	machine := File{s.ofMachine("/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`, "settings.json"), Machine, commented, ""}
	if path := s.Getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH"); path != "" {
		machine.Path, machine.Variable = path, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
	}
	c := Client{ID: "gemini-cli", Member: "mcpServers", Servers: []File{project, user}, Hooks: []File{user, machine, project}}
	if by != "" {
		c.Elsewhere = []string{filepath.Join(s.Home, ".gemini", "settings.json")}
	}
	return c
}

func (s System) copilot() Client {
	dir, by := s.moved(filepath.Join(s.Home, ".copilot"), "COPILOT_HOME")
	return Client{ID: "copilot-cli", Member: "mcpServers", Servers: []File{{filepath.Join(dir, "mcp-config.json"), User, strict, by}}}
}

// Goose follows XDG on macOS, too.
func (s System) goose() Client {
	dir, by := s.xdg()
	path := filepath.Join(dir, "goose", "config.yaml")
	if s.GOOS == "windows" {
		dir, by = s.config()
		path = filepath.Join(dir, "Block", "goose", "config", "config.yaml")
	}
	if root := s.Getenv("GOOSE_PATH_ROOT"); root != "" {
		path, by = filepath.Join(root, "config", "config.yaml"), "GOOSE_PATH_ROOT"
	}
	return Client{ID: "goose", Member: "extensions", Servers: []File{{path, User, document, by}}}
}

// OpenCode 1.18 follows XDG on every system. OPENCODE_CONFIG_DIR is read too, and last.
func (s System) opencode() Client {
	dir, by := s.xdg()
	dir = filepath.Join(dir, "opencode")
	plugin := func(dir, by string) []File {
		return []File{{filepath.Join(dir, "plugins", "wasmgate.js"), User, script, by}, {filepath.Join(dir, "plugin", "wasmgate.js"), User, script, by}}
	}
	c := Client{ID: "opencode", Member: "mcp", Servers: []File{{"opencode.json", Project, relaxed, ""}, {"opencode.jsonc", Project, relaxed, ""}}}
	if extra := s.Getenv("OPENCODE_CONFIG_DIR"); extra != "" {
		c.Servers = append(c.Servers, File{filepath.Join(extra, "opencode.json"), User, relaxed, "OPENCODE_CONFIG_DIR"}, File{filepath.Join(extra, "opencode.jsonc"), User, relaxed, "OPENCODE_CONFIG_DIR"})
		c.Hooks = plugin(extra, "OPENCODE_CONFIG_DIR")
	}
	if file := s.Getenv("OPENCODE_CONFIG"); file != "" {
		c.Servers = append(c.Servers, File{file, User, relaxed, "OPENCODE_CONFIG"})
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		c.Servers = append(c.Servers, File{filepath.Join(dir, name), User, relaxed, by})
	}
	c.Hooks = append(c.Hooks, plugin(dir, by)...)
	c.Hooks = append(c.Hooks, plugin(filepath.Join(s.Home, ".opencode"), "")...)
	if by != "" {
		c.Elsewhere = []string{filepath.Join(s.Home, ".config", "opencode", "plugins", "wasmgate.js")}
	}
	return c
}

func (s System) windsurf() Client {
	return Client{ID: "windsurf", Member: "mcpServers", Servers: []File{{filepath.Join(s.Home, ".codeium", "windsurf", "mcp_config.json"), User, strict, ""}}}
}

// Zed has its settings in ~/.config on macOS, whatever XDG says there.
func (s System) zed() Client {
	dir, by := s.xdg()
	name := "zed"
	switch s.GOOS {
	case "darwin":
		dir, by = filepath.Join(s.Home, ".config"), ""
	case "windows":
		dir, by = s.config()
		name = "Zed"
	default:
		dir, by = s.movedBy(dir, by, "FLATPAK_XDG_CONFIG_HOME")
	}
	return Client{ID: "zed", Member: "context_servers", Servers: []File{{filepath.Join(".zed", "settings.json"), Project, relaxed, ""}, {filepath.Join(dir, name, "settings.json"), User, relaxed, by}}}
}

// moved returns a folder, or what a variable has in its place, and the variable then.
func (s System) moved(dir, variable string) (moved, by string) { return s.movedBy(dir, "", variable) }

func (s System) movedBy(dir, by, variable string) (string, string) {
	if value := strings.TrimSpace(s.Getenv(variable)); value != "" {
		if abs, err := filepath.Abs(value); err == nil {
			value = abs
		}
		return value, variable
	}
	return dir, by
}

// xdg returns the folder of configurations by the XDG Base Directory Specification, which has relative
// paths ignored.
func (s System) xdg() (dir, by string) {
	if value := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(value) {
		return value, "XDG_CONFIG_HOME"
	}
	return filepath.Join(s.Home, ".config"), ""
}

// config returns the folder of configurations by the custom of the system.
func (s System) config() (dir, by string) {
	switch s.GOOS {
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support"), ""
	case "windows":
		return s.moved(filepath.Join(s.Home, "AppData", "Roaming"), "APPDATA")
	}
	return s.xdg()
}

// ofMachine returns a file in a folder that is the same for all users.
func (s System) ofMachine(linux, darwin, windows, name string) string {
	switch s.GOOS {
	case "darwin":
		return filepath.Join(darwin, name)
	case "windows":
		return windows + `\` + name
	}
	return filepath.Join(linux, name)
}
