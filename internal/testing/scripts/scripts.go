package scripts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/program"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// Main runs the tests of a package whose scripts start wasmgate, and ends the process.
func Main(m *testing.M) {
	inPath := func() { panic("the program that Programs built comes first in PATH") }
	testscript.Main(building{m}, map[string]func(){"wasmgate": inPath, "xdg-open": inPath})
}

// building is tests that build the program.
type building struct{ m *testing.M }

func (b building) Run() int { return program.Main(b.m) }

// Programs returns a folder, in the PATH of the tests, with wasmgate and with the server mcp-stub, also by the names
// of programs that start packages or open pages. They are built once for a package.
func Programs(t testing.TB) string {
	t.Helper()
	once.Do(func() { folder, errBuilt = programs(program.Build(t, false)) })
	if errBuilt != nil {
		t.Fatal(errBuilt)
	}
	return folder
}

var (
	once     sync.Once
	folder   string
	errBuilt = errors.New("the programs of an earlier test could not be built")
)

// programs builds the others next to wasmgate.
func programs(wasmgate string) (string, error) {
	dir := filepath.Dir(wasmgate)
	build := exec.Command("go", "build", "-o", dir, "./internal/testing/scripts/testdata/mcp-stub")
	build.Dir = toolchain.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, name := range []string{"npx", "npm", "uvx", "dnx", "docker", "xdg-open"} {
		if err := os.Link(filepath.Join(dir, "mcp-stub"), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Run runs the scripts of a package, testdata/*.txtar, as people run the program. Only those at work run where a
// person waits (go test -short). In addition to what testscript offers, a script has
//
//	exits CODE COMMAND...    the exit code of a command
//	awaits REGEXP COMMAND... runs a command until its output matches
//	fill FILE                puts $TOKEN, a random text, for @TOKEN@ in a file
//	without FILE             fails if $TOKEN is in a file
//	cut FROM TO N TEXT       writes the first N lines, and TEXT without an end
//	change FROM TO N OLD NEW writes all, with NEW for OLD in line N
//	head FILE                sets $HEAD to the head of an audit log
//	record FILE              sets $RECORD to the id of the last call in an audit log
//	warm FOLDER...           makes state folders in which the embedded tools are compiled, as they are in ./state
//	paste PAGE               runs what a page of the documentation has to paste
//	registry FOLDER          serves a registry, and sets $WASMGATE_REGISTRY
//	approval FILE            sets $APPROVAL to the id of the approval that an audit log tells of last
//
// the server mcp-stub, npm, which knows version 1.2.3 of packages named known-..., xdg-open, which notes its arguments and opens the page, and echo.wasm, a command that answers
// with its input, with echo2.wasm, the same in another file.
func Run(t *testing.T, atWork ...string) {
	t.Helper()
	if unraced.Raced() {
		t.Skip("the commands begin too slowly: without the detector they run, and the gateways of TestE2E look for races")
	}
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if unraced.AtWork() {
		scripts = slices.DeleteFunc(scripts, func(s string) bool { return !slices.Contains(atWork, strings.TrimSuffix(filepath.Base(s), ".txtar")) })
		if len(scripts) == 0 {
			t.Skip("takes long: left out by -short; go test ./... runs it")
		}
	}
	programs := Programs(t)
	shared := compiled.Folder(t)
	warm := func(state string) error {
		return errors.Join(os.MkdirAll(state, 0o700), os.Symlink(shared, filepath.Join(state, "wasm")))
	}
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("PATH", programs+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", home)
			e.Setenv("USERPROFILE", home)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			e.Setenv("TOKEN", rand.Text())
			if err := errors.Join(warm(filepath.Join(home, "state", "wasmgate")), warm(filepath.Join(e.WorkDir, "state"))); err != nil {
				return err
			}
			other := append(echoModule(), 0, 2, 1, 'a') // a custom section named a
			return errors.Join(os.WriteFile(filepath.Join(e.WorkDir, "echo.wasm"), echoModule(), 0o600), os.WriteFile(filepath.Join(e.WorkDir, "echo2.wasm"), other, 0o600))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "awaits": awaits, "fill": fill, "without": without, "cut": cut, "change": change, "head": head, "record": record, "approval": approvalID, "paste": paste, "registry": registry,
			"warm": func(ts *testscript.TestScript, _ bool, states []string) {
				for _, state := range states {
					ts.Check(warm(ts.MkAbs(state)))
				}
			},
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE[,CODE] COMMAND...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(code)) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: awaits REGEXP COMMAND...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	giveUp := time.After(3 * time.Minute) // a busy machine takes its time
	for {
		_ = ts.Exec(args[1], args[2:]...) // it may fail until it does not
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-giveUp:
			ts.Fatalf("waited in vain for %s", want)
		}
	}
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		text := strings.ReplaceAll(ts.ReadFile(file), "@TOKEN@", ts.Getenv("TOKEN"))
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

func without(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		if strings.Contains(ts.ReadFile(file), ts.Getenv("TOKEN")) {
			ts.Fatalf("%s holds the token", file)
		}
	}
}

func lines(ts *testscript.TestScript, file string) []string {
	return strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(file), "\n"), "\n")
}

func approvalID(ts *testscript.TestScript, _ bool, args []string) {
	id := ""
	for _, line := range lines(ts, args[0]) {
		var e struct {
			Event    string
			Approval struct{ ID string }
		}
		ts.Check(json.Unmarshal([]byte(line), &e))
		if e.Event == "approval" {
			id = e.Approval.ID
		}
	}
	if id == "" {
		ts.Fatalf("%s tells of no approval", args[0])
	}
	ts.Setenv("APPROVAL", id)
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	kept := lines(ts, args[0])[:number(ts, args[2])]
	text := strings.TrimSuffix(strings.Join(kept, ""), "\n") + "\n" + args[3]
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

func change(ts *testscript.TestScript, _ bool, args []string) {
	all, n := lines(ts, args[0]), number(ts, args[2])-1
	all[n] = strings.Replace(all[n], args[3], args[4], 1)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(all, "")+"\n"), 0o600))
}

func head(ts *testscript.TestScript, _ bool, args []string) {
	all := lines(ts, args[0])
	ts.Setenv("HEAD", fmt.Sprintf("%d:%x", len(all), sha256.Sum256([]byte(all[len(all)-1]))))
}

func record(ts *testscript.TestScript, _ bool, args []string) {
	all := lines(ts, args[0])
	var e struct{ ID string }
	ts.Check(json.Unmarshal([]byte(all[len(all)-1]), &e))
	ts.Setenv("RECORD", e.ID)
}

// echoModule is a WASI command, written out: it reads its input to 1024, up to
// 512 bytes, and writes as many as it has read.
func echoModule() []byte {
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	text := func(s string) string { return string([]byte{byte(len(s))}) + s }
	const wasi = "wasi_snapshot_preview1"
	body := "\x00" + // no locals
		"\x41\x00\x41\x80\x08\x36\x02\x00" + "\x41\x04\x41\x80\x04\x36\x02\x00" + // where to, and how much
		"\x41\x00\x41\x00\x41\x01\x41\x08\x10\x00\x1a" + // fd_read(0, ...)
		"\x41\x10\x41\x80\x08\x36\x02\x00" + "\x41\x14\x41\x08\x28\x02\x00\x36\x02\x00" + // from where, and how much
		"\x41\x01\x41\x10\x41\x01\x41\x08\x10\x01\x1a" + // fd_write(1, ...)
		"\x0b"
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x02"+"\x60\x04\x7f\x7f\x7f\x7f\x01\x7f"+"\x60\x00\x00") + // types: four i32 to i32; nothing
		section(2, "\x02"+text(wasi)+text("fd_read")+"\x00\x00"+text(wasi)+text("fd_write")+"\x00\x00") +
		section(3, "\x01\x01") + // one function
		section(5, "\x01\x00\x01") + // one page of memory
		section(7, "\x02"+text("memory")+"\x02\x00"+text("_start")+"\x00\x02") +
		section(10, "\x01"+text(body)))
}
