package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/unraced"
)

var recordUpgrade = flag.String("record-upgrade", "", "a folder of testdata/upgrade to record, as this version decides: state and log that it leaves, and the outcomes")

var upgradeRow = flag.String("upgrade-row", "", "words of a row of UPGRADING.md: what differs and is not named yet is named in changed.json with them")

// upgraded is what a version does with the files of a folder of testdata/upgrade.
type upgraded struct {
	// Lists has the names of the tools that each principal is offered.
	Lists map[string][]string `json:"lists"`
	// Calls has an entry for each of calls.json: what came back, or the code of the refusal.
	Calls []string `json:"calls"`
	// Pins has the state and the digest of each definition; none where pins are off.
	Pins map[string]string `json:"pins"`
}

// changed is one outcome that is another than the recorded one, and the row of UPGRADING.md
// that says so.
type changed struct {
	What string `json:"what"`
	Was  string `json:"was"`
	Now  string `json:"now"`
	Row  string `json:"row"`
}

// TestUpgrade starts the program on what an earlier version has left: configuration,
// grants, labels, policies, pins, jobs and log. Each outcome is the one of then, or one
// that changed.json names together with the row of UPGRADING.md that tells users of it.
func TestUpgrade(t *testing.T) {
	unraced.Long(t)
	if *recordUpgrade != "" {
		recordFolder(t, *recordUpgrade)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("the servers of the folders are shell scripts")
	}
	folders, err := filepath.Glob("../../testdata/upgrade/*/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders of earlier versions: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(filepath.Dir(folder))+"/"+filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			var was upgraded
			readJSON(t, filepath.Join(folder, "was.json"), &was)
			var known []changed
			readJSON(t, filepath.Join(folder, "changed.json"), &known)
			known = compareUpgrade(t, was, outcomes(t, dir), known)
			if *upgradeRow != "" {
				writeJSON(t, filepath.Join(folder, "changed.json"), known)
			}
			if out := command(t, dir, "audit", "verify", "audit.jsonl").out; !strings.Contains(out, "holds") {
				t.Errorf("audit verify over the log that was continued: %s", out)
			}
		})
	}
}

