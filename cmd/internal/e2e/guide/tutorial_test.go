//go:build unix

package guide

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

func testTutorial(t *testing.T, p *e2e.Program) {
	newReader(t, p, e2e.Node(t)).readPage(t, "tutorial.md", 30)
}

// readPage pastes the blocks of a page of docs/ into a shell with an empty home, and expects each
// line of output that the page shows. Blocks of configurations and rules are left out.
func (r *reader) readPage(t *testing.T, name string, least int) {
	page, err := os.ReadFile(filepath.Join("../../../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("policy: {paths", "policy: {timeout: 5s, paths", "/home/ann", r.home).Replace(string(page))
	blocks := regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	if len(blocks) < least {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	for i, b := range blocks {
		switch {
		case b[1] == "" || b[1] == "yaml" || b[1] == "rego":
			continue // the output of the block before, or what the reader may write
		case b[1] != "sh":
			t.Fatalf("a block in %q", b[1])
		case b[2] == "wasmgate serve\n":
			r.serve()
			continue
		}
		var shown string
		if i+1 < len(blocks) && blocks[i+1][1] == "" {
			shown = blocks[i+1][2]
		}
		r.follow(b[2], shown)
	}
}

// A reader follows the page: a shell, and a gateway in another terminal.
type reader struct {
	t       *testing.T
	place   *e2e.Place
	home    string
	in      io.Writer
	out     *bufio.Reader
	gateway *e2e.Process
}

// newReader returns a reader whose npm installs what is in a folder with packages.
func newReader(t *testing.T, p *e2e.Program, packages string) *reader {
	packages = filepath.Join(packages, "node_modules")
	home, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	pl := &e2e.Place{T: t, Program: p, Dir: home}
	r := &reader{t: t, place: pl, home: home}
	// npm install --prefix FOLDER PACKAGE@VERSION, without a network.
	pl.Write("bin/npm", fmt.Sprintf("#!/bin/sh\ngrep -q '\"version\": \"'${4##*@}'\"' '%s'/${4%%@*}/package.json && ln -s '%[1]s' \"$3\"/node_modules\n", packages))
	if err := os.Chmod(pl.File("bin/npm"), 0o700); err != nil {
		t.Fatal(err)
	}
	pl.Env = []string{"PATH=" + pl.File("bin") + ":" + os.Getenv("PATH"), "GOPATH=" + home + "/go", "GOFLAGS=" + os.Getenv("GOFLAGS"), "GOENV=" + e2e.GoEnv(t)}
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		pl.Env = append(pl.Env, name+"="+strings.TrimSpace(string(value)))
	}
	c := pl.Command(t.Context(), "sh")
	c.Dir = toolchain.Root()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = c.Wait() })
	r.in, r.out = in, bufio.NewReader(out)
	return r
}

// paste runs commands in the shell, and returns what they print.
func (r *reader) paste(commands string) string {
	r.t.Helper()
	const end = "end of the block"
	if _, err := fmt.Fprintf(r.in, "{\n%s\n} </dev/null\necho; echo %s\n", commands, end); err != nil {
		r.t.Fatal(err)
	}
	var printed strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		if err != nil {
			r.t.Fatalf("%s: %v\n%s", commands, err, printed.String())
		}
		if line == end+"\n" {
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// follow pastes a block and compares its output with what the page shows. Calls alone are repeated
// until they match: the gateway may not have loaded a change yet.
func (r *reader) follow(block, shown string) {
	r.t.Helper()
	repeatable := true
	for line := range strings.Lines(block) {
		repeatable = repeatable && strings.HasPrefix(line, "wasmgate call ")
	}
	if repeatable {
		r.settled()
	}
	for end := time.Now().Add(timelimit.Patience(r.t)); ; time.Sleep(100 * time.Millisecond) {
		printed := r.paste(block)
		missing := missingLine(shown, printed)
		if missing == "" {
			return
		}
		if !repeatable || time.Now().After(end) {
			r.t.Fatalf("%s\nprints\n%s\nwithout the line\n%s", block, printed, missing)
		}
	}
}

// serve starts the gateway, again if it runs, and waits for its servers.
func (r *reader) serve() {
	r.t.Helper()
	if r.gateway != nil {
		r.gateway.Signal(syscall.SIGINT)
		r.gateway.Wait()
	}
	c := r.place.Command(context.WithoutCancel(r.t.Context()), r.home+"/go/bin/wasmgate", "--json", "serve", "--listen", "127.0.0.1:0")
	r.gateway = e2e.Serving(r.t, c)
	r.settled()
}

// settled waits until the gateway has the policy of the files, and all servers.
func (r *reader) settled() {
	r.t.Helper()
	timelimit.Wait(r.t, "the gateway has the policy of the files and all servers", func() bool {
		var s struct {
			Revision string `json:"policy_revision"`
			Servers  []struct{ Phase string }
		}
		if json.Unmarshal([]byte(r.paste("wasmgate status --json")), &s) != nil {
			return false
		}
		for _, server := range s.Servers {
			if server.Phase != "ready" {
				return false
			}
		}
		return strings.Contains(r.paste("wasmgate doctor"), "revision "+s.Revision+"\n")
	})
}

// varying are identifiers, durations and numbers, which differ from run to run.
var varying = regexp.MustCompile(`[a-z0-9]{8}-[a-z0-9]{16}\b|[0-9a-f]{8}-[0-9a-f-]{27}\b|[0-9a-f]{64}\b|[0-9.]+(?:ms|s)\b|[0-9]+`)

// missingLine returns a line that a page shows and that was not printed, or "". An ellipsis stands for
// any text.
func missingLine(shown, printed string) string {
	for line := range strings.Lines(shown) {
		var pattern strings.Builder
		for _, field := range strings.Fields(line) {
			last := 0
			for _, m := range varying.FindAllStringIndex(field, -1) {
				pattern.WriteString(regexp.QuoteMeta(field[last:m[0]]) + `[0-9a-zµ.-]+`)
				last = m[1]
			}
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(field[last:]), "…", ".*") + `\s+`)
		}
		if !regexp.MustCompile(`(?m)^\s*` + pattern.String()).MatchString(printed) {
			return line
		}
	}
	return ""
}
