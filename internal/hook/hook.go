package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/control/socket"
)

// Method is the control socket's for hooks.
const Method = "hook"

// A Request is what the gateway is told.
type Request struct {
	Agent    string          `json:"agent"`
	Event    json.RawMessage `json:"event"`
	Headless bool            `json:"headless"`
	Observe  bool            `json:"observe"`
	HoldMS   int64           `json:"hold_ms"` // that a person may take to answer
}

// answer is what the agent is told.
type answer struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"`
}

// Options say which agent's hook it is, and of which gateway.
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

// maxEvent bounds what an agent tells, in bytes: the control socket takes 16 MiB.
const maxEvent = 12 << 20

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
	event, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	if err == nil && len(event) > maxEvent {
		err = fmt.Errorf("the event is larger than %d bytes", maxEvent)
	}
	var a answer
	if err == nil {
		a, err = ask(ctx, o, event)
	}
	if err != nil && !o.Observe && decides(event) {
		fmt.Fprintf(errs, "wasmgate: %v\n", err)
		return exitDeny
	}
	if err != nil { // nothing is decided, and an exit status would only stand in the agent's way
		fmt.Fprintf(errs, "wasmgate: %v\n", err)
		return exitDone
	}
	_, _ = io.WriteString(out, a.Stdout)
	_, _ = io.WriteString(errs, a.Stderr)
	return a.Exit
}

// decides reports whether an event is of a call that has not been made yet, or cannot be
// told from one.
func decides(event []byte) bool {
	var e struct {
		Name string `json:"hook_event_name"`
	}
	err := json.Unmarshal(event, &e)
	return err != nil || e.Name == "" || e.Name == "PreToolUse" || e.Name == "BeforeTool"
}

// errAway says that no gateway runs.
var errAway = errors.New("no gateway runs, so nothing is allowed: start `wasmgate serve`, or take the hook out with `wasmgate hook uninstall`")

// ask asks the gateway. The connection is used once, as HTTP/1.0 has it, so that the answer
// ends where it ends.
func ask(ctx context.Context, o Options, event []byte) (answer, error) {
	var a answer
	if !json.Valid(event) {
		return a, errors.New("the agent tells no JSON")
	}
	body, err := json.Marshal(Request{
		Agent: o.Agent, Event: event, Headless: headless(o.Agent), Observe: o.Observe, HoldMS: max(0, (o.Within - time.Second).Milliseconds()),
	})
	if err != nil {
		return a, err
	}
	conn, err := socket.Dial(ctx, o.State)
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

// headless reports whether nobody sits at the agent that has started this hook, or that
// cannot be told.
func headless(agent string) bool {
	if agent == "claude-code" {
		return os.Getenv("CLAUDE_CODE_ENTRYPOINT") != "cli"
	}
	mark, ok := map[string][]string{"codex": {"exec", "e"}, "gemini-cli": {"-p", "--prompt"}, "opencode": {"run", "serve"}}[agent]
	args := ancestors()
	if !ok || len(args) == 0 {
		return true
	}
	for _, arg := range args {
		for _, m := range mark {
			if arg == m || strings.HasPrefix(arg, m+"=") {
				return true
			}
		}
	}
	return false
}

// maxAncestors is how far above the hook its agent may be: a shell and a launcher stand
// between.
const maxAncestors = 4

// ancestors returns the arguments of the processes above this one, as far as the system
// tells (proc(5)); nil if it does not.
func ancestors() (args []string) {
	pid := os.Getppid()
	for range maxAncestors {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || pid <= 1 {
			return args
		}
		args = append(args, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")...)
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return args
		}
		rest := string(stat)
		if _, err := fmt.Sscanf(rest[strings.LastIndexByte(rest, ')')+1:], " %1s %d", new(string), &pid); err != nil {
			return args
		}
	}
	return args
}