// recordFolder keeps what this version makes of a folder that holds none of it yet.
func recordFolder(t *testing.T, folder string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	outcomes(t, dir) // leaves sessions, pins and a log
	again := t.TempDir()
	for _, name := range []string{"state/secret", "state/lock", "state/wasm", "audit.jsonl.lock"} { // secrets and what is made anew
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, filepath.Join(dir, "was.json"), outcomes(t, again))
	writeJSON(t, filepath.Join(dir, "changed.json"), []changed{})
	err := os.RemoveAll(folder)
	if err == nil {
		err = os.CopyFS(folder, os.DirFS(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	if err == nil {
		err = os.WriteFile(file, b.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outcomes runs a gateway on the folder, and asks it.
func outcomes(t *testing.T, dir string) upgraded {
	t.Helper()
	if err := shareCompiled(filepath.Join(dir, "state"), compiled(t)); err != nil {
		t.Fatal(err)
	}
	private(t, filepath.Join(dir, "state"))
	serve := exec.CommandContext(t.Context(), "wasmgate", "serve", "--stdio", "--config", "wasmgate.yaml")
	serve.Dir, serve.Env = dir, upgradeEnv(dir)
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	serve.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	serve.Stderr = &said
	in, err := serve.StdinPipe() // the gateway ends with its client
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- serve.Wait() }()
	defer func() {
		_ = in.Close()
		select {
		case err := <-over:
			if err != nil {
				t.Errorf("serve: %v\n%s", err, said.String())
			}
		case <-time.After(time.Minute):
			t.Errorf("serve does not end with its client")
		}
	}()
	ready := func() bool { // without its socket, a command would start servers of its own
		_, err := os.Stat(filepath.Join(dir, "state", "control.sock"))
		return err == nil && command(t, dir, "status", "--check").code == 0
	}
	for giveUp := time.Now().Add(time.Minute); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("not ready: %s", command(t, dir, "status").out)
		}
	}
	got := upgraded{Lists: map[string][]string{}, Pins: map[string]string{}}
	for _, who := range []string{"alice", "local"} {
		got.Lists[who] = offeredTo(t, dir, who)
	}
	var calls []struct {
		As, Tool  string
		Arguments json.RawMessage
	}
	readJSON(t, filepath.Join(dir, "calls.json"), &calls)
	for _, c := range calls {
		got.Calls = append(got.Calls, c.As+" "+c.Tool+" "+oneLine(c.Arguments)+": "+
			outcome(command(t, dir, "call", c.Tool, string(c.Arguments), "--as", c.As)))
	}
	var list struct {
		Pins []struct{ Label, State, Digest string }
	}
	if pins := command(t, dir, "pin", "list", "--json"); pins.code == 0 { // 2: pins are off
		if err := json.Unmarshal([]byte(pins.out), &list); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range list.Pins {
		got.Pins[p.Label] = p.State + " " + p.Digest
	}
	return got
}

// private takes the rights of others away, which version control does not keep.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func oneLine(arguments json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, arguments) != nil {
		return string(arguments)
	}
	return b.String()
}

func offeredTo(t *testing.T, dir, who string) (names []string) {
	t.Helper()
	var tools []struct{ Name string }
	c := command(t, dir, "tools", "--json", "--as", who)
	if err := json.Unmarshal([]byte(c.out), &tools); err != nil {
		t.Fatalf("tools: %v: %s", err, c.err)
	}
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

type commanded struct {
	out, err string
	code     int
}

var refusalCode = regexp.MustCompile(`(?m)^wasmgate: \S+: ([a-z_]+):`)

// outcome is what a call brought, in a line: the same whenever and wherever it is made.
func outcome(c commanded) string {
	if m := refusalCode.FindStringSubmatch(c.err); m != nil {
		return m[1]
	}
	return strings.Join(strings.Fields(c.out), " ")
}

func command(t *testing.T, dir string, args ...string) (c commanded) {
	t.Helper()
	if args[0] != "audit" {
		args = append(args, "--config", "wasmgate.yaml")
	}
	cmd := exec.CommandContext(t.Context(), "wasmgate", args...)
	cmd.Dir, cmd.Env = dir, upgradeEnv(dir)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Writer(&said)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		c.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	c.out, c.err = out.String(), said.String()
	return c
}

func upgradeEnv(dir string) []string {
	home := filepath.Join(dir, "home")
	return append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
}

// compareUpgrade reports each outcome that differs and that nobody has named, and each
// name that nothing needs.
func compareUpgrade(t *testing.T, was, now upgraded, known []changed) []changed {
	t.Helper()
	rows, err := os.ReadFile("../../UPGRADING.md")
	if err != nil && len(known) > 0 {
		t.Fatal(err)
	}
	wasLines, nowLines := was.lines(), now.lines()
	for what := range nowLines {
		if _, ok := wasLines[what]; !ok {
			wasLines[what] = ""
		}
	}
	told := map[string]changed{}
	for _, c := range known {
		told[c.What] = c
		if !strings.Contains(string(rows), c.Row) || c.Row == "" {
			t.Errorf("%s: UPGRADING.md has no row %q", c.What, c.Row)
		}
		if wasLines[c.What] != c.Was || nowLines[c.What] != c.Now || c.Was == c.Now {
			t.Errorf("%s: changed.json says %q became %q; it was %q and is %q", c.What, c.Was, c.Now, wasLines[c.What], nowLines[c.What])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(wasLines)) {
		before := wasLines[what]
		if _, ok := told[what]; ok || before == nowLines[what] {
			continue
		}
		if known = append(known, changed{what, before, nowLines[what], *upgradeRow}); *upgradeRow == "" {
			t.Errorf("%s: was %q, is %q: mend it, or tell users in UPGRADING.md and name it in changed.json", what, before, nowLines[what])
		}
	}
	return known
}

func (u upgraded) lines() map[string]string {
	all := map[string]string{}
	for who, names := range u.Lists {
		for _, name := range names {
			all[who+" is offered "+name] = "yes"
		}
	}
	for _, c := range u.Calls {
		what, result, _ := strings.Cut(c, "}: ")
		all["call "+what+"}"] = result
	}
	for tool, state := range u.Pins {
		all["pin of "+tool] = state
	}
	return all
}
