package install

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/clients"
)

// NewLine returns the command that an agent starts for the gateway of a state folder: the small
// program, if it is in the same folder as this one, which is wasmgate.
func NewLine(state string, observe bool) (Line, error) {
	self, err := os.Executable()
	if err != nil {
		return Line{}, err
	}
	line := Line{Program: self, Args: []string{"hook"}}
	small := filepath.Join(filepath.Dir(self), "wasmgate-hook")
	if runtime.GOOS == "windows" {
		small += ".exe"
	}
	if info, err := os.Stat(small); err == nil && info.Mode().IsRegular() {
		line = Line{Program: small}
	}
	line.Args = append(line.Args, "--state", state)
	if observe {
		line.Args = append(line.Args, "--observe")
	}
	return line, nil
}

// A Check is one thing that was looked at.
type Check struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Said  string `json:"said"` // what is, or what to do
}

// Doctor looks whether the agent reads hooks that work, and whether they ask the gateway of l, which has
// the agent configured, and runs.
func (a Agent) Doctor(ctx context.Context, l Line, configured, running bool) (checks []Check, err error) {
	add := func(check string, ok bool, said, otherwise string) {
		if !ok {
			said = otherwise
		}
		checks = append(checks, Check{check, ok, said})
	}
	add("configuration", configured, "agents has "+a.ID, fmt.Sprintf("add to the configuration: agents: {%s: {}}", a.ID))
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	there := a.look(c)
	var places, wrong []string
	var lines []Line
	for _, at := range there {
		if at.wrong != "" {
			wrong = append(wrong, at.wrong)
		} else {
			places = append(places, at.name)
			lines = append(lines, at.lines...)
		}
	}
	if len(lines) == 0 {
		for _, path := range c.Elsewhere {
			if b, err := os.ReadFile(path); err == nil && len(a.Missing(b)) == 0 {
				wrong = append(wrong, fmt.Sprintf("the hooks are in %s, which %s does not read while %s is set", path, a.ID, c.Hooks[0].Variable))
			}
		}
	}
	all := strings.Join(places, " and ")
	add("settings", len(lines) > 0, "all hooks are in "+all, strings.Join(append([]string{"not all hooks are there: wasmgate hook install " + a.ID}, wrong...), "; "))
	add("one place", len(places) < 2 && len(lines) < 2, "each event is reported once", "each event is reported twice, by "+all+": remove one with wasmgate hook uninstall")
	if off := a.switchedOff(c, clients.Project); a.ID == "claude-code" || off != "" {
		add("this folder", off == "", "its settings enable the hooks", off+"; hooks in managed settings stay")
	}
	off := cmp.Or(a.switchedOff(c, clients.User), a.switchedOff(c, clients.Machine), a.environment())
	add("switches", off == "", "none of your settings disable the hooks", off)
	if a.ID == "codex" {
		add("trust", true, "cannot be seen from here: open /hooks in Codex, which skips hooks that were not trusted", "")
	}
	add("gateway", running, "runs", "no gateway runs on this configuration: wasmgate serve; until then calls are denied")
	if len(lines) == 0 {
		lines = []Line{l}
	}
	for _, line := range lines {
		said, fault := line.look(ctx, a.ID, l.state())
		add("hook", fault == "", said, fault)
	}
	return checks, nil
}

// found is a file that the agent reads, and what it has of our hooks.
type found struct {
	name  string
	lines []Line
	wrong string // "" if all events have hooks that work
}

// look looks through the files that the agent reads for something of ours.
func (a Agent) look(c clients.Client) (all []found) {
	for _, f := range c.Hooks {
		b, err := f.Read()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		at := found{name: f.Path}
		if f.Variable != "" {
			at.name += " (by " + f.Variable + ")"
		}
		var missing []string
		if err == nil {
			at.lines, missing, err = a.found(b)
		}
		switch {
		case err != nil:
			at.wrong = fmt.Sprintf("%s is not read: it %v", at.name, err)
		case len(missing) > 0 && (len(at.lines) > 0 || a.plugin || bytes.Contains(b, []byte(" --state "))):
			at.wrong = fmt.Sprintf("%s has no working hook for %s", at.name, strings.Join(missing, ", "))
		case len(missing) > 0:
			continue
		}
		all = append(all, at)
	}
	return all
}

