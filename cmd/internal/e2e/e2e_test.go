//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	wasmgate "github.com/wasmgate/wasmgate/internal/testing/program"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/unraced"
)

func TestMain(m *testing.M) {
	serveTailor()
	os.Exit(wasmgate.Main(m))
}

// TestE2E runs the program as users do: built, started as a process, with a
// configuration file, real servers behind it and real clients in front. It
// needs no network. What needs node is skipped without it. Its processes are
// ended with signals, which Windows does not have.
func TestE2E(t *testing.T) {
	p := buildProgram(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *program)
	}{
		{"real", testRealServers}, {"features", testFeatures}, {"twins", testTwins}, {"stdio", testOneFleet}, {"denied", testDenied},
		{"lying", testLyingResults}, {"arguments", testBadArguments}, {"sick", testSickServers}, {"growing", testGrowingResults}, {"gone", testClientGone},
		{"kill", testKill}, {"drain", testDrain}, {"twice", testSecondSignal},
		{"reload", testReload}, {"refused", testRefusedStarts}, {"audit", testAuditFull}, {"hold", testAuditHold}, {"readme", testReadme},
		{"languages", testLanguages}, {"plugins", testPlugins}, {"guest", testGuestServer}, {"hostcalls", testHostCalls},
		{"traps", testTraps}, {"repos", testRepoScan}, {"modules", testWrongModules}, {"pins", testPins},
		{"bundles", testBundles}, {"shadow", testShadow}, {"asked", testAsked}, {"probe", testProbe}, {"confined", testConfinedServers},
		{"versions", testPinnedVersions}, {"secrets", testSecrets}, {"jobs", testJobs}, {"tasks", testTasks}, {"task asks", testTaskAsks}, {"servers", testServers}, {"replay", testRecordReplay}, {"eras", testEras}, {"memory", testMemory}, {"peers", testPeers}, {"groups", testGroups}, {"slow banner", testSlowBanner}, {"methods", testMethods}, {"status", testStatusCheck}, {"bombs", testBombs}, {"fair", testFair}, {"marks", testMarks}, {"teams", testTwoTeams}, {"login", testLoginServer}, {"connect", testConnect}, {"sso", testSingleSignOn}, {"tutorial", testTutorial}, {"apps", testAppsPage},
	} {
		t.Run(part.name, func(t *testing.T) {
			switch {
			case !testing.Short():
			case slices.Contains(oneByOne, part.name):
				t.Skip("its calls follow one another, and take long, with the race detector minutes: .ci/run runs it without, .ci/nightly with")
			case !slices.Contains(atWork, part.name):
				unraced.Long(t)
			}
			t.Parallel()
			part.run(t, p)
		})
	}
}

// oneByOne are the parts whose calls follow one another: a person at work waits for them the longest,
// and there is the least in them for the race detector to find.
var oneByOne = []string{"languages", "plugins", "guest", "bundles", "readme", "versions", "secrets", "confined", "repos", "traps", "modules", "teams", "login", "sso", "tutorial", "apps"}

// atWork are the parts that a person at work waits for: calls and questions of a client and a server,
// and what a gateway does when either goes away.
var atWork = []string{"denied", "gone", "kill", "asked"}

// A program is the built wasmgate.
type program struct {
	path  string
	plain string // the same without the race detector, which is many times as fast
	wasm  string // the folder of machine code that all share
}

func buildProgram(t *testing.T) *program {
	p := &program{plain: wasmgate.Build(t, false), wasm: compiled.Folder(t)}
	p.path = p.plain
	if underRace { // races of the program itself are found only by a program that looks for them
		p.path = wasmgate.Build(t, true)
	}
	return p
}

// A place is a folder with a configuration, and what is run on it.
type place struct {
	t       testing.TB
	program *program
	dir     string
	env     []string // beside what all commands have
}

