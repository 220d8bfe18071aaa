package install

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// An Agent is a program whose hooks are understood.
type Agent struct {
	ID string
	// Labels are what its own tools are, as entries of a labels file.
	Labels string
	// After is what the person has to do once the hooks are written; "" is nothing.
	After string

	user     []string // of its settings, below the home folder
	projects []string // settings that a project can bring, below the working folder
	managed  string   // for all users of a machine; "" if the agent has none
	events   []string // all that count; the first is of a call that has not been made
	unit     int      // of timeouts, in a second
	plugin   bool     // the settings are a plugin of ours, not a file with other settings
}

// Agents returns all of them.
func Agents() []Agent {
	claude := []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionEnd"}
	return []Agent{
		{
			ID: "claude-code", Labels: claudeLabels, user: []string{".claude", "settings.json"}, managed: managedClaude(), events: claude, unit: 1,
			projects: []string{filepath.Join(".claude", "settings.json"), filepath.Join(".claude", "settings.local.json")},
			After:    "Claude Code before 2.1.295 lets calls pass if the hook itself cannot be started",
		},
		{
			ID: "codex", Labels: codexLabels, user: []string{".codex", "hooks.json"}, events: []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"}, unit: 1,
			After: "open /hooks in Codex and trust them: it skips hooks that nobody has trusted, and says nothing",
		},
		{
			ID: "gemini-cli", Labels: geminiLabels, user: []string{".gemini", "settings.json"}, unit: 1000,
			events: []string{"BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionEnd"},
		},
		{ID: "opencode", Labels: opencodeLabels, user: []string{".config", "opencode", "plugins", "wasmgate.js"}, plugin: true},
	}
}

// Of returns an agent by its name.
func Of(id string) (Agent, bool) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.ID == id })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}

func managedClaude() string {
	switch runtime.GOOS {
	case "linux":
		return "/etc/claude-code/managed-settings.json"
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	default:
		return ""
	}
}

// File returns the file that the hooks are written to.
func (a Agent) File(managed bool) (string, error) {
	if managed {
		if a.managed == "" {
			return "", fmt.Errorf("%s has no settings for all users that wasmgate knows of here", a.ID)
		}
		return a.managed, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{home}, a.user...)...), nil
}

// A Line is the command that an agent starts.
type Line struct {
	Program string   // an absolute path
	Args    []string // before the agent's name
}

func (l Line) words(agent string) []string {
	return append(append([]string{l.Program}, l.Args...), agent)
}

// shell returns the command for a shell.
func (l Line) shell(agent string) string {
	words := l.words(agent)
	for i, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=") != "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// mark is in each plugin of ours.
const mark = "wasmgate"

// command is each of ours.
var command = regexp.MustCompile(`hook(\.exe)?'? --state .* (claude-code|codex|gemini-cli)$`)

// With returns the settings with our hooks in the place of those that were there before.
func (a Agent) With(settings []byte, l Line) ([]byte, error) {
	if a.plugin {
		return plugin(l.words(a.ID))
	}
	return a.edit(settings, func(event string) []byte {
		one := map[string]any{"type": "command", "command": l.shell(a.ID), "timeout": int(hook.Timeout.Seconds()) * a.unit}
		if a.ID == "claude-code" && event == a.events[0] {
			one["onFailure"] = "block"
		}
		if a.ID == "gemini-cli" {
			one["name"] = mark
		}
		entry := map[string]any{"hooks": []any{one}}
		if strings.Contains(event, "Tool") {
			entry["matcher"] = "*"
		}
		b, _ := json.Marshal(entry) // maps of texts and numbers
		return b
	})
}

// Without returns the settings without our hooks, nil for no file at all.
func (a Agent) Without(settings []byte) ([]byte, error) {
	if a.plugin {
		return nil, nil
	}
	return a.edit(settings, func(string) []byte { return nil })
}

// edit puts an entry of ours, or none, at the end of each event's.
func (a Agent) edit(settings []byte, entry func(event string) []byte) ([]byte, error) {
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}")
	}
	root, err := gate.ParseDoc(settings)
	if err != nil {
		return nil, fmt.Errorf("is no JSON that can be edited: %w", err)
	}
	hooks := root.Get("hooks")
	if hooks.IsZero() {
		hooks = gate.MustDoc("{}")
	}
	if root.Kind() != doc.Object || hooks.Kind() != doc.Object {
		return nil, errors.New("is no JSON object with hooks in it")
	}
	left := gate.MustDoc("{}")
	for event, entries := range hooks.Members() {
		if !slices.Contains(a.events, event) {
			left = left.With(event, entries.Raw())
		} else if list := foreign(entries); len(list) > 0 {
			left = left.With(event, array(list))
		}
	}
	for _, event := range a.events {
		if own := entry(event); own != nil {
			left = left.With(event, array(append(foreign(hooks.Get(event)), own)))
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, root.With("hooks", left.Raw()).Raw(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func array(list [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))
}

// foreign returns the entries of an event that are not ours.
func foreign(entries gate.Doc) (list [][]byte) {
	for e := range entries.Elements() {
		if !ours(e) {
			list = append(list, e.Raw())
		}
	}
	return list
}

func ours(entry gate.Doc) bool {
	for h := range entry.Get("hooks").Elements() {
		if command.MatchString(h.Get("command").Text()) {
			return true
		}
	}
	return false
}

// Missing returns the events in the settings that have no hook of ours.
func (a Agent) Missing(settings []byte) []string {
	if a.plugin {
		if bytes.Contains(settings, []byte(mark)) {
			return nil
		}
		return []string{"plugin"}
	}
	root, err := gate.ParseDoc(settings)
	if err != nil {
		return a.events
	}
	var missing []string
	for _, event := range a.events {
		if !slices.ContainsFunc(slices.Collect(root.Get("hooks").Get(event).Elements()), ours) {
			missing = append(missing, event)
		}
	}
	return missing
}

// Write writes settings in one step; nil removes the file.
func Write(path string, settings []byte) error {
	if settings == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(path, settings, files.Mode(path, 0o600))
}

//go:embed opencode.js
var opencodePlugin string

// plugin is what OpenCode runs in its own process, which starts the hook.
func plugin(words []string) ([]byte, error) {
	line, err := json.Marshal(words)
	if err != nil {
		return nil, err
	}
	return []byte(strings.Replace(opencodePlugin, "[]/* the hook */", string(line), 1)), nil
}
