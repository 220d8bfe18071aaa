package install_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/hook/install"
)

// Hooks go where the agent reads them, whatever moves its settings, and the doctor looks there.
func TestHooksGoWhereTheAgentReads(t *testing.T) {
	here := install.Line{Program: "/bin/true", Args: []string{"--state", "/s"}}
	for _, tt := range []struct{ agent, variable, file string }{
		{"claude-code", "", ".claude/settings.json"}, {"claude-code", "CLAUDE_CONFIG_DIR", "settings.json"},
		{"codex", "", ".codex/hooks.json"}, {"codex", "CODEX_HOME", "hooks.json"},
		{"gemini-cli", "", ".gemini/settings.json"}, {"gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"},
		{"opencode", "", ".config/opencode/plugins/wasmgate.js"}, {"opencode", "XDG_CONFIG_HOME", "opencode/plugins/wasmgate.js"},
		{"opencode", "OPENCODE_CONFIG_DIR", "plugins/wasmgate.js"},
	} {
		t.Run(tt.agent+" "+tt.variable, func(t *testing.T) {
			home, moved, backups := t.TempDir(), t.TempDir(), t.TempDir()
			for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "OPENCODE_PURE"} {
				t.Setenv(name, "")
			}
			t.Setenv("HOME", home)
			t.Chdir(t.TempDir())
			a, _ := install.Of(tt.agent)
			settings := func() (install.Check, bool) {
				t.Helper()
				checks, err := a.Doctor(t.Context(), here, true, true)
				if err != nil {
					t.Fatal(err)
				}
				good := true
				var found install.Check
				for _, c := range checks {
					good = good && c.OK
					if c.Check == "settings" {
						found = c
					}
				}
				return found, good
			}
			put := func() {
				t.Helper()
				e, err := a.Edit(false, &here)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Write(backups); err != nil {
					t.Fatal(err)
				}
			}
			root := home
			if tt.variable != "" {
				put() // where the agent does not look, once the variable is set
				t.Setenv(tt.variable, moved)
				root = moved
				if c, _ := settings(); c.OK && tt.variable != "OPENCODE_CONFIG_DIR" {
					t.Errorf("the doctor takes hooks that are not read for good: %s", c.Said)
				}
				if tt.variable == "OPENCODE_CONFIG_DIR" {
					e, err := a.Edit(false, nil)
					if err != nil || e.Before != nil {
						t.Errorf("%q, %v", e.Before, err)
					}
					_ = os.RemoveAll(home + "/.config")
				}
			}
			put()
			if _, err := os.Stat(root + "/" + tt.file); err != nil {
				t.Error(err)
			}
			c, good := settings()
			if !good || !strings.Contains(c.Said, tt.file) || !strings.Contains(c.Said, tt.variable) {
				t.Errorf("%+v, all good: %t", c, good)
			}
			f, err := a.File(false)
			if err == nil {
				err = f.Undo(backups)
			}
			if _, there := os.Stat(root + "/" + tt.file); err != nil || there == nil {
				t.Errorf("undone: %v; the file: %v", err, there)
			}
		})
	}
}

