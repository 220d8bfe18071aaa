package install

import (
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

	"github.com/wasmgate/wasmgate/gate"
)

// NewLine returns what an agent starts for the gateway of a state folder: the small program, if
// it lies beside this one, which is wasmgate.
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

// Read reads settings; nil if there is no such file.
func Read(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// A Check is one thing that was looked at.
type Check struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Said  string `json:"said"` // what is, or what to do
}

// Doctor looks whether the hooks work that a line starts, where the gateway has the agent
// configured, and runs.
func (a Agent) Doctor(ctx context.Context, l Line, configured, running bool) (checks []Check, err error) {
	add := func(check string, ok bool, said, otherwise string) {
		if !ok {
			said = otherwise
		}
		checks = append(checks, Check{check, ok, said})
	}
	add("configuration", configured, "agents has "+a.ID, fmt.Sprintf("add to the configuration: agents: {%s: {}}", a.ID))
	var found []string
	for _, managed := range []bool{false, true} {
		file, err := a.File(managed)
		if err != nil {
			continue
		}
		b, err := Read(file)
		if err != nil {
			return nil, err
		}
		if b != nil && len(a.Missing(b)) == 0 {
			found = append(found, file)
		}
	}
	all := strings.Join(found, " and ")
	add("settings", len(found) > 0, "all hooks are in "+all, "not all hooks are there: wasmgate hook install "+a.ID)
	add("one place", len(found) < 2, "each event is told once", "each event is told twice, by "+all+": take one out with wasmgate hook uninstall")
	if off := a.switchedOff(); a.projects != nil {
		add("this folder", off == "", "its settings leave the hooks on", off+" switches all hooks off for who works here (disableAllHooks); hooks in managed settings stay")
	}
	add("gateway", running, "runs", "no gateway runs on this configuration: wasmgate serve; until then calls are denied")
	took, wrong := l.try(ctx, a.ID)
	add("hook", wrong == "", fmt.Sprintf("answers in %s", took.Round(time.Millisecond)), wrong)
	return checks, nil
}

// switchedOff returns which settings of the working folder switch the hooks off that are in
// the user's own; "" is none. A project can bring such a file.
func (a Agent) switchedOff() string {
	for _, file := range a.projects {
		b, err := Read(file)
		if err != nil || b == nil {
			continue
		}
		if settings, err := gate.ParseDoc(b); err == nil && settings.Get("disableAllHooks").True() {
			return file
		}
	}
	return ""
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
