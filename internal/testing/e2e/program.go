//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	wasmgate "github.com/wasmgate/wasmgate/internal/testing/program"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A Program is the built wasmgate.
type Program struct {
	Path  string
	Plain string // the same without the race detector, which is many times as fast
	WASM  string // the folder of machine code that all share
}

// BuildProgram builds wasmgate once for a package, whose TestMain calls [wasmgate.Main].
func BuildProgram(t *testing.T) *Program {
	p := &Program{Plain: wasmgate.Build(t, false), WASM: compiled.Folder(t)}
	p.Path = p.Plain
	if unraced.Raced() { // races of the program itself are found only by a program that looks for them
		p.Path = wasmgate.Build(t, true)
	}
	return p
}

// A Place is a folder with a configuration, and what is run on it.
type Place struct {
	T       testing.TB
	Program *Program
	Dir     string
	Env     []string // in addition to what all commands have
}

// Place makes a folder. The configuration gets what all tests share: a policy
// deadline that a busy machine keeps.
func (p *Program) Place(t testing.TB, configuration string) *Place {
	dir, err := os.MkdirTemp("", "e2e") // the names of t.TempDir are too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pl := &Place{T: t, Program: p, Dir: dir}
	if err := os.Mkdir(pl.File("state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.WASM, pl.File("state/wasm")); err != nil {
		t.Fatal(err)
	}
	pl.Write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s}\n"+configuration)
	pl.Write("policies/.keep", "")
	return pl
}

// File returns the path of a file in the folder.
func (pl *Place) File(name string) string { return filepath.Join(pl.Dir, filepath.FromSlash(name)) }

// Write writes a file in the folder, whole: a gateway that runs never reads half of it.
// wasmgate.yaml gets the folder of machine code.
func (pl *Place) Write(name, text string) {
	pl.T.Helper()
	if err := os.MkdirAll(filepath.Dir(pl.File(name)), 0o700); err != nil {
		pl.T.Fatal(err)
	}
	if name == "wasmgate.yaml" {
		text = compiled.Configured(text)
	}
	next := pl.File(name) + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		pl.T.Fatal(err)
	}
	if err := os.Rename(next, pl.File(name)); err != nil {
		pl.T.Fatal(err)
	}
}

// Args returns the arguments of wasmgate for a command on this place.
func (pl *Place) Args(args ...string) []string {
	return append([]string{"--config", pl.File("wasmgate.yaml")}, args...)
}

// Command returns a command that finds nothing of the person who runs the
// tests.
func (pl *Place) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = pl.Dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + pl.Dir, "TMPDIR=" + os.TempDir()}
	c.Env = append(c.Env, pl.Env...)
	c.WaitDelay = time.Minute // or a busy machine takes longer to pass the output on
	return c
}

// An Outcome is what a command left.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Run runs wasmgate to its end: the plain one, for what runs long is what has races.
func (pl *Place) Run(args ...string) Outcome {
	pl.T.Helper()
	return pl.Finish(pl.Program.Plain, pl.Args(args...)...)
}