// Hooks that the agent does not start are no hooks to the doctor.
func TestDoctorSeesHooksThatDoNotRun(t *testing.T) {
	line := install.Line{Program: "/bin/true", Args: []string{"--state", "/s"}}
	config := func(text string) func(string) string { return func(string) string { return text } }
	for name, tt := range map[string]struct {
		agent, file string // below the home folder, or with ./ below the working folder
		edit        func(settings string) string
		variable    string
	}{
		"another matcher":         {"claude-code", ".claude/settings.json", replace(`"matcher": "*"`, `"matcher": "NoSuchTool"`), ""},
		"a command that is none":  {"claude-code", ".claude/settings.json", replace(`"command": "/bin/true`, `"command": "true # hook`), ""},
		"another type":            {"claude-code", ".claude/settings.json", replace(`"type": "command"`, `"type": "prompt"`), ""},
		"an event without":        {"claude-code", ".claude/settings.json", replace(`"PostToolUse"`, `"Other"`), ""},
		"a program that is gone":  {"claude-code", ".claude/settings.json", replace("/bin/true", "/nowhere/true"), ""},
		"another gateway":         {"claude-code", ".claude/settings.json", replace("--state /s", "--state /other"), ""},
		"a comment":               {"claude-code", ".claude/settings.json", func(s string) string { return "// note\n" + s }, ""},
		"switched off":            {"claude-code", ".claude/settings.json", replace("{\n", "{\n\"disableAllHooks\": true,"), ""},
		"off in the project":      {"claude-code", "./.claude/settings.local.json", config(`{"disableAllHooks": true}`), ""},
		"off by a variable":       {"claude-code", "", nil, "CLAUDE_CODE_SIMPLE"},
		"safe mode":               {"claude-code", "", nil, "CLAUDE_CODE_SAFE_MODE"},
		"a comma at the end":      {"gemini-cli", ".gemini/settings.json", func(s string) string { return strings.TrimRight(s, "}\n") + "},}" }, ""},
		"a byte order mark":       {"gemini-cli", ".gemini/settings.json", func(s string) string { return "\xef\xbb\xbf" + s }, ""},
		"off for Gemini":          {"gemini-cli", ".gemini/settings.json", replace("{\n", "{\n\"hooksConfig\": {\"enabled\": false},"), ""},
		"its name is off":         {"gemini-cli", ".gemini/settings.json", replace("{\n", "{\n\"hooksConfig\": {\"disabled\": [\"wasmgate\"]},"), ""},
		"off for Codex":           {"codex", ".codex/config.toml", config("[features]\nhooks = false # not now\n"), ""},
		"off in Codex's project":  {"codex", "./.codex/config.toml", config("features = {codex_hooks = false}\n"), ""},
		"an edited plugin":        {"opencode", ".config/opencode/plugins/wasmgate.js", func(s string) string { return "return\n" + s }, ""},
		"plugins off":             {"opencode", "", nil, "OPENCODE_PURE"},
		"nothing is wrong (1)":    {"claude-code", "", nil, ""},
		"nothing is wrong (2)":    {"gemini-cli", ".gemini/settings.json", func(s string) string { return "// note\n" + s }, ""},
		"nothing is wrong (3)":    {"claude-code", ".claude/settings.json", func(s string) string { return "\xef\xbb\xbf" + s }, ""},
		"nothing is wrong (4)":    {"codex", ".codex/config.toml", config("[features]\nhooks = true\n"), ""},
		"nothing is wrong (none)": {"opencode", "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for _, v := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "OPENCODE_PURE"} {
				t.Setenv(v, "")
			}
			t.Setenv("HOME", home)
			t.Chdir(t.TempDir())
			a, _ := install.Of(tt.agent)
			e, err := a.Edit(false, &line)
			if err == nil {
				err = e.Write(t.TempDir())
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.edit != nil {
				path := tt.file
				if !strings.HasPrefix(path, "./") {
					path = home + "/" + path
				}
				old, _ := os.ReadFile(path) // none at first
				text := tt.edit(string(old))
				if text == string(old) {
					t.Fatalf("the edit changes nothing in %s", old)
				}
				_ = os.MkdirAll(path[:strings.LastIndex(path, "/")], 0o700)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.variable != "" {
				t.Setenv(tt.variable, "1")
			}
			checks, err := a.Doctor(t.Context(), line, true, true)
			if err != nil {
				t.Fatal(err)
			}
			good := true
			for _, c := range checks {
				good = good && c.OK
			}
			if want := strings.HasPrefix(name, "nothing"); good != want {
				t.Errorf("all good: %t, want %t: %+v", good, want, checks)
			}
		})
	}
}

func replace(old, by string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, by) }
}
