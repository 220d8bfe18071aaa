package files_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox/tools/files"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// A tree lays out files below a new directory: a name that ends in a slash is
// a directory, " -> " makes a symbolic link, and DIR in a content or a link is
// the directory itself.
type tree map[string]string

func (tr tree) make(t *testing.T) string {
	t.Helper()
	// macOS: its directory for temporary files lies behind a link
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range tr {
		name, link, isLink := strings.Cut(name, " -> ")
		file := filepath.Join(dir, name)
		content = strings.ReplaceAll(content, "DIR", dir)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case isLink:
			err = os.Symlink(strings.ReplaceAll(link, "DIR", dir), file)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(file, 0o755)
		default:
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns the union of two trees.
func (tr tree) with(other tree) tree {
	both := maps.Clone(tr)
	maps.Copy(both, other)
	return both
}

// linked is a main repository with one worktree.
func linked(main, worktree string) tree {
	return tree{
		main + "/.git/HEAD":                  "ref: refs/heads/trunk\n",
		main + "/.git/worktrees/w/HEAD":      "ref: refs/heads/topic/a\n",
		main + "/.git/worktrees/w/gitdir":    "DIR/" + worktree + "/.git\n",
		main + "/.git/worktrees/w/commondir": "../..\n",
		worktree + "/.git":                   "gitdir: DIR/" + main + "/.git/worktrees/w\n",
	}
}

// scan calls the tool, with DIR in the arguments standing for dir, and
// returns its output in the same way, or its error's text after "error: ".
func scan(t *testing.T, dir, args string) string {
	t.Helper()
	out, err := files.Module().Call("repo_scan", []byte(strings.ReplaceAll(args, "DIR", dir)))
	if err != nil {
		return "error: " + err.Error()
	}
	if !json.Valid(out) {
		t.Errorf("output is not JSON: %s", out)
	}
	return strings.ReplaceAll(string(out), dir, "DIR")
}

// brief returns the repositories as lines, and what else is not empty.
func brief(t *testing.T, out string) string {
	t.Helper()
	var r struct {
		Repositories []struct{ Path, Kind, Reachable, Main, Branch, Commit string }
		Errors       []struct{ Root, Error string }
		Unreadable   int
		Truncated    bool
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var lines []string
	for _, f := range r.Repositories {
		lines = append(lines, strings.Join(strings.Fields(strings.Join([]string{f.Path, f.Kind, f.Branch, f.Commit, strings.TrimPrefix(f.Reachable, "yes")}, " ")), " "))
	}
	for _, e := range r.Errors {
		lines = append(lines, e.Root+": "+e.Error)
	}
	if r.Unreadable > 0 {
		lines = append(lines, fmt.Sprintf("%d unreadable", r.Unreadable))
	}
	if r.Truncated {
		lines = append(lines, "truncated")
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "DIR/", "")
}

func TestRepoScan(t *testing.T) {
	head := "ref: refs/heads/main\n"
	tests := map[string]struct {
		tree tree
		args string // without roots, the tree is the root
		want string
	}{
		"repositories, sorted":                            {tree{"b/.git/HEAD": head, "a/c/.git/HEAD": "ref: refs/heads/x/y\n"}, ``, "a/c main x/y\nb main main"},
		"a detached HEAD":                                 {tree{"a/.git/HEAD": commit + "\n"}, ``, "a main " + commit},
		"a detached HEAD of SHA-256":                      {tree{"a/.git/HEAD": commit + commit[:24]}, ``, "a main " + commit + commit[:24]},
		"a ref that is no branch":                         {tree{"a/.git/HEAD": "ref: refs/remotes/o/m\n"}, ``, "a main refs/remotes/o/m"},
		"refs in a reftable":                              {tree{"a/.git/HEAD": "ref: refs/heads/.invalid\n"}, ``, "a main"},
		"the root itself":                                 {tree{".git/HEAD": head}, ``, "DIR main main"},
		"nothing":                                         {tree{"a/b/": ""}, ``, ""},
		"a .git without HEAD is none":                     {tree{"a/.git/": "", "a/b/.git/HEAD": head}, ``, "a/b main main"},
		"a .git that is a link is none":                   {tree{"x/HEAD": head, "a/.git -> DIR/x": ""}, ``, ""},
		"what lies in a repository is not searched":       {tree{"a/.git/HEAD": head, "a/b/.git/HEAD": head, "a/.git/modules/c/.git/HEAD": head}, ``, "a main main"},
		"but may be named as a root":                      {tree{"a/.git/HEAD": head, "a/b/.git/HEAD": head}, `"roots":["DIR/a/b","DIR"]`, "a main main\na/b main main"},
		"bare repositories are not reported":              {tree{"a.git/HEAD": head, "a.git/objects/": "", "a.git/refs/": ""}, ``, ""},
		"dot-folders and node_modules are not searched":   {tree{".x/a/.git/HEAD": head, "node_modules/b/.git/HEAD": head, "c/node_modules/.git/HEAD": head}, ``, ""},
		"but may be roots":                                {tree{".x/a/.git/HEAD": head, "node_modules/b/.git/HEAD": head}, `"roots":["DIR/.x","DIR/node_modules"]`, ".x/a main main\nnode_modules/b main main"},
		"links are not followed":                          {tree{"x/a/.git/HEAD": head, "y/b -> DIR/x/a": "", "y/c -> DIR/y": ""}, `"roots":["DIR/y"]`, ""},
		"a worktree found and named is listed once":       {linked("m", "w"), ``, "m main trunk\nw worktree topic/a"},
		"a worktree in a dot-folder is found by its name": {linked("m", "m/.trees/w"), ``, "m main trunk\nm/.trees/w worktree topic/a"},
		"a worktree under another root":                   {linked("a/m", "b/w"), `"roots":["DIR/b","DIR/a"]`, "a/m main trunk\nb/w worktree topic/a"},
		"a worktree outside of the roots":                 {linked("a/m", "b/w"), `"roots":["DIR/a"]`, "a/m main trunk\nb/w worktree topic/a unknown"},
		"a name that begins like a root's is outside":     {linked("a/m", "ab/w"), `"roots":["DIR/a"]`, "a/m main trunk\nab/w worktree topic/a unknown"},
		"a worktree behind a link":                        {linked("a/m", "b/w").with(tree{"a/m/.git/worktrees/w/gitdir": "DIR/a/l/w/.git", "a/l -> DIR/b": ""}), `"roots":["DIR/a"]`, "a/l/w worktree topic/a unknown\na/m main trunk"},
		"from a worktree one does not get to its main":    {linked("a/m", "b/w").with(tree{"a/m/.git/worktrees/v/gitdir": "DIR/c/v/.git", "c/v/.git": "gitdir: DIR/a/m/.git/worktrees/v"}), `"roots":["DIR/b"]`, "b/w worktree"},
		"a worktree that is gone":                         {linked("m", "w").with(tree{"m/.git/worktrees/v/gitdir": "DIR/v/.git", "m/.git/worktrees/v/HEAD": head}), ``, "m main trunk\nw worktree topic/a"},
		"a worktree whose main is gone":                   {tree{"w/.git": "gitdir: DIR/m/.git/worktrees/w"}, ``, ""},
		"a worktree's place taken by a repository":        {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "DIR/w/.git", "w/.git/HEAD": head}, ``, "m main main\nw main main"},
		"the same where nobody searches":                  {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "DIR/.x/.git", ".x/.git/HEAD": head}, ``, "m main main"},
		"relative paths, as git 2.48 can write them":      {linked("m", "w").with(tree{"w/.git": "gitdir: ../m/.git/worktrees/w\n", "m/.git/worktrees/w/gitdir": "../../../../w/.git\n"}), ``, "m main trunk\nw worktree topic/a"},
		"relative paths that lead outside":                {linked("a/m", "b/w").with(tree{"a/m/.git/worktrees/w/gitdir": "../../../../../b/w/.git\n"}), `"roots":["DIR/a"]`, "a/m main trunk\nb/w worktree topic/a unknown"},
		"a submodule as a root":                           {tree{"m/.git/modules/s/HEAD": head, "m/s/.git": "gitdir: ../.git/modules/s\n"}, `"roots":["DIR/m/s"]`, "m/s separate"},
		"a separate git directory":                        {tree{"g/HEAD": head, "s/.git": "gitdir: DIR/g\n"}, ``, "s separate main"},

		"worktrees that name each other":        {tree{"a/.git": "gitdir: DIR/b", "b/.git": "gitdir: DIR/a"}, ``, ""},
		"a worktree that names itself":          {tree{"a/.git": "gitdir: DIR/a/.git"}, ``, ""},
		"a main that names itself":              {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "DIR/m/.git"}, ``, "m main main"},
		"two mains that name one worktree":      {linked("m", "w").with(tree{"n/.git/HEAD": head, "n/.git/worktrees/w/gitdir": "DIR/w/.git"}), ``, "m main trunk\nn main main\nw worktree topic/a"},
		"a .git file that is too long":          {tree{"a/.git": "gitdir: /x" + strings.Repeat("\n", 5000)}, ``, ""},
		"a path that is too long":               {tree{"a/.git": "gitdir: /" + strings.Repeat("x", 2000)}, ``, ""},
		"a .git file with a NUL":                {tree{"a/.git": "gitdir: /x\x00y"}, ``, ""},
		"a .git file with two lines":            {tree{"a/.git": "gitdir: /x\ngitdir: /y"}, ``, ""},
		"a .git file that is not UTF-8":         {tree{"a/.git": "gitdir: /x\xff"}, ``, ""},
		"an empty .git file":                    {tree{"a/.git": ""}, ``, ""},
		"a .git file that names nothing":        {tree{"a/.git": "gitdir: \n"}, ``, ""},
		"a .git file that names a file":         {tree{"a/.git": "gitdir: DIR/f/g", "f": ""}, ``, ""},
		"a gitdir that is too long":             {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "/" + strings.Repeat("x/", 3000) + ".git"}, ``, "m main main"},
		"a gitdir with a NUL":                   {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "/x\x00/.git"}, ``, "m main main"},
		"a gitdir that names no .git":           {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir": "/etc/passwd"}, ``, "m main main"},
		"a gitdir that is a directory":          {tree{"m/.git/HEAD": head, "m/.git/worktrees/w/gitdir/": ""}, ``, "m main main"},
		"a gitdir that is a link":               {tree{"m/.git/HEAD": head, "x": "/x/.git", "m/.git/worktrees/w/gitdir -> DIR/x": ""}, ``, "m main main"},
		"worktrees that is a link":              {tree{"m/.git/HEAD": head, "x/w/gitdir": "/x/.git", "m/.git/worktrees -> DIR/x": ""}, ``, "m main main"},
		"a worktree's HEAD read through a link": {tree{"w/.git": "gitdir: DIR/l/worktrees/g", "x/worktrees/g/HEAD": head, "l -> DIR/x": ""}, ``, "w worktree"},
		"a HEAD that is too long":               {tree{"a/.git/HEAD": head + strings.Repeat("\n", 5000)}, ``, "a main"},
		"a HEAD with an escape":                 {tree{"a/.git/HEAD": "ref: refs/heads/\x1b[31m"}, ``, "a main"},
		"a HEAD that is neither":                {tree{"a/.git/HEAD": "0123"}, ``, "a main"},

		"a depth of 0 is the root alone":           {tree{"a/.git/HEAD": head}, `"max_depth":0`, "truncated"},
		"a depth of 1":                             {tree{"a/.git/HEAD": head, "b/c/.git/HEAD": head}, `"max_depth":1`, "a main main\ntruncated"},
		"a depth that is enough":                   {tree{"a/.git/HEAD": head, "b/c/.git/HEAD": head}, `"max_depth":2`, "a main main\nb/c main main"},
		"a limit cuts the deepest":                 {tree{"a/b/.git/HEAD": head, "c/.git/HEAD": head}, `"limit":1`, "c main main\ntruncated"},
		"a limit that is enough":                   {tree{"a/b/.git/HEAD": head, "c/.git/HEAD": head}, `"limit":2`, "a/b main main\nc main main"},
		"a limit cuts worktrees as well":           {linked("m", "w/x/y"), `"limit":1`, "m main trunk\ntruncated"},
		"a root that is not there, others go on":   {tree{"a/.git/HEAD": head}, `"roots":["DIR/x","DIR/a"]`, "a main main\nx: it does not exist"},
		"a root that is a file":                    {tree{"a": ""}, `"roots":["DIR/a"]`, "a: it is not a directory"},
		"a root that is a link":                    {tree{"a/": "", "b -> DIR/a": ""}, `"roots":["DIR/b"]`, "b: it is a symbolic link; name the directory that it leads to"},
		"a root named in several ways is one root": {tree{"a/.git/HEAD": head}, `"roots":["DIR/a/","DIR/a","DIR//a/../a"]`, "a main main"},
		"a root in a root":                         {tree{"a/b/.git/HEAD": head}, `"roots":["DIR/a","DIR/a/b","DIR"]`, "a/b main main"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args := tt.args
			if !strings.HasPrefix(args, `"roots"`) {
				args = strings.TrimSuffix(`"roots":["DIR"],`+args, ",")
			}
			if got := brief(t, scan(t, tt.tree.make(t), "{"+args+"}")); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestRepoScanOutput shows whole outputs and the errors of wrong arguments.
func TestRepoScanOutput(t *testing.T) {
	tests := map[string]struct {
		tree       tree
		args, want string
	}{
		"a worktree with its main": {linked("m", "w"), `{"roots":["DIR"]}`, `{"repositories":[{"path":"DIR/m","kind":"main","reachable":"yes","branch":"trunk"},` +
			`{"path":"DIR/w","kind":"worktree","reachable":"yes","main":"DIR/m","branch":"topic/a"}],"errors":[],"unreadable":0,"truncated":false}`},
		"a worktree outside, linked to a bare repository": {tree{"w/.git": "gitdir: /srv/x.git/worktrees/w"}, `{"roots":["DIR"]}`,
			`{"repositories":[{"path":"DIR/w","kind":"worktree","reachable":"yes","main":"/srv/x.git"}],"errors":[],"unreadable":0,"truncated":false}`},
		"lists are never null":             {tree{}, `{"roots":["DIR/x"]}`, `{"repositories":[],"errors":[{"root":"DIR/x","error":"it does not exist"}],"unreadable":0,"truncated":false}`},
		"no roots are all that is granted": {tree{}, `{}`, `error: no directory is granted to this tool; the gateway's operator grants directories`},
		"an empty list is no default":      {tree{}, `{"roots":[]}`, `error: argument roots: 0 directories are named; 1 to 16 can be`},
		"seventeen roots are too many":     {tree{}, `{"roots":["/a"` + strings.Repeat(`,"/a"`, 16) + `]}`, `error: argument roots: 17 directories are named; 1 to 16 can be`},
		"a relative root is named":         {tree{}, `{"roots":["/a","b"]}`, `error: argument roots: "b" is no absolute path of at most 1024 bytes`},
		"an empty root is named":           {tree{}, `{"roots":[""]}`, `error: argument roots: "" is no absolute path of at most 1024 bytes`},
		"a root with a NUL is named":       {tree{}, `{"roots":["/a\u0000b"]}`, `error: argument roots: "/a\x00b" is no absolute path of at most 1024 bytes`},
		"a depth out of range is named":    {tree{}, `{"roots":["/"],"max_depth":33}`, `error: argument max_depth: 33 is not between 0 and 32`},
		"a limit out of range is named":    {tree{}, `{"roots":["/"],"limit":0}`, `error: argument limit: 0 is not between 1 and 1000`},
		"an unknown argument is an error":  {tree{}, `{"root":"/"}`, `error: arguments: unknown field "root"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := scan(t, tt.tree.make(t), tt.args); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestRepoScanGranted: without roots all that is granted is searched; what files name is looked at
// in granted directories, and in no others.
func TestRepoScanGranted(t *testing.T) {
	dir := linked("a/m", "b/w").with(tree{
		"a/m/.git/worktrees/gone/gitdir": "DIR/b/gone/.git", "a/nowhere/.git": "gitdir: DIR/b/nowhere", "c/x/.git/HEAD": "ref: refs/heads/main\n", "a/m/.git/worktrees/far/gitdir": "DIR/c/far/.git",
	}).make(t)
	files.Grant(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	const all = "a/m main trunk\nb/w worktree topic/a\nc/far worktree unknown"
	for name, args := range map[string]string{"none": `{}`, "one": `{"roots":["DIR/a"]}`} {
		if got := brief(t, scan(t, dir, args)); got != all {
			t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, all)
		}
	}
}

// TestRepoScanOfGit scans what git itself has laid out.
func TestRepoScanOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("there is no git to lay out repositories: %v", err)
	}
	dir := tree{"in/": "", "out/": ""}.make(t)
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "in/m")
	git("-C", "in/m", "symbolic-ref", "HEAD", "refs/heads/trunk")
	git("-C", "in/m", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first")
	id := git("-C", "in/m", "rev-parse", "HEAD")
	for name, args := range map[string][]string{"in/.x/hidden": {"-b", "hidden"}, "in/m/inner": {"-b", "inner"}, "out/w": {"-b", "topic/w"}, "in/loose": {"--detach"}, "in/gone": {"-b", "gone"}} {
		git(append([]string{"-C", "in/m", "worktree", "add", "-q", filepath.Join(dir, name)}, args...)...)
	}
	if err := os.RemoveAll(filepath.Join(dir, "in/gone")); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "--bare", "in/bare.git")
	git("init", "-q", "--separate-git-dir", "in/elsewhere", "in/separate")
	git("-C", "in/separate", "symbolic-ref", "HEAD", "refs/heads/s")

	want := strings.Join([]string{
		"in/.x/hidden worktree hidden", "in/loose worktree " + id, "in/m main trunk", "in/m/inner worktree inner",
		"in/separate separate s", "out/w worktree topic/w unknown",
	}, "\n")
	if got := brief(t, scan(t, dir, `{"roots":["DIR/in"]}`)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got, want := brief(t, scan(t, dir, `{"roots":["DIR/out"]}`)), "out/w worktree"; got != want {
		t.Errorf("from the worktree alone: got:\n%s\nwant:\n%s", got, want)
	}
}

// TestRepoScanOfMany lays out more than the bounds of one call.
func TestRepoScanOfMany(t *testing.T) {
	const head = "ref: refs/heads/main\n"
	worktrees := tree{"m/.git/HEAD": head, "z/.git/HEAD": head}
	for i := range 1100 {
		worktrees[fmt.Sprintf("m/.git/worktrees/%04d/gitdir", i)] = fmt.Sprintf("/srv/%04d/.git\n", i)
	}
	folders := tree{"a/b/.git/HEAD": head}
	for i := range 10_100 {
		folders[fmt.Sprintf("x/%05d/", i)] = ""
	}
	deep := tree{}
	deep[strings.Repeat("d/", 40)+".git/HEAD"] = head
	long := tree{}
	long[strings.Repeat(strings.Repeat("l", 200)+"/", 6)+".git/HEAD"] = head
	tests := map[string]struct {
		tree      tree
		args      string
		count     int
		first     string
		truncated bool
	}{
		"worktrees, to the default limit":     {worktrees, `{"roots":["DIR"]}`, 200, "/srv/0000", true},
		"worktrees, to the highest limit":     {worktrees, `{"roots":["DIR"],"limit":1000}`, 1000, "/srv/0000", true},
		"directories, those on top first":     {folders, `{"roots":["DIR"]}`, 1, "DIR/a/b", true},
		"a repository deeper than any search": {deep, `{"roots":["DIR"],"max_depth":32}`, 0, "", true},
		"a repository below a very long path": {long, `{"roots":["DIR"]}`, 0, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := tt.tree.make(t)
			out := scan(t, dir, tt.args)
			var got struct {
				Repositories []struct{ Path string }
				Truncated    bool
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			first := ""
			if len(got.Repositories) > 0 {
				first = got.Repositories[0].Path
			}
			if len(got.Repositories) != tt.count || first != tt.first || got.Truncated != tt.truncated {
				t.Errorf("%d found, the first %q, truncated %v; want %d, %q, %v", len(got.Repositories), first, got.Truncated, tt.count, tt.first, tt.truncated)
			}
			if again := scan(t, dir, tt.args); again != out {
				t.Error("the same scan has another result")
			}
		})
	}
}

func TestRepoScanOfUnreadableDirectories(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every directory")
	}
	dir := tree{"a/.git/HEAD": "ref: refs/heads/main", "b/c/": "", "d/e/": ""}.make(t)
	for _, name := range []string{"b", "d/e"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, name), 0o755) })
	}
	if got, want := brief(t, scan(t, dir, `{"roots":["DIR/a","DIR/b","DIR/d"]}`)), "a main main\nb: it may not be read\n1 unreadable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzRepoScan puts foreign bytes into the files that the tool reads.
func FuzzRepoScan(f *testing.F) {
	f.Add("gitdir: ../m/.git/worktrees/w\n", "ref: refs/heads/a\n", "../../../../w/.git\n")
	f.Add("gitdir: /x\x00", commit, "/x/.git")
	f.Add("gitdir: .", "ref:  ", "/.git\r\n")
	f.Fuzz(func(t *testing.T, gitFile, head, gitdir string) {
		layout := tree{"w/.git": gitFile, "m/.git/HEAD": head, "m/.git/worktrees/w/HEAD": head, "m/.git/worktrees/w/gitdir": gitdir}
		dir := layout.make(t)
		out := scan(t, dir, `{"roots":["DIR"]}`)
		var got struct {
			Repositories []struct{ Path, Kind, Reachable, Branch string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, r := range got.Repositories {
			if below := strings.HasPrefix(r.Path+"/", "DIR/"); below != (r.Reachable == "yes") {
				t.Errorf("%q is reachable: %s", r.Path, r.Reachable)
			}
			if strings.ContainsAny(r.Path+r.Branch, "\x00\n\r\x1b") || !filepath.IsAbs(strings.Replace(r.Path, "DIR", dir, 1)) {
				t.Errorf("path %q, branch %q", r.Path, r.Branch)
			}
		}
	})
}