// Finish runs any program to its end.
func (pl *Place) Finish(name string, args ...string) Outcome {
	pl.T.Helper()
	ctx, cancel := context.WithTimeout(pl.T.Context(), timelimit.Patience(pl.T))
	defer cancel()
	var out, errs bytes.Buffer
	c := pl.Command(ctx, name, args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		pl.T.Fatalf("%s %q: %v (%v)\n%s%s", name, args, err, ctx.Err(), out.String(), errs.String())
	}
	noRace(pl.T, errs.String())
	return Outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Must runs wasmgate, which must succeed, and returns what it printed.
func (pl *Place) Must(args ...string) string {
	pl.T.Helper()
	o := pl.Run(args...)
	if o.Code != 0 {
		pl.T.Fatalf("wasmgate %q: exit %d\n%s%s", args, o.Code, o.Stdout, o.Stderr)
	}
	return o.Stdout
}

// Ready waits until all servers of the gateway that runs are ready.
func (pl *Place) Ready() {
	pl.T.Helper()
	timelimit.Wait(pl.T, "the servers are ready", func() bool { return pl.Run("status", "--check").Code == 0 })
}

func noRace(t testing.TB, stderr string) {
	t.Helper()
	if strings.Contains(stderr, "DATA RACE") {
		t.Errorf("the program has a data race:\n%s", stderr)
	}
}

// A Process is one that was started, and that the test ends.
type Process struct {
	t      testing.TB
	Cmd    *exec.Cmd
	Stderr *Tail
	Ended  chan struct{}
	URL    string // of MCP, for a gateway
}

// Start starts a command. At the end of the test it is killed if it still runs.
func Start(t testing.TB, c *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, Cmd: c, Stderr: new(Tail), Ended: make(chan struct{})}
	c.Stderr = p.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // its state says how it ended
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-p.Ended
		noRace(t, p.Stderr.String())
		if t.Failed() {
			t.Logf("stderr of %q:\n%s", c.Args, p.Stderr)
		}
	})
	return p
}

// Serve starts a gateway with HTTP on a free port, and returns once each of its servers is ready or cannot
// be: a call waits for one that starts, but on a slow machine not long enough.
func (pl *Place) Serve(args ...string) *Process {
	pl.T.Helper()
	gw := pl.Listening(args...)
	timelimit.Wait(pl.T, "each server is ready or cannot be", func() bool { return pl.Run("status", "--check").Code != 1 })
	return gw
}

// Listening starts a gateway as Serve does, and returns once it listens.
func (pl *Place) Listening(args ...string) *Process {
	pl.T.Helper()
	args = append([]string{"--json", "serve", "--listen", "127.0.0.1:0"}, args...)
	return Serving(pl.T, pl.Command(context.WithoutCancel(pl.T.Context()), pl.Program.Path, pl.Args(args...)...))
}

// Serving starts a gateway that prints JSON, and reads its URL.
func Serving(t testing.TB, c *exec.Cmd) *Process {
	t.Helper()
	r, w := io.Pipe()
	c.Stdout = w
	p := Start(t, c)
	go func() { <-p.Ended; w.Close() }()
	var banner struct{ URL string }
	if err := json.NewDecoder(r).Decode(&banner); err != nil {
		t.Fatalf("the gateway has said no URL: %v\n%s", err, p.Stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	p.URL = banner.URL
	return p
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Wait waits for the end and returns the exit code; -1 is a signal's.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(timelimit.Patience(p.t)):
		p.t.Fatalf("%q does not end", p.Cmd.Args)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Tail keeps the last of what is written to it. It may be written and read at
// once.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

// MaxTail is how many bytes a [Tail] keeps.
const MaxTail = 64 << 10

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > MaxTail {
		t.b = append([]byte(nil), t.b[len(t.b)-MaxTail:]...)
	}
	return len(b), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// Get returns the status and the body of a page.
func Get(t testing.TB, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// Listens reports whether somebody listens on an address.
func Listens(t *testing.T, addr string) bool {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// GoEnv names the file of go's settings, which XDG_CONFIG_HOME would move.
func GoEnv(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOENV").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// ServeModules starts a gateway once the modules are compiled, by a program
// that is not slowed down.
func (pl *Place) ServeModules() *Process {
	pl.T.Helper()
	if out, err := pl.Command(pl.T.Context(), pl.Program.Plain, pl.Args("tools")...).CombinedOutput(); err != nil {
		pl.T.Fatalf("compile the modules: %v\n%s", err, out)
	}
	return pl.Serve()
}

// Text returns what an answer says: the code of a refusal or of a fault, or else
// the first text of the result.
func (a Answered) Text() string {
	var r struct{ Content []struct{ Text string } }
	switch code, reason := a.Refusal(); {
	case code != "":
		return code + ": " + reason
	case a.Error != nil:
		return a.Error.Message
	case json.Unmarshal(a.Result, &r) != nil || len(r.Content) == 0:
		return string(a.Result)
	}
	return r.Content[0].Text
}
