package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmgate/wasmgate/internal/telemetry"
)

// A Kind is what a notice is about.
type Kind string

// The kinds of notices.
const (
	Approval   Kind = "approval"   // a call waits for a person
	Quarantine Kind = "quarantine" // a definition is new or has changed, and is not offered
	Server     Kind = "server"     // a server that is required is faulted
	Audit      Kind = "audit"      // the audit log cannot be written, and calls are refused
)

// titles are what a desktop shows: nothing in them was chosen by a client or a server.
var titles = map[Kind]string{
	Approval:   "A call waits for your approval",
	Quarantine: "A server has changed, and waits for your approval",
	Server:     "A server that is required is faulted",
	Audit:      "The audit log cannot be written: calls are refused",
}

// A Notice is something that a person should look at.
type Notice struct {
	Kind  Kind      `json:"kind"`
	Time  time.Time `json:"time"`
	Node  string    `json:"node,omitempty"` // the gateway that sends it
	Title string    `json:"title"`          // of the kind
	Text  string    `json:"text"`           // a sentence, with names that clients and servers may have chosen
	// Command is what shows it, in a shell on the gateway's machine.
	Command string `json:"command,omitempty"`
	// Link is the page of the console that shows it. The link gives no right: anyone who follows it has
	// to sign in.
	Link      string          `json:"link,omitempty"`
	ID        string          `json:"id,omitempty"` // of an approval
	Principal string          `json:"principal,omitempty"`
	Server    string          `json:"server,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"`
	Expires   time.Time       `json:"expires,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // of a call; only where the operator wants it
	More      int             `json:"more,omitempty"`      // others of the kind at the same time
}

const (
	// maxWaiting is how many notices wait in a channel.
	maxWaiting = 64
	// maxTries is how often one is sent, firstPause what is waited after the first failure.
	maxTries   = 3
	firstPause = time.Second
	// desktopTime is how long a desktop may take to show one.
	desktopTime = 5 * time.Second
)

// A Channel takes notices somewhere. Use it from several goroutines.
type Channel struct {
	About     []Kind // nil: all
	Arguments bool   // also those of calls
	send      func(context.Context, Notice) error
	failed    func(error)
	waiting   chan Notice
	lost      atomic.Uint64
}

// NewChannel returns a channel that sends by send. Failed is called with the reason whenever a notice
// was not sent, and with nil when sending works. Nothing is sent before [Channel.Run].
func NewChannel(send func(context.Context, Notice) error, failed func(error)) *Channel {
	return &Channel{send: send, failed: failed, waiting: make(chan Notice, maxWaiting)}
}

// Offer gives the channel notices, if it is for their kind. It does not block: a notice for which there
// is no room is lost, and reported as a failure.
func (c *Channel) Offer(n Notice) {
	if c.About != nil && !slices.Contains(c.About, n.Kind) {
		return
	}
	if !c.Arguments {
		n.Arguments = nil
	}
	n.Title = titles[n.Kind]
	select {
	case c.waiting <- n:
	default:
		c.failed(fmt.Errorf("%d notices came faster than they could be sent, and were lost", c.lost.Add(1)))
	}
}

// Run sends until ctx ends.
func (c *Channel) Run(ctx context.Context) {
	for {
		select {
		case n := <-c.waiting:
			c.failed(c.try(ctx, n))
		case <-ctx.Done():
			return
		}
	}
}

// try sends a notice, a few times if need be.
func (c *Channel) try(ctx context.Context, n Notice) (err error) {
	pause := firstPause
	for try := 1; ; try++ {
		if err = c.send(ctx, n); err == nil {
			return nil
		}
		if try == maxTries {
			break
		}
		select {
		case <-time.After(pause):
			pause *= 4
		case <-ctx.Done():
			return err
		}
	}
	return fmt.Errorf("a notice of kind %s was not sent: %w", n.Kind, err)
}

// Webhook sends notices as JSON to a URL.
func Webhook(to *telemetry.Endpoint) func(context.Context, Notice) error {
	return func(ctx context.Context, n Notice) error {
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		return to.Post(ctx, "application/json", b)
	}
}

// Command gives notices to a program as JSON on its standard input: see [Run].
func Command(command []string) func(context.Context, Notice) error {
	return func(ctx context.Context, n Notice) error {
		b, err := json.Marshal(n)
		if err != nil {
			return err
		}
		return Run(ctx, command, append(b, '\n'))
	}
}

// ErrNoDesktop says that there is no program here that shows notices on a desktop.
var ErrNoDesktop = errors.New("desktop notices need notify-send on Linux or osascript on macOS")

// Desktop shows notices on the desktop of the user who runs the gateway. They contain only fixed words:
// the program that shows them takes its text as arguments, and other text could mean something to it.
func Desktop(ctx context.Context, n Notice) error {
	var command []string
	switch runtime.GOOS {
	case "darwin":
		command = []string{"osascript", "-e", fmt.Sprintf("display notification %q with title %q", n.Title, "wasmgate")}
	case "linux", "freebsd", "openbsd", "netbsd":
		command = []string{"notify-send", "--app-name=wasmgate", "wasmgate", n.Title}
	default:
		return ErrNoDesktop
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return ErrNoDesktop
	}
	ctx, cancel := context.WithTimeout(ctx, desktopTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, command[1:]...) // with the environment of this process: it says where the desktop is
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 10*time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, bytes.TrimSpace(said.Bytes()[:min(said.Len(), maxSaid)]))
	}
	return nil
}
