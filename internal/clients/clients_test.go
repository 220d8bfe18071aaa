//go:build unix

package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/clients"
)

// Variables move the files of clients, on the systems where the clients know them.
func TestPlaces(t *testing.T) {
	path := func(c clients.Client, of string) (paths []string) {
		files := c.Servers
		if of == "hooks" {
			files = c.Hooks
		}
		for _, f := range files {
			if f.Scope == clients.User {
				paths = append(paths, f.Path)
			}
		}
		return paths
	}
	for _, tt := range []struct {
		client, of, goos, variable, value, want string
	}{
		{"claude-code", "hooks", "", "", "", "/h/.claude/settings.json"},
		{"claude-code", "hooks", "", "CLAUDE_CONFIG_DIR", "/v", "/v/settings.json"},
		{"claude-code", "hooks", "", "CLAUDE_CONFIG_DIR", " /v ", "/v/settings.json"},
		{"claude-code", "hooks", "", "CLAUDE_CONFIG_DIR", " ", "/h/.claude/settings.json"},
		{"claude-code", "servers", "", "", "", "/h/.claude.json"},
		{"claude-code", "servers", "", "CLAUDE_CONFIG_DIR", "/v", "/v/.claude.json"},
		{"claude-desktop", "servers", "darwin", "", "", "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "servers", "windows", "", "", "/h/AppData/Roaming/Claude/claude_desktop_config.json"},
		{"claude-desktop", "servers", "windows", "APPDATA", "/v", "/v/Claude/claude_desktop_config.json"},
		{"claude-desktop", "servers", "linux", "XDG_CONFIG_HOME", "/v", "/v/Claude/claude_desktop_config.json"},
		{"codex", "hooks", "", "", "", "/h/.codex/hooks.json"},
		{"codex", "hooks", "", "CODEX_HOME", "/v", "/v/hooks.json"},
		{"codex", "servers", "", "CODEX_HOME", "/v", "/v/config.toml"},
		{"gemini-cli", "hooks", "", "", "", "/h/.gemini/settings.json"},
		{"gemini-cli", "hooks", "", "GEMINI_CLI_HOME", "/v", "/v/.gemini/settings.json"},
		{"opencode", "hooks", "", "", "", "/h/.config/opencode/plugins/wasmgate.js"},
		{"opencode", "hooks", "", "XDG_CONFIG_HOME", "/v", "/v/opencode/plugins/wasmgate.js"},
		{"opencode", "hooks", "", "XDG_CONFIG_HOME", "v", "/h/.config/opencode/plugins/wasmgate.js"},
		{"opencode", "hooks", "", "OPENCODE_CONFIG_DIR", "/v", "/v/plugins/wasmgate.js"},
		{"opencode", "servers", "", "OPENCODE_CONFIG", "/v/my.json", "/v/my.json"},
		{"vscode", "servers", "darwin", "", "", "/h/Library/Application Support/Code/User/mcp.json"},
		{"vscode", "servers", "windows", "", "", "/h/AppData/Roaming/Code/User/mcp.json"},
		{"vscode", "servers", "", "VSCODE_PORTABLE", "/v", "/v/user-data/User/mcp.json"},
		{"windsurf", "servers", "", "", "", "/h/.codeium/windsurf/mcp_config.json"},
		{"zed", "servers", "linux", "XDG_CONFIG_HOME", "/v", "/v/zed/settings.json"},
		{"zed", "servers", "darwin", "XDG_CONFIG_HOME", "/v", "/h/.config/zed/settings.json"},
		{"zed", "servers", "windows", "", "", "/h/AppData/Roaming/Zed/settings.json"},
		{"goose", "servers", "darwin", "", "", "/h/.config/goose/config.yaml"},
		{"goose", "servers", "windows", "", "", "/h/AppData/Roaming/Block/goose/config/config.yaml"},
		{"goose", "servers", "", "GOOSE_PATH_ROOT", "/v", "/v/config/config.yaml"},
		{"copilot-cli", "servers", "", "COPILOT_HOME", "/v", "/v/mcp-config.json"},
		{"cursor", "servers", "", "", "", "/h/.cursor/mcp.json"},
	} {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			if tt.goos != "" && tt.goos != goos {
				continue
			}
			s := clients.System{GOOS: goos, Home: "/h", Getenv: func(name string) string {
				if name == tt.variable {
					return tt.value
				}
				return ""
			}}
			c, ok := s.Client(tt.client)
			if !ok {
				t.Fatalf("no client %s", tt.client)
			}
			if got := path(c, tt.of); len(got) == 0 || got[0] != tt.want {
				t.Errorf("%s of %s on %s with %s=%q: %q, want %s", tt.of, tt.client, goos, tt.variable, tt.value, got, tt.want)
			}
		}
	}
	here, err := clients.Here()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range here.Clients() {
		if !strings.HasPrefix(c.ID, c.Name()) || len(here.Named(c.Name())) == 0 {
			t.Errorf("%s has the name %s", c.ID, c.Name())
		}
	}
}

