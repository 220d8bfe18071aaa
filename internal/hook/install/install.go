package install

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/clients"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// An Agent is a program whose hooks are understood.
type Agent struct {
	ID string
	// Labels are what its own tools are, as entries of a labels file.
	Labels string
	// After is what the person has to do once the hooks are written; "" is nothing.
	After string

	events []string // all that count; the first is of a call that has not been made
	unit   int      // of timeouts, in a second
	plugin bool     // the settings are a plugin of ours, not a file with other settings
}

// Agents returns all of them.
func Agents() []Agent {
	claude := []string{"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionEnd"}
	return []Agent{
		{
			ID: "claude-code", Labels: claudeLabels, events: claude, unit: 1,
			After: "Claude Code before 2.1.295 lets calls pass if the hook itself cannot be started",
		},
		{
			ID: "codex", Labels: codexLabels, events: []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"}, unit: 1,
			After: "open /hooks in Codex and trust them: it skips hooks that nobody has trusted, and says nothing",
		},
		{
			ID: "gemini-cli", Labels: geminiLabels, unit: 1000,
			events: []string{"BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionEnd"},
		},
		{ID: "opencode", Labels: opencodeLabels, plugin: true},
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

// client returns where the agent keeps its settings.
func (a Agent) client() (clients.Client, error) {
	here, err := clients.Here()
	if err != nil {
		return clients.Client{}, err
	}
	c, ok := here.Client(a.ID)
	if !ok {
		return c, fmt.Errorf("no settings of %s are known", a.ID)
	}
	return c, nil
}

// File returns the file that the hooks are written to.
func (a Agent) File(managed bool) (clients.File, error) {
	c, err := a.client()
	if err != nil {
		return clients.File{}, err
	}
	scope := clients.User
	if managed {
		scope = clients.Machine
	}
	i := slices.IndexFunc(c.Hooks, func(f clients.File) bool { return f.Scope == scope })
	if i < 0 {
		return clients.File{}, fmt.Errorf("%s has no settings for all users that wasmgate knows of here", a.ID)
	}
	return c.Hooks[i], nil
}

// Edit is the change that puts the hooks of a line into the settings, or takes them out without one.
func (a Agent) Edit(managed bool, l *Line) (clients.Edit, error) {
	f, err := a.File(managed)
	if err != nil {
		return clients.Edit{}, err
	}
	e, err := f.Edit()
	if err != nil {
		return e, err
	}
	switch {
	case l != nil:
		e.After, err = a.With(e.Before, *l)
	case e.Before != nil:
		e.After, err = a.Without(e.Before)
	}
	if err != nil {
		return e, fmt.Errorf("%s %w", f.Path, err)
	}
	return e, nil
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

// mark is the name of our hooks where an agent gives them names.
const mark = "wasmgate"

// command is each of ours, also where it was edited.
var command = regexp.MustCompile(`hook(\.exe)?'? --state .* (claude-code|codex|gemini-cli)$`)

// With returns the settings with our hooks in the place of those that were there before.
func (a Agent) With(settings []byte, l Line) ([]byte, error) {
	if a.plugin {
		return plugin(l.words(a.ID))
	}
	j, err := a.parse(settings)
	if err != nil {
		return nil, err
	}
	for _, event := range a.events {
		entry := a.entry(event, l)
		want, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		kept := false // one that is there already stays where it is
		j.Remove(func(plain []byte) bool {
			e, err := gate.ParseDoc(plain)
			if err != nil || !ours(e) {
				return false
			}
			if !kept && e.Digest() == gate.MustDoc(string(want)).Digest() {
				kept = true
				return false
			}
			return true
		}, "hooks", event)
		if kept {
			continue
		}
		if err := j.Append(entry, "hooks", event); err != nil {
			return nil, err
		}
	}
	return j.Bytes(), nil
}

// entry is our hook of an event. Its members are in the order of their names.
func (a Agent) entry(event string, l Line) map[string]any {
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
	return entry
}

// Without returns the settings without our hooks, nil for no file at all.
func (a Agent) Without(settings []byte) ([]byte, error) {
	if a.plugin {
		return nil, nil
	}
	j, err := a.parse(settings)
	if err != nil {
		return nil, err
	}
	for _, event := range a.events {
		j.Remove(func(plain []byte) bool {
			e, err := gate.ParseDoc(plain)
			return err == nil && ours(e)
		}, "hooks", event)
	}
	return j.Bytes(), nil
}

// parse reads settings that are edited, as the agent does.
func (a Agent) parse(settings []byte) (*clients.JSON, error) {
	f, err := a.File(false)
	if err != nil {
		return nil, err
	}
	j, err := f.Format.ParseJSON(settings)
	if err != nil {
		return nil, err
	}
	if _, err := gate.ParseDoc(j.Plain()); err != nil { // a member twice has no one meaning
		return nil, fmt.Errorf("is not JSON that can be edited: %w", err)
	}
	return j, nil
}

func ours(entry gate.Doc) bool {
	for h := range entry.Get("hooks").Elements() {
		if command.MatchString(h.Get("command").Text()) {
			return true
		}
	}
	return false
}

// Missing returns the events in the settings that have no hook of ours that works.
func (a Agent) Missing(settings []byte) []string {
	_, missing, err := a.found(settings)
	if err != nil {
		return a.events
	}
	return missing
}

// found returns the lines of our hooks in the settings, and the events that have none which the agent
// would start.
func (a Agent) found(settings []byte) (lines []Line, missing []string, err error) {
	if a.plugin {
		l, ok := pluginLine(settings)
		if !ok {
			return nil, []string{"plugin"}, nil
		}
		return []Line{l}, nil, nil
	}
	j, err := a.parse(settings)
	if err != nil {
		return nil, nil, err
	}
	root, err := gate.ParseDoc(j.Plain())
	if err != nil {
		return nil, nil, err
	}
	for _, event := range a.events {
		works := false
		for entry := range root.Get("hooks").Get(event).Elements() {
			for h := range entry.Get("hooks").Elements() {
				l, ok := lineOf(h.Get("command").Text(), a.ID)
				if ok && h.Get("type").Text() == "command" && (!strings.Contains(event, "Tool") || all(entry.Get("matcher"))) {
					works = true
					if !slices.ContainsFunc(lines, func(has Line) bool { return has.shell(a.ID) == l.shell(a.ID) }) {
						lines = append(lines, l)
					}
				}
			}
		}
		if !works {
			missing = append(missing, event)
		}
	}
	return lines, missing, nil
}

// all reports whether a matcher takes every tool.
func all(matcher gate.Doc) bool {
	return slices.Contains([]string{"", "*", ".*"}, matcher.Text())
}

// lineOf reads a command that [Line.shell] wrote.
func lineOf(command, agent string) (Line, bool) {
	var words []string
	var word strings.Builder
	quoted := false
	rest := strings.ReplaceAll(command, `'\''`, "\x00")
	for _, r := range rest + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			words = append(words, strings.ReplaceAll(word.String(), "\x00", "'"))
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	if len(words) < 4 || words[len(words)-1] != agent {
		return Line{}, false
	}
	l := Line{Program: words[0], Args: words[1 : len(words)-1]}
	return l, l.state() != "" && l.shell(agent) == command
}

// state is the folder of the gateway that a line asks.
func (l Line) state() string {
	if i := slices.Index(l.Args, "--state"); i >= 0 && i+1 < len(l.Args) {
		return l.Args[i+1]
	}
	return ""
}

//go:embed opencode.js
var opencodePlugin string

// plugin is what OpenCode runs in its own process, which starts the hook.
func plugin(words []string) ([]byte, error) {
	line, err := json.Marshal(words)
	if err != nil {
		return nil, err
	}
	return []byte(strings.Replace(opencodePlugin, place, string(line), 1)), nil
}

// place is where the plugin gets the words of the hook.
const place = "[]/* the hook */"

// pluginLine returns the line that our plugin starts; false if it is not ours as it was written.
func pluginLine(settings []byte) (Line, bool) {
	before, _, _ := strings.Cut(opencodePlugin, place)
	rest, ok := bytes.CutPrefix(settings, []byte(before))
	if !ok {
		return Line{}, false
	}
	var words []string
	if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&words); err != nil || len(words) < 4 {
		return Line{}, false
	}
	same, err := plugin(words)
	return Line{Program: words[0], Args: words[1 : len(words)-1]}, err == nil && bytes.Equal(same, settings)
}
