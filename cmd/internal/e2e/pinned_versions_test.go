//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Two versions of one server, as npm installs them.
const (
	filesystemServer = "node_modules/@modelcontextprotocol/server-filesystem"
	filesystemBefore = "node_modules/server-filesystem-before"
)

// An upgraded is a place whose server files has one version now and another later.
type upgraded struct {
	*place
	node, mode string
	gw         *process
	wire       *wire
}

// testPinnedVersions changes the version of a real server.
func testPinnedVersions(t *testing.T, p *program) {
	dir := node(t)
	for mode, run := range map[string]func(*upgraded){"trust-first": (*upgraded).trustFirst, "strict": (*upgraded).strict} {
		t.Run(mode, func(t *testing.T) {
			u := &upgraded{place: p.place(t, ""), node: dir, mode: mode}
			u.write("docs/a.txt", "the text of a file")
			u.must("grant", "--yes", "files__*")
			run(u)
			u.verify()
		})
	}
}

// trustFirst trusts one version, and has a person look at the other.
func (u *upgraded) trustFirst() {
	before, now := filepath.Join(u.node, filesystemBefore), filepath.Join(u.node, filesystemServer)
	u.serveVersion(before)
	u.callable("read_text_file", "list_directory", "directory_tree")
	if o := u.run("pin", "diff"); o.code != 0 {
		u.t.Errorf("diff of what is trusted: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}

	u.serveVersion(now)
	u.callable()
	if e := u.lastDone("files__read_text_file"); e.Code != "refused_pin" || e.Server != "files" {
		u.t.Errorf("recorded %s", e.Raw)
	}
	status := u.must("status")
	for _, want := range []string{"quarantined: files: ", "files identity (changed)", "files__create_directory (changed)", "wasmgate pin diff files"} {
		holds(u.t, status, want)
	}
	o := u.run("pin", "diff", "files")
	if o.code != 3 {
		u.t.Errorf("diff: exit %d: %s", o.code, o.stderr)
	}
	for _, want := range []string{
		"files identity has changed since it was approved\n", "/args/0\n", `- "` + before, `+ "` + now, "/script\n",
		"files__directory_tree has changed since it was approved\n", "/inputSchema/properties/excludePatterns\n",
		"excludePatterns, array, can now be passed (optional)", "results now have a schema",
	} {
		holds(u.t, o.stdout, want)
	}

	u.must("pin", "approve", "--yes", "files__read_text_file") // in a pipe, which cannot be asked
	u.callable("read_text_file")
	holds(u.t, u.must("pin", "approve", "--yes", "files"), "definitions approved, in "+u.file("wasmgate.lock"))
	u.callable("read_text_file", "list_directory", "directory_tree")
	if o := u.run("pin", "diff"); o.code != 0 {
		u.t.Errorf("diff of what is approved: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	u.locked(1)

	u.serveVersion(before) // from now on the lockfile alone says what is approved
	u.callable()
	u.must("pin", "approve", "--yes", "files")
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
	u.serveVersion(u.file("server"))
	u.callable()
	o := u.run("pin", "diff", "files__read_text_file")
	if o.code != 3 {
		u.t.Errorf("diff: exit %d: %s", o.code, o.stderr)
	}
	holds(u.t, o.stdout, "files__read_text_file is new\n")
	u.must("pin", "approve", "--yes", "files__read_text_file")
	u.callable("read_text_file")
	u.must("pin", "approve", "--all", "--yes")
	u.callable("read_text_file", "list_directory", "directory_tree")
	u.locked(1)

	u.install(filesystemServer)
	u.serveVersion(u.file("server"))
	u.callable()
	o = u.run("pin", "diff", "files")
	if o.code != 3 || strings.Contains(o.stdout, "/args") {
		u.t.Errorf("diff: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	holds(u.t, o.stdout, "  /script\n")
	u.must("pin", "approve", "--yes", "files")
	u.callable("read_text_file", "list_directory", "directory_tree")
	u.locked(2)
}

// install makes a version of the server the one that stands in the place.
func (u *upgraded) install(version string) {
	u.t.Helper()
	if err := os.Remove(u.file("server")); err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(u.node, version), u.file("server")); err != nil {
		u.t.Fatal(err)
	}
}

// serveVersion starts the gateway again, with the version in a folder.
func (u *upgraded) serveVersion(folder string) {
	u.t.Helper()
	if u.gw != nil {
		u.gw.signal(os.Interrupt)
		u.gw.wait()
	}
	u.write("wasmgate.yaml", fmt.Sprintf("version: 1\npolicy: {timeout: 5s}\npins: {mode: %s}\nservers:\n  files: {command: node, args: [%q, %q]}\n",
		u.mode, filepath.Join(folder, "dist/index.js"), u.file("docs")))
	u.gw = u.serve()
	u.ready()
	u.wire = mustWire(u.t, u.gw.url)
}

// callable checks that these tools are offered and answer, and that the others are
// not offered and refused.
func (u *upgraded) callable(want ...string) {
	u.t.Helper()
	offered := u.must("tools")
	for tool, call := range map[string]struct{ file, has string }{
		"read_text_file": {"docs/a.txt", "the text of a file"},
		"list_directory": {"docs", "[FILE] a.txt"},
		"directory_tree": {"docs", "a.txt"},
	} {
		name := "files__" + tool
		a := u.wire.mustCall(u.t, name, fmt.Sprintf(`{"path":%q}`, u.file(call.file)))
		if ok := slices.Contains(want, tool); strings.Contains(offered, name) != ok {
			u.t.Errorf("%s is offered: %t", name, !ok)
		} else if refused := code(a) == "refused_pin"; refused == ok || strings.Contains(string(a.Result), call.has) != ok {
			u.t.Errorf("%s is called: %s %+v", name, a.Result, a.Error)
		}
	}
	if len(want) == 0 && strings.Contains(offered, "files__") {
		u.t.Errorf("offered before anybody approved:\n%s", offered)
	}
}

var digestLine = regexp.MustCompile(`^  sha256:[0-9a-f]{64}( [A-Za-z_]+:[0-9a-f]{16})*$`)

// locked checks the lockfile: a block for each tool, in order, one digest a line,
// and as many digests of what the server is as it had versions.
func (u *upgraded) locked(versions int) {
	u.t.Helper()
	b, err := os.ReadFile(u.file("wasmgate.lock"))
	if err != nil {
		u.t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n\n")
	if !strings.HasSuffix(blocks[0], "\nwasmgate-lock 1") || len(blocks) < 2 {
		u.t.Fatalf("lockfile:\n%s", b)
	}
	var names []string
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		names = append(names, lines[0])
		if len(lines) < 2 || slices.ContainsFunc(lines[1:], func(s string) bool { return !digestLine.MatchString(s) }) {
			u.t.Errorf("no block of digests: %q", block)
		}
		if lines[0] == "identity files" && len(lines) != 1+versions {
			u.t.Errorf("%d digests of what the server is, want %d", len(lines)-1, versions)
		}
	}
	want := []string{"identity files"}
	for _, word := range strings.Fields(u.must("tools")) {
		if tool, ok := strings.CutPrefix(word, "files__"); ok {
			want = append(want, "tool files "+tool)
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) || len(names) < 10 {
		u.t.Errorf("blocks %q, want %q", names, want)
	}
}
