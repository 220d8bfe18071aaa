package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/control/socket"
)

// Method is the control socket's for hooks.
const Method = "hook"

// A Request is what a hook sends to the gateway.
type Request struct {
	Agent string          `json:"agent"`
	Event json.RawMessage `json:"event"`
	// Unreadable says why Event is only the [Outline] of the event; "" if it is whole.
	Unreadable string `json:"unreadable,omitempty"`
	Headless   bool   `json:"headless"`
	Observe    bool   `json:"observe"`
	HoldMS     int64  `json:"hold_ms"` // that a person may take to answer
}

// answer is what the agent gets.
type answer struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"`
}

// Options say which agent runs the hook, and which gateway it asks.
type Options struct {
	Agent   string
	State   string        // folder of the gateway
	Observe bool          // lets everything pass, also when no gateway runs
	Within  time.Duration // in which there is an answer; zero is [DefaultWithin]
}

// DefaultWithin is less than [Timeout], after which the agent would go on as if there were
// no hook.
const (
	Timeout       = 10 * time.Second
	DefaultWithin = 7 * time.Second
)

// Bounds in bytes. The control socket takes 16 MiB; of a larger event, the outline is sent.
const (
	maxEvent    = 12 << 20
	maxOutlined = 64 << 20
)

// The exit statuses that agents know: anything else but 0 is an error of the hook, after which
// they go on.
const (
	exitDone = 0
	exitDeny = 2
)

// Run is the hook. It reads the event from in, and returns the exit status.
func Run(ctx context.Context, o Options, in io.Reader, out, errs io.Writer) int {
	if o.Within <= 0 {
		o.Within = DefaultWithin
	}
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	event, err := io.ReadAll(io.LimitReader(in, maxOutlined))
	switch {
	case err != nil:
	case len(event) > maxEvent:
		err = fmt.Errorf("the event is larger than %d bytes", maxEvent)
	case !json.Valid(event):
		err = errors.New("the agent's event is not JSON")
	}
	r := Request{
		Agent: o.Agent, Event: event, Headless: headless(o.Agent), Observe: o.Observe, HoldMS: max(0, (o.Within - time.Second).Milliseconds()),
	}
	decides := Decides(event)
	if err != nil {
		r.Event, r.Unreadable = Outline(event), err.Error()
	}
	var a answer
	if err == nil || !decides || o.Observe { // a session learns also what cannot be read
		var failed error
		a, failed = ask(ctx, o.State, r)
		err = errors.Join(err, failed)
	}
	if err != nil && !o.Observe && decides {
		fmt.Fprintf(errs, "wasmgate: %v\n", err)
		return exitDeny
	}
	if err != nil { // nothing is to be decided, and an error status would only hinder the agent
		fmt.Fprintf(errs, "wasmgate: %v\n", err)
		return exitDone
	}
	_, _ = io.WriteString(out, a.Stdout)
	_, _ = io.WriteString(errs, a.Stderr)
	return a.Exit
}

// errAway says that no gateway runs.
var errAway = errors.New("no gateway runs, so nothing is allowed: start `wasmgate serve`, or remove the hook with `wasmgate hook uninstall`")

// ask asks the gateway. The connection is used once, as HTTP/1.0 has it, so that the answer
// ends where it ends.
func ask(ctx context.Context, state string, r Request) (answer, error) {
	var a answer
	body, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	conn, err := socket.Dial(ctx, state)
	if err != nil {
		return a, errAway
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	request := fmt.Sprintf("POST /v1/%s HTTP/1.0\r\nHost: control\r\nContent-Length: %d\r\n\r\n", Method, len(body))
	if _, err = conn.Write(append([]byte(request), body...)); err != nil {
		return a, late(ctx, err)
	}
	reply, err := io.ReadAll(conn)
	if err != nil {
		return a, late(ctx, err)
	}
	head, said, _ := bytes.Cut(reply, []byte("\r\n\r\n"))
	if !strings.Contains(string(firstLine(head)), " 200 ") {
		var e struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(said, &e) // without a message, the status line is all there is
		return a, fmt.Errorf("the gateway answered %s: %s", firstLine(head), e.Message)
	}
	if err := json.Unmarshal(said, &a); err != nil {
		return a, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	return a, nil
}

func late(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the gateway has not answered in time")
	}
	return err
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	return line
}

// programs are the names of the agents' processes, and the arguments with which an agent takes prompts
// from something other than a person.
var programs = map[string]struct {
	name     string
	headless []string
}{
	"claude-code": {"claude", []string{"-p", "--print"}},
	"codex":       {"codex", []string{"exec", "e"}},
	"gemini-cli":  {"gemini", []string{"-p", "--prompt"}},
	"opencode":    {"opencode", []string{"run", "serve"}},
}

// headless reports whether the agent that has started this hook runs without a person, or whether that
// cannot be found out. An agent without a terminal is headless, and so is one that got a prompt when it
// was started. A project's settings can forge what Claude Code says of itself in the environment, so
// that counts by itself only if the system names no processes.
func headless(agent string) bool {
	p, known := programs[agent]
	if !known || agent == "claude-code" && os.Getenv("CLAUDE_CODE_ENTRYPOINT") != "cli" {
		return true
	}
	above := ancestors()
	if len(above) == 0 {
		return agent != "claude-code"
	}
	terminal, found := false, false
	for _, one := range above {
		if !found && one.runs(p.name) {
			terminal, found = one.terminal, true
		}
		for _, mark := range p.headless {
			if slices.ContainsFunc(one.args, func(arg string) bool { return arg == mark || strings.HasPrefix(arg, mark+"=") }) {
				return true
			}
		}
	}
	return !terminal
}

// maxAncestors is how far above the hook its agent may be: a shell and a launcher may be between them.
const maxAncestors = 4

// process is one above the hook.
type process struct {
	args     []string
	terminal bool // it reads from one
}

// runs reports whether a process is of a program, and not the shell that has started the hook
// of it.
func (p process) runs(program string) bool {
	all := strings.Join(p.args, " ")
	return strings.Contains(all, program) && !strings.Contains(all, "wasmgate")
}

// ancestors returns the processes above this one, as far as the system tells (proc(5)); nil
// if it does not.
func ancestors() (all []process) {
	pid := os.Getppid()
	for range maxAncestors {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || pid <= 1 {
			return all
		}
		input, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid)) // what cannot be told is none
		all = append(all, process{
			args:     strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"),
			terminal: strings.HasPrefix(input, "/dev/pts/") || strings.HasPrefix(input, "/dev/tty"),
		})
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return all
		}
		rest := string(stat)
		if _, err := fmt.Sscanf(rest[strings.LastIndexByte(rest, ')')+1:], " %1s %d", new(string), &pid); err != nil {
			return all
		}
	}
	return all
}