// Links lead to files of the same user, and never out of a project.
func TestLinks(t *testing.T) {
	home, project, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(project)
	put := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o640), os.Chmod(path, 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, at string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(home, "dot", "settings.json"), "{}")
	link("../dot/settings.json", filepath.Join(home, "a", "settings.json"))
	link(filepath.Join(home, "dot"), filepath.Join(home, "b"))
	link(filepath.Join(home, "a", "settings.json"), filepath.Join(home, "c", "settings.json"))
	link("none.json", filepath.Join(home, "dangling.json"))
	link("round.json", filepath.Join(home, "round.json"))
	for path, ok := range map[string]bool{"a/settings.json": true, "b/settings.json": true, "c/settings.json": true, "dangling.json": true, "round.json": false} {
		at := filepath.Join(home, path)
		e, err := clients.File{Path: at, Scope: clients.User}.Edit()
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
		if !ok {
			continue
		}
		was, _ := os.Readlink(at)
		e.After = []byte(`{"from":"` + path + `"}`)
		if err := e.Write(filepath.Join(home, "backups")); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if is, _ := os.Readlink(at); is != was {
			t.Errorf("%s: the link led to %q, now to %q", path, was, is)
		}
		if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, e.After) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(home, "dot", "settings.json")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}

	put(filepath.Join(elsewhere, "secret"), "{}")
	put(filepath.Join(project, "shared", "mcp.json"), "{}")
	link("shared/mcp.json", filepath.Join(project, "in.json"))
	link(filepath.Join(project, "shared", "mcp.json"), filepath.Join(project, "absolute.json"))
	link(filepath.Join(elsewhere, "secret"), filepath.Join(project, "out.json"))
	link(elsewhere, filepath.Join(project, "folder"))
	link("out.json", filepath.Join(project, "twice.json"))
	for path, ok := range map[string]bool{"in.json": true, "absolute.json": true, "out.json": false, "folder/secret": false, "twice.json": false} {
		f := clients.File{Path: path, Scope: clients.Project}
		if _, err := f.Read(); (err == nil) != ok {
			t.Errorf("%s is read: %v", path, err)
		}
		if _, err := f.Edit(); (err == nil) != ok {
			t.Errorf("%s is edited: %v", path, err)
		}
	}

	if os.Geteuid() != 0 {
		return
	}
	const other = 65534
	put(filepath.Join(elsewhere, "theirs.json"), "{}")
	link(filepath.Join(elsewhere, "theirs.json"), filepath.Join(home, "theirs.json"))
	if err := errors.Join(os.Chown(filepath.Join(elsewhere, "theirs.json"), 1234, 1234), os.Lchown(filepath.Join(home, "theirs.json"), other, other)); err != nil {
		t.Fatal(err)
	}
	if _, err := (clients.File{Path: filepath.Join(home, "theirs.json"), Scope: clients.User}).Edit(); err == nil {
		t.Error("a link to another user's file is followed")
	}
	mine := filepath.Join(home, "mine.json")
	put(mine, "{}")
	if err := os.Chown(mine, other, other); err != nil {
		t.Fatal(err)
	}
	e, err := clients.File{Path: mine, Scope: clients.User}.Edit()
	if err != nil {
		t.Fatal(err)
	}
	e.After = []byte("{} ")
	if err := e.Write(filepath.Join(home, "backups")); err != nil {
		t.Fatal(err)
	}
	f, err := clients.File{Path: mine}.Edit()
	if err != nil || string(f.Before) != "{} " {
		t.Errorf("%q, %v", f.Before, err)
	}
}