// SwitchedOff returns which of the user's or the machine's settings switch the hooks off; "" is none.
func (a Agent) SwitchedOff() string {
	c, err := a.client()
	if err != nil {
		return ""
	}
	return cmp.Or(a.switchedOff(c, clients.User), a.switchedOff(c, clients.Machine), a.environment())
}

// switchedOff returns the settings of a scope that switch the hooks off; "" if none does. A project can
// contain such a file. Hooks for all users of the machine stay on, unless their own file switches them
// off.
func (a Agent) switchedOff(c clients.Client, scope clients.Scope) string {
	managed := false
	for _, f := range c.Hooks {
		if b, err := f.Read(); f.Scope == clients.Machine && err == nil {
			managed = len(a.Missing(b)) == 0
		}
	}
	for _, f := range append(slices.Clone(c.Hooks), c.Switches...) {
		if f.Scope != scope {
			continue
		}
		b, err := f.Read()
		if err != nil {
			continue
		}
		settings, err := f.Format.Parse(b)
		if err != nil {
			continue
		}
		is := func(value bool, names ...string) bool {
			at, ok := clients.At(settings, names...).(bool)
			return ok && at == value
		}
		switch {
		case a.ID == "claude-code" && is(true, "disableAllHooks") && (!managed || scope == clients.Machine):
			return f.Path + " switches all hooks off (disableAllHooks)"
		case a.ID == "claude-code" && scope == clients.Machine && is(true, "allowManagedHooksOnly") && !managed:
			return f.Path + " allows hooks of the machine only (allowManagedHooksOnly): wasmgate hook install claude-code --managed"
		case a.ID == "gemini-cli" && is(false, "hooksConfig", "enabled"):
			return f.Path + " switches all hooks off (hooksConfig.enabled)"
		case a.ID == "codex" && (is(false, "features", "hooks") || is(false, "features", "codex_hooks")):
			return f.Path + " switches all hooks off ([features] hooks)"
		}
		disabled, _ := clients.At(settings, "hooksConfig", "disabled").([]any)
		if a.ID == "gemini-cli" && slices.ContainsFunc(disabled, func(v any) bool {
			name, _ := v.(string)
			return name == mark || command.MatchString(name)
		}) {
			return f.Path + " switches the hooks of wasmgate off (hooksConfig.disabled)"
		}
	}
	return ""
}

// environment returns which variable switches the hooks off; "" is none.
func (a Agent) environment() string {
	for _, name := range map[string][]string{"claude-code": {"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}, "opencode": {"OPENCODE_PURE"}}[a.ID] {
		if v := strings.ToLower(os.Getenv(name)); v != "" && v != "0" && v != "false" && v != "no" && v != "off" {
			return name + " is set, with which the agent starts no hooks"
		}
	}
	return ""
}

// look tries a line of the settings, which is to ask the gateway of a state folder.
func (l Line) look(ctx context.Context, agent, state string) (said, fault string) {
	if state != "" && l.state() != state {
		return "", fmt.Sprintf("the hooks ask the gateway of %s, and this configuration's is of %s: wasmgate hook install %s", l.state(), state, agent)
	}
	took, fault := l.try(ctx, agent)
	said = fmt.Sprintf("answers in %s", took.Round(time.Millisecond))
	if slices.Contains(l.Args, "--observe") {
		said += "; it only observes: nothing is denied"
	}
	return said, fault
}

// helloTime bounds how long the hook may take that is tried.
const helloTime = 10 * time.Second

// try starts the hook as the agent does, with an event that asks for nothing.
func (l Line) try(ctx context.Context, agent string) (took time.Duration, wrong string) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.Program, append(slices.Clone(l.Args), agent)...)
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"SessionStart","session_id":"doctor"}`)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		return 0, fmt.Sprintf("%s: %s", l.Program, strings.TrimSpace(string(out)+fmt.Sprint(" ", err)))
	}
	return time.Since(began), ""
}