// place makes a folder. The configuration gets what all tests share: a policy
// deadline that a busy machine keeps.
func (p *program) place(t testing.TB, configuration string) *place {
	dir, err := os.MkdirTemp("", "e2e") // the names of t.TempDir are too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pl := &place{t: t, program: p, dir: dir}
	if err := os.Mkdir(pl.file("state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.wasm, pl.file("state/wasm")); err != nil {
		t.Fatal(err)
	}
	pl.write("wasmgate.yaml", "version: 1\npolicy: {paths: [policies], timeout: 5s}\n"+configuration)
	pl.write("policies/.keep", "")
	return pl
}

func (pl *place) file(name string) string { return filepath.Join(pl.dir, filepath.FromSlash(name)) }

func (pl *place) write(name, text string) {
	pl.t.Helper()
	if err := os.MkdirAll(filepath.Dir(pl.file(name)), 0o700); err != nil {
		pl.t.Fatal(err)
	}
	if name == "wasmgate.yaml" {
		text = compiled.Configured(text)
	}
	if err := os.WriteFile(pl.file(name), []byte(text), 0o600); err != nil {
		pl.t.Fatal(err)
	}
}

// args returns the arguments of wasmgate for a command on this place.
func (pl *place) args(args ...string) []string {
	return append([]string{"--config", pl.file("wasmgate.yaml")}, args...)
}

// command returns a command that finds nothing of the person who runs the
// tests.
func (pl *place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = pl.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + pl.dir, "TMPDIR=" + os.TempDir()}
	c.Env = append(c.Env, pl.env...)
	c.WaitDelay = time.Second
	return c
}

// An outcome is what a command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs wasmgate to its end: the plain one, for what runs long is what has races.
func (pl *place) run(args ...string) outcome {
	pl.t.Helper()
	return pl.finish(pl.program.plain, pl.args(args...)...)
}

// finish runs any program to its end.
func (pl *place) finish(name string, args ...string) outcome {
	pl.t.Helper()
	ctx, cancel := context.WithTimeout(pl.t.Context(), timelimit.Patience(pl.t))
	defer cancel()
	var out, errs bytes.Buffer
	c := pl.command(ctx, name, args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		pl.t.Fatalf("%s %q: %v (%v)\n%s%s", name, args, err, ctx.Err(), out.String(), errs.String())
	}
	noRace(pl.t, errs.String())
	return outcome{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs wasmgate, which must succeed, and returns what it printed.
func (pl *place) must(args ...string) string {
	pl.t.Helper()
	o := pl.run(args...)
	if o.code != 0 {
		pl.t.Fatalf("wasmgate %q: exit %d\n%s%s", args, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// ready waits until all servers of the gateway that runs are ready.
func (pl *place) ready() {
	pl.t.Helper()
	timelimit.Wait(pl.t, "the servers are ready", func() bool { return pl.run("status", "--check").code == 0 })
}

func noRace(t testing.TB, stderr string) {
	t.Helper()
	if strings.Contains(stderr, "DATA RACE") {
		t.Errorf("the program has a data race:\n%s", stderr)
	}
}

// A process is one that was started, and that the test ends.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *tail
	ended  chan struct{}
	url    string // of MCP, for a gateway
}

// start starts a command. At the end of the test it is killed if it still runs.
func start(t testing.TB, c *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: c, stderr: new(tail), ended: make(chan struct{})}
	c.Stderr = p.stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // its state says how it ended
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-p.ended
		noRace(t, p.stderr.String())
		if t.Failed() {
			t.Logf("stderr of %q:\n%s", c.Args, p.stderr)
		}
	})
	return p
}

// serve starts a gateway with HTTP on a free port, and returns once it listens.
func (pl *place) serve(args ...string) *process {
	pl.t.Helper()
	args = append([]string{"--json", "serve", "--listen", "127.0.0.1:0"}, args...)
	return serving(pl.t, pl.command(context.WithoutCancel(pl.t.Context()), pl.program.path, pl.args(args...)...))
}

// serving starts a gateway that prints JSON, and reads its URL.
func serving(t testing.TB, c *exec.Cmd) *process {
	t.Helper()
	r, w := io.Pipe()
	c.Stdout = w
	p := start(t, c)
	go func() { <-p.ended; w.Close() }()
	var banner struct{ URL string }
	if err := json.NewDecoder(r).Decode(&banner); err != nil {
		t.Fatalf("the gateway has said no URL: %v\n%s", err, p.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	p.url = banner.URL
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits for the end and returns the exit code; -1 is a signal's.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(timelimit.Patience(p.t)):
		p.t.Fatalf("%q does not end", p.cmd.Args)
	}
	return p.cmd.ProcessState.ExitCode()
}

// tail keeps the last of what is written to it. It may be written and read at
// once.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const maxTail = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > maxTail {
		t.b = append([]byte(nil), t.b[len(t.b)-maxTail:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// get returns the status and the body of a page.
func get(t testing.TB, url string) (int, string) {
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
