package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// NodePackages are the servers, clients and parsers of .ci/node, in the versions of its lock file.
const NodePackages = "node_packages"

// AppPackages are the servers with apps of .ci/apps, in the versions of its lock file.
const AppPackages = "app_packages"

// trials are shell scripts that use a program, in a folder of their own. A program that is not
// listed is asked for its version.
var trials = map[string]string{
	"cc":     `echo 'int main(void) { return 0; }' >a.c && cc -o a a.c && ./a`,
	"clang":  `printf '#include <stdio.h>\nint main(void) { return puts(""); }\n' >a.c && clang --target=wasm32-wasi -o a.wasm a.c`,
	"rustc":  `echo 'fn main() {}' >a.rs && for target in wasm32-wasip1 wasm32-wasi; do rustc --target $target a.rs && exit; done; exit 1`,
	"zig":    `echo 'pub fn main() void {}' >a.zig && zig build-exe -target wasm32-wasi a.zig`,
	"node":   `node -e 'if (parseInt(process.versions.node) < 20) throw "node is older than 20"'`,
	"setsid": `setsid true`,
	// The library of gitleaks, which only tests use: a module of its own that is fetched first.
	"gitleaks": `go build -C "$ROOT/secrets/gitleaks" -o /dev/null .`,
	"sh":       `true`,
	"chromium": `chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD" --dump-dom 'data:text/html,<p>works' >page
		grep -q works page`,
	"dbus-send":        `command -v dbus-send`, // a use of it needs a bus
	"dbus-run-session": `dbus-run-session -- dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames`,
	NodePackages:       installed(".ci/node"),
	AppPackages:        installed(".ci/apps"),
}

// installed returns a script that compares the packages of a folder with its lock file.
func installed(folder string) string {
	return `node -e '
		const folder = process.env.ROOT + "/` + folder + `/", lock = require(folder + "package-lock.json")
		for (const [dir, { optional, version }] of Object.entries(lock.packages)) {
			let installed
			try { installed = require(folder + dir + "/package.json").version } catch {}
			if (dir && !optional && installed !== version)
				throw dir + " " + version + " is not installed: npm ci --prefix ` + folder + ` --ignore-scripts"
		}'`
}

// Need skips t unless all programs work.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	if program, err := missing(os.Getenv("PATH"), programs); err != nil {
		require(t, program, err)
		t.Skipf("%s does not work: %v", program, err)
	}
}

// NeedPath returns the PATH with which all programs work: that of the environment or, because a
// distribution's program can work where another one hides it, the same with /usr/bin first. It
// skips t if they work with neither.
func NeedPath(t testing.TB, programs ...string) string {
	t.Helper()
	path := os.Getenv("PATH")
	if other := "/usr/bin" + string(os.PathListSeparator) + path; !works(path, programs) && works(other, programs) {
		return other
	}
	Need(t, programs...)
	return path
}

// Works reports whether all programs work. Like [Need] it fails t if one is required and does not.
func Works(t testing.TB, programs ...string) bool {
	t.Helper()
	program, err := missing(os.Getenv("PATH"), programs)
	if err != nil {
		require(t, program, err)
	}
	return err == nil
}

func require(t testing.TB, program string, err error) {
	t.Helper()
	if slices.Contains(strings.Fields(os.Getenv("WASMGATE_REQUIRE")), program) {
		t.Fatalf("WASMGATE_REQUIRE lists %s, which does not work: %v", program, err)
	}
}

func works(path string, programs []string) bool {
	_, err := missing(path, programs)
	return err == nil
}

// missing returns the first program that does not work, and why.
func missing(path string, programs []string) (string, error) {
	for _, p := range programs {
		if err := try(path, p); err != nil {
			return p, err
		}
	}
	return "", nil
}

var tried sync.Map // func() error by PATH and program

func try(path, program string) error {
	once, _ := tried.LoadOrStore([2]string{path, program}, sync.OnceValue(func() error { return use(path, program) }))
	return once.(func() error)()
}

func use(path, program string) error {
	script, ok := trials[program]
	if !ok {
		script = program + " --version"
	}
	dir, err := os.MkdirTemp("", "toolchain")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", script)
	c.Dir, c.Env, c.WaitDelay = dir, append(os.Environ(), "PATH="+path, "ROOT="+Root()), time.Minute
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %.1000s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Root returns the folder of the module in which the test runs.
func Root() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "conformance")); err == nil {
			return dir
		}
	}
	panic("the test does not run in the folder of the module")
}
