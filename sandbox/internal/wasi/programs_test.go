package wasi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox/internal/wasi"
)

// run runs a command with p, and returns its exit code and all it wrote.
func run(t *testing.T, wasm []byte, p *wasi.Process) (code uint32, output string) {
	t.Helper()
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, &out
	r := newRuntime(t)
	mod, err := r.InstantiateWithConfig(t.Context(), wasm, moduleConfig)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mod.ExportedFunction("_start").Call(context.WithValue(t.Context(), processKey{}, p))
	code, ok := exitCode(err)
	if !ok {
		t.Fatalf("%v, output %q", err, &out)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return code, out.String()
}

func goProgram(t *testing.T, dir string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.wasm")
	cmd := exec.Command("go", "build", "-o", path, "./"+dir)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return readFile(t, path)
}

func cProgram(t *testing.T, source string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.wasm")
	toolchain.Need(t, "clang")
	cmd := exec.Command("clang", "--target=wasm32-wasi", "-O1", "-Wall", "-Werror", "-o", path, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("clang: %v\n%s", err, out)
	}
	return readFile(t, path)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func emptyDir(t *testing.T, guestPath string, write bool) (string, wasi.Dir) {
	t.Helper()
	dir := t.TempDir()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return dir, wasi.Dir{Path: guestPath, Write: write, Root: r}
}

func TestGoProgram(t *testing.T) {
	unraced.Long(t)
	_, dir := emptyDir(t, "/data", true)
	code, out := run(t, goProgram(t, "testdata/files"), &wasi.Process{
		Args: []string{"files", "/data"}, Env: []string{"KEY=value"},
		Stdin: strings.NewReader(strings.Repeat("x", 100_000)), Dirs: []wasi.Dir{dir}, Ask: allow,
	})
	if code != 0 || out != "ok\n" {
		t.Errorf("exit %d, output:\n%s", code, out)
	}
}

// TestCPrograms has programs in C use every function, as libc does.
func TestCPrograms(t *testing.T) {
	unraced.Long(t)
	used := map[string]bool{"proc_raise": true} // libc has no word for it
	for _, name := range []string{"files", "names"} {
		t.Run(name, func(t *testing.T) {
			_, dir := emptyDir(t, "/data", true)
			program := cProgram(t, "testdata/c/"+name+".c")
			imports(t, program, used)
			code, out := run(t, program, &wasi.Process{
				Args: []string{name, "/data"}, Dirs: []wasi.Dir{dir}, Ask: allow,
			})
			if code != 0 || out != "ok\n" {
				t.Errorf("exit %d, output:\n%s", code, out)
			}
		})
	}
	t.Run("system", func(t *testing.T) {
		program := cProgram(t, "testdata/c/system.c")
		imports(t, program, used)
		code, out := run(t, program, &wasi.Process{
			Args: []string{"tool", "", "größe"}, Env: []string{"KEY=value"}, Stdin: strings.NewReader("hello\n"),
		})
		if code != 42 || out != "ok\n" {
			t.Errorf("exit %d, output:\n%s", code, out)
		}
		for name := range signatures {
			if !used[name] {
				t.Errorf("no C program uses %s", name)
			}
		}
	})
}

// imports notes which functions a program imports.
func imports(t *testing.T, wasm []byte, used map[string]bool) {
	t.Helper()
	module, err := newRuntime(t).CompileModule(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range module.ImportedFunctions() {
		_, name, _ := f.Import()
		used[name] = true
	}
}

// wazeroDir holds the programs that wazero's own module ships. They are read in
// place; sources and builds are wazero's.
func wazeroDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil || len(bytes.TrimSpace(out)) == 0 {
		t.Fatalf("the module wazero is not in the module cache: %v", err)
	}
	return filepath.Join(string(bytes.TrimSpace(out)), "imports", "wasi_snapshot_preview1")
}

var toolchains = []string{"cargo-wasi", "tinygo", "zig", "zig-cc"}

func wazeroModule(t *testing.T, name string) []byte {
	t.Helper()
	return readFile(t, filepath.Join(wazeroDir(t), "testdata", name, "wasi.wasm"))
}

// lines sorts what a program wrote, as directories have no order.
func lines(out string) []string { return slices.Sorted(strings.Lines(out)) }

// TestWazeroLs is Test_fdReaddir_ls of wazero.
func TestWazeroLs(t *testing.T) {
	const many = 8096
	small, dir := emptyDir(t, "/", false)
	tons, tonsDir := emptyDir(t, "/", false)
	for _, err := range []error{
		os.WriteFile(filepath.Join(small, "-"), nil, 0o400),
		os.Mkdir(filepath.Join(small, "a-"), 0o755),
		os.WriteFile(filepath.Join(small, "ab-"), nil, 0o400),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		if err := os.WriteFile(filepath.Join(tons, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entries := []string{"./-\n", "./a-\n", "./ab-\n"}
	for _, name := range toolchains {
		wasm := wazeroModule(t, name)
		ls := func(d wasi.Dir, args ...string) string {
			_, out := run(t, wasm, &wasi.Process{Args: append([]string{"wasi", "ls"}, args...), Dirs: []wasi.Dir{d}, Ask: allow})
			return out
		}
		var dots []string // only the C program prints them
		if name == "zig-cc" {
			dots = []string{"./.\n", "./..\n"}
		}
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(dots, lines(ls(dir, "./a-"))); diff != "" {
				t.Errorf("an empty directory (-want +got):\n%s", diff)
			}
			if got := ls(dir, "-"); got != "ENOTDIR\n" {
				t.Errorf("not a directory: %q", got)
			}
			once := slices.Sorted(slices.Values(slices.Concat(entries, dots)))
			if diff := cmp.Diff(once, lines(ls(dir, "."))); diff != "" {
				t.Errorf("a directory (-want +got):\n%s", diff)
			}
			if name != "tinygo" { // does not rewind: tinygo's issue 3823
				twice := slices.Sorted(slices.Values(slices.Concat(once, once)))
				if diff := cmp.Diff(twice, lines(ls(dir, ".", "repeat"))); diff != "" {
					t.Errorf("a directory, twice (-want +got):\n%s", diff)
				}
			}
			if got := strings.Count(ls(tonsDir, "."), "\n"); got != many+len(dots) {
				t.Errorf("a large directory has %d entries, want %d", got, many+len(dots))
			}
		})
	}
}

// TestWazeroStat is Test_fdReaddir_stat of wazero.
func TestWazeroStat(t *testing.T) {
	_, dir := emptyDir(t, "/", false)
	for _, name := range toolchains {
		t.Run(name, func(t *testing.T) {
			_, out := run(t, wazeroModule(t, name), &wasi.Process{Args: []string{"wasi", "stat"}, Dirs: []wasi.Dir{dir}, Ask: allow})
			want := "stdin isatty: false\nstdout isatty: false\nstderr isatty: false\n/ isatty: false\n"
			if out != want {
				t.Errorf("%q, want %q", out, want)
			}
		})
	}
}

// TestWazeroPreopen is Test_preopen of wazero.
func TestWazeroPreopen(t *testing.T) {
	_, a := emptyDir(t, "/", false)
	_, b := emptyDir(t, "/tmp", false)
	_, out := run(t, wazeroModule(t, "zig"), &wasi.Process{Args: []string{"wasi", "preopen"}, Dirs: []wasi.Dir{a, b}, Ask: allow})
	if want := "0: stdin\n1: stdout\n2: stderr\n3: /\n4: /tmp\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestWazeroPoll is Test_Poll of wazero.
func TestWazeroPoll(t *testing.T) {
	silent := waiter{nil, make(chan struct{})}
	for name, tt := range map[string]struct {
		args  []string
		stdin io.Reader
		want  string
		least time.Duration
	}{
		"data":              {[]string{"wasi", "poll"}, strings.NewReader("test"), "STDIN\n", 0},
		"data, half second": {[]string{"wasi", "poll", "0", "500"}, strings.NewReader("test"), "STDIN\n", 0},
		"no data":           {[]string{"wasi", "poll", "0", "500"}, silent, "NOINPUT\n", 500 * time.Millisecond},
		"the end":           {[]string{"wasi", "poll", "0", "500"}, strings.NewReader(""), "STDIN\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, out := run(t, wazeroModule(t, "zig-cc"), &wasi.Process{Args: tt.args, Stdin: tt.stdin})
			if took := time.Since(start); out != tt.want || took < tt.least {
				t.Errorf("%q after %v, want %q after at least %v", out, took, tt.want, tt.least)
			}
		})
	}
}

// TestWazeroSleepAndOpen is Test_Sleep and Test_Open of wazero, and its
// nonblocking read of a file.
func TestWazeroSleepAndOpen(t *testing.T) {
	path, dir := emptyDir(t, "/", true)
	if err := os.WriteFile(filepath.Join(path, "text"), []byte("wazero"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sleepmillis", "100"}, {"open-rdonly"}, {"open-wronly"}, {"nonblock", "/text"}} {
		t.Run(args[0], func(t *testing.T) {
			start := time.Now()
			_, out := run(t, wazeroModule(t, "zig-cc"), &wasi.Process{Args: append([]string{"wasi"}, args...), Dirs: []wasi.Dir{dir}, Ask: allow})
			if !strings.HasPrefix(out, "OK\n") && !strings.Contains(out, "\nwazero") {
				t.Errorf("output %q", out)
			}
			if took := time.Since(start); args[0] == "sleepmillis" && took < 100*time.Millisecond {
				t.Errorf("it slept for %v", took)
			}
		})
	}
}

// TestWazeroSock: where wazero accepts on a listener, a guest here gets the error that nothing is a
// socket, and ends.
func TestWazeroSock(t *testing.T) {
	_, dir := emptyDir(t, "/", false)
	_, out := run(t, wazeroModule(t, "zig-cc"), &wasi.Process{Args: []string{"wasi", "sock"}, Dirs: []wasi.Dir{dir}, Ask: allow})
	if !strings.Contains(out, "ERR: accept: Not a socket") {
		t.Errorf("output %q", out)
	}
}

// TestWazeroCat is Test_main and Test_cli of wazero's example.
func TestWazeroCat(t *testing.T) {
	example := filepath.Join(wazeroDir(t), "example", "testdata")
	path, a := emptyDir(t, "/", false)
	if err := os.WriteFile(filepath.Join(path, "test.txt"), readFile(t, filepath.Join(example, "test.txt")), 0o644); err != nil {
		t.Fatal(err)
	}
	b := a
	b.Path = "/testcases"
	for _, name := range toolchains {
		for _, file := range []string{"test.txt", "testcases/test.txt"} {
			if name == "zig" && file != "test.txt" {
				continue // Zig looks below its first directory only, as wazero's test says
			}
			t.Run(name+" "+file, func(t *testing.T) {
				code, out := run(t, readFile(t, filepath.Join(example, name, "cat.wasm")), &wasi.Process{
					Args: []string{"cat", file}, Dirs: []wasi.Dir{a, b}, Ask: allow,
				})
				if code != 0 || out != "greet filesystem\n" {
					t.Errorf("exit %d, output %q", code, out)
				}
			})
		}
	}
}

// TestWazeroSmall runs wazero's hand-written modules.
func TestWazeroSmall(t *testing.T) {
	_, dir := emptyDir(t, "/", false)
	for name, tt := range map[string]struct {
		code uint32
		out  string
	}{
		"exit_on_start":         {2, ""},
		"print_args":            {0, "foo\x00bar\x00"},
		"print_prestat_dirname": {0, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := run(t, readFile(t, filepath.Join(wazeroDir(t), "testdata", name+".wasm")), &wasi.Process{
				Args: []string{"foo", "bar"}, Dirs: []wasi.Dir{dir}, Ask: allow,
			})
			if code != tt.code || out != tt.out {
				t.Errorf("exit %d, output %q, want %d, %q", code, out, tt.code, tt.out)
			}
		})
	}
}
