//go:build unix

package real

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// Two versions of one server, as npm installs them.
const (
	filesystemServer = "node_modules/@modelcontextprotocol/server-filesystem"
	filesystemBefore = "node_modules/server-filesystem-before"
)

// An upgraded is a place whose server files has one version now and another later.
type upgraded struct {
	*e2e.Place
	node, mode string
	gw         *e2e.Process
	wire       *e2e.Wire
}

// testPinnedVersions changes the version of a real server.
func testPinnedVersions(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	for mode, run := range map[string]func(*upgraded){"trust-first": (*upgraded).trustFirst, "strict": (*upgraded).strict} {
		t.Run(mode, func(t *testing.T) {
			u := &upgraded{Place: p.Place(t, ""), node: dir, mode: mode}
			u.Write("docs/a.txt", "the text of a file")
			u.Must("grant", "--yes", "--force", "files__*")
			run(u)
			u.Verify()
		})
	}
}

// trustFirst trusts one version, and has a person look at the other.
func (u *upgraded) trustFirst() {
	before, now := filepath.Join(u.node, filesystemBefore), filepath.Join(u.node, filesystemServer)
	u.serveVersion(before)
	u.callable("read_text_file", "list_directory", "directory_tree")
	if o := u.Run("pin", "diff"); o.Code != 0 {
		u.T.Errorf("diff of what is trusted: exit %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}

	u.serveVersion(now)
	u.callable()
	if e := u.LastDone("files__read_text_file"); e.Code != "refused_pin" || e.Server != "files" {
		u.T.Errorf("recorded %s", e.Raw)
	}
	status := u.Must("status")
	for _, want := range []string{"quarantined: files: ", "files identity (changed)", "files__create_directory (changed)", "wasmgate pin diff files"} {
		e2e.Holds(u.T, status, want)
	}
	o := u.Run("pin", "diff", "files")
	if o.Code != 3 {
		u.T.Errorf("diff: exit %d: %s", o.Code, o.Stderr)
	}
	for _, want := range []string{
		"files identity has changed since it was approved\n", "/args/0\n", `- "` + before, `+ "` + now, "/script\n",
		"files__directory_tree has changed since it was approved\n", "/inputSchema/properties/excludePatterns\n",
		"excludePatterns, array, can now be passed (optional)", "results now have a schema",
	} {
		e2e.Holds(u.T, o.Stdout, want)
	}

	u.Must("pin", "approve", "--yes", "files__read_text_file") // in a pipe, which cannot be asked
	u.callable("read_text_file")
	e2e.Holds(u.T, u.Must("pin", "approve", "--yes", "files"), "definitions approved, in "+u.File("wasmgate.lock"))
	u.callable("read_text_file", "list_directory", "directory_tree")
	if o := u.Run("pin", "diff"); o.Code != 0 {
		u.T.Errorf("diff of what is approved: exit %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	u.locked(1)

	u.serveVersion(before) // from now on only the lockfile says what is approved
	u.callable()
	u.Must("pin", "approve", "--yes", "files")
	for _, version := range []string{before, now} { // both are approved
		u.serveVersion(version)
		u.callable("read_text_file", "list_directory", "directory_tree")
	}
	u.locked(2)
}

// strict approves of what is new, and then of a version that took the place of the
// other: the configuration is as it was.
func (u *upgraded) strict() {
	u.install(filesystemBefore)
	u.serveVersion(u.File("server"))
	u.callable()
	o := u.Run("pin", "diff", "files__read_text_file")
	if o.Code != 3 {
		u.T.Errorf("diff: exit %d: %s", o.Code, o.Stderr)
	}
	e2e.Holds(u.T, o.Stdout, "files__read_text_file is new\n")
	u.Must("pin", "approve", "--yes", "files__read_text_file")
	u.callable("read_text_file")
	u.Must("pin", "approve", "--all", "--yes")
	u.callable("read_text_file", "list_directory", "directory_tree")
	u.locked(1)

	u.install(filesystemServer)
	u.serveVersion(u.File("server"))
	u.callable()
	o = u.Run("pin", "diff", "files")
	if o.Code != 3 || strings.Contains(o.Stdout, "/args") {
		u.T.Errorf("diff: exit %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	e2e.Holds(u.T, o.Stdout, "  /script\n")
	u.Must("pin", "approve", "--yes", "files")
	u.callable("read_text_file", "list_directory", "directory_tree")
	u.locked(2)
}

// install makes a version of the server the installed one.
func (u *upgraded) install(version string) {
	u.T.Helper()
	if err := os.Remove(u.File("server")); err != nil && !os.IsNotExist(err) {
		u.T.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(u.node, version), u.File("server")); err != nil {
		u.T.Fatal(err)
	}
}

// serveVersion starts the gateway again, with the version in a folder.
func (u *upgraded) serveVersion(folder string) {
	u.T.Helper()
	if u.gw != nil {
		u.gw.Signal(os.Interrupt)
		u.gw.Wait()
	}
	u.Write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\npins: {mode: %s}\nservers:\n  files: {command: node, args: [%q, %q]}\n",
		u.mode, filepath.Join(folder, "dist/index.js"), u.File("docs")))
	u.gw = u.Serve()
	u.wire = e2e.MustWire(u.T, u.gw.URL)
}

// callable checks that these tools are offered and answer, and that the others are
// not offered and refused.
func (u *upgraded) callable(want ...string) {
	u.T.Helper()
	offered := u.Must("tools")
	for tool, call := range map[string]struct{ file, has string }{
		"read_text_file": {"docs/a.txt", "the text of a file"},
		"list_directory": {"docs", "[FILE] a.txt"},
		"directory_tree": {"docs", "a.txt"},
	} {
		name := "files__" + tool
		a := u.wire.MustCall(u.T, name, fmt.Sprintf(`{"path":%q}`, u.File(call.file)))
		if ok := slices.Contains(want, tool); strings.Contains(offered, name) != ok {
			u.T.Errorf("%s is offered: %t", name, !ok)
		} else if refused := e2e.Code(a) == "refused_pin"; refused == ok || strings.Contains(string(a.Result), call.has) != ok {
			u.T.Errorf("%s is called: %s %+v", name, a.Result, a.Error)
		}
	}
	if len(want) == 0 && strings.Contains(offered, "files__") {
		u.T.Errorf("offered before anybody approved:\n%s", offered)
	}
}

var digestLine = regexp.MustCompile(`^  sha256:[0-9a-f]{64}( [A-Za-z_]+:[0-9a-f]{16})*$`)

// locked checks the lockfile: a block for each tool, in order, one digest a line,
// and as many digests of what the server is as it had versions.
func (u *upgraded) locked(versions int) {
	u.T.Helper()
	b, err := os.ReadFile(u.File("wasmgate.lock"))
	if err != nil {
		u.T.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n\n")
	if !strings.HasSuffix(blocks[0], "\nwasmgate-lock 1") || len(blocks) < 2 {
		u.T.Fatalf("lockfile:\n%s", b)
	}
	var names []string
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		names = append(names, lines[0])
		if len(lines) < 2 || slices.ContainsFunc(lines[1:], func(s string) bool { return !digestLine.MatchString(s) }) {
			u.T.Errorf("no block of digests: %q", block)
		}
		if lines[0] == "identity files" && len(lines) != 1+versions {
			u.T.Errorf("%d digests of what the server is, want %d", len(lines)-1, versions)
		}
	}
	want := []string{"identity files"}
	for _, word := range strings.Fields(u.Must("tools")) {
		if tool, ok := strings.CutPrefix(word, "files__"); ok {
			want = append(want, "tool files "+tool)
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) || len(names) < 10 {
		u.T.Errorf("blocks %q, want %q", names, want)
	}
}