// What an edit replaced comes back, unless the file was changed since.
func TestUndo(t *testing.T) {
	for _, before := range []string{"", "{}", "// one\r\n{\t}", "\xff"} {
		for _, removes := range []bool{false, true} {
			for _, changed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%q, removes %t, changed %t", before, removes, changed), func(t *testing.T) {
					path, backups := filepath.Join(t.TempDir(), "deep", "f.json"), filepath.Join(t.TempDir(), "b")
					f := clients.File{Path: path, Scope: clients.User}
					if before != "" {
						if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(before), 0o600)); err != nil {
							t.Fatal(err)
						}
					}
					if err := f.Undo(backups); !errors.Is(err, clients.ErrNoBackup) {
						t.Errorf("before there is anything to undo: %v", err)
					}
					e, err := f.Edit()
					if err != nil {
						t.Fatal(err)
					}
					e.After = []byte("new")
					if removes {
						e.After = nil
					}
					if err := e.Write(backups); err != nil {
						t.Fatal(err)
					}
					if !e.Changed() {
						return
					}
					if changed {
						if err := os.WriteFile(path, []byte("by hand"), 0o600); err != nil {
							t.Fatal(err)
						}
						if err := f.Undo(backups); err == nil {
							t.Error("what was changed by hand is lost")
						}
						return
					}
					if err := f.Undo(backups); err != nil {
						t.Fatal(err)
					}
					got, err := os.ReadFile(path)
					if before == "" && !errors.Is(err, fs.ErrNotExist) || before != "" && string(got) != before {
						t.Errorf("%q, %v", got, err)
					}
				})
			}
		}
	}
}

// What is put into a list and taken out again leaves the file as it was, comments, order and spaces.
func TestJSONKeepsTheRest(t *testing.T) {
	lists := []string{"", `"hooks":{"E":[{"other": 1}]}`, `"hooks":{"F":[1, 2]}`, `"hooks":{"E":[1]}`}
	for _, unit := range []string{"  ", "\t", "    "} {
		for _, newline := range []string{"\n", "\r\n", ""} {
			for _, comment := range []string{"", "// note" + newline, "/* note */"} {
				if strings.HasPrefix(comment, "//") && newline == "" {
					continue
				}
				for _, comma := range []string{"", ","} {
					for _, bom := range []string{"", "\xef\xbb\xbf"} {
						for _, list := range lists {
							for _, first := range []bool{true, false} {
								in := newline
								if newline != "" {
									in += unit
								}
								members := []string{`"model": "x"`}
								if list != "" && first {
									members = []string{list, members[0]}
								} else if list != "" {
									members = append(members, list)
								}
								text := bom + comment + "{" + in + strings.Join(members, ","+comment+in) + comma + newline + "}" + newline
								j, err := clients.Format{Name: "json", Comments: true, BOM: true, Commas: true}.ParseJSON([]byte(text))
								if err != nil {
									t.Fatalf("%q: %v", text, err)
								}
								if err := j.Append(map[string]any{"own": []int{1}}, "hooks", "E"); err != nil {
									t.Fatalf("%q: %v", text, err)
								}
								with := j.Bytes()
								var plain struct {
									Model string
									Hooks map[string][]any
								}
								if err := json.Unmarshal(j.Plain(), &plain); err != nil || plain.Model != "x" || !strings.Contains(fmt.Sprint(plain.Hooks["E"]), "own") {
									t.Errorf("%q became %q: %v", text, with, err)
								}
								if newline != "" && bytes.Count(with, []byte("\n")) != bytes.Count(with, []byte(newline)) {
									t.Errorf("%q became %q: other line ends", text, with)
								}
								j.Remove(func(plain []byte) bool { return bytes.Contains(plain, []byte("own")) }, "hooks", "E")
								if got := string(j.Bytes()); got != text {
									t.Errorf("%q\nwith %q\ncame back as %q", text, with, got)
								}
							}
						}
					}
				}
			}
		}
	}
	for _, tt := range []struct {
		format clients.Format
		text   string
		ok     bool
	}{
		{clients.Format{}, "{}", true}, {clients.Format{}, "", true}, {clients.Format{}, "[]", false}, {clients.Format{}, "{", false},
		{clients.Format{}, "{//\n}", false}, {clients.Format{Comments: true}, "{//\n}", true}, {clients.Format{}, `{"a":[1,/**/2]}`, false},
		{clients.Format{}, `{"a":1,}`, false}, {clients.Format{Commas: true}, `{"a":1,}`, true}, {clients.Format{}, `{"a":"//"}`, true},
		{clients.Format{}, "\xef\xbb\xbf{}", false}, {clients.Format{BOM: true}, "\xef\xbb\xbf{}", true},
	} {
		if _, err := tt.format.ParseJSON([]byte(tt.text)); (err == nil) != tt.ok {
			t.Errorf("%+v takes %q: %v", tt.format, tt.text, err)
		}
	}
}
