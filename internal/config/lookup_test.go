package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/dirs"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

func TestDirsOf(t *testing.T) {
	env := func(vars map[string]string) func(string) string { return func(k string) string { return vars[k] } }
	tests := map[string]struct {
		goos string
		env  map[string]string
		want config.Dirs
	}{
		"linux":                     {"linux", nil, config.Dirs{Home: "/h", Config: "/h/.config/wasmgate", State: "/h/.local/state/wasmgate"}},
		"XDG variables":             {"linux", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, config.Dirs{Home: "/h", Config: "/c/wasmgate", State: "/s/wasmgate"}},
		"relative ones are ignored": {"linux", map[string]string{"XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "./s"}, config.Dirs{Home: "/h", Config: "/h/.config/wasmgate", State: "/h/.local/state/wasmgate"}},
		"empty ones are ignored":    {"linux", map[string]string{"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}, config.Dirs{Home: "/h", Config: "/h/.config/wasmgate", State: "/h/.local/state/wasmgate"}},
		"a tilde is not a home":     {"linux", map[string]string{"XDG_STATE_HOME": "~/s"}, config.Dirs{Home: "/h", Config: "/h/.config/wasmgate", State: "/h/.local/state/wasmgate"}},
		"the same for both":         {"linux", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/c"}, config.Dirs{Home: "/h", Config: "/c/wasmgate", State: "/c/wasmgate/state"}},
		"macOS":                     {"darwin", nil, config.Dirs{Home: "/h", Config: "/h/Library/Application Support/wasmgate", State: "/h/Library/Application Support/wasmgate/state"}},
		"windows":                   {"windows", map[string]string{"LOCALAPPDATA": "/l"}, config.Dirs{Home: "/h", Config: "/h/AppData/Roaming/wasmgate", State: "/l/wasmgate"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, dirs.DirsOf(tt.goos, "/h", env(tt.env))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A configuration leaves nothing in its folder but what a person keeps there, and no two share a
// state folder.
func TestStateFolder(t *testing.T) {
	home := t.TempDir()
	o := options(home)
	load := func(path, text string) *config.Config {
		t.Helper()
		c, err := config.Load(write(t, path, text), o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := load(filepath.Join(o.Dirs.Config, "wasmgate.yaml"), "version: 1\n"); c.State != o.Dirs.State || c.State != config.Default(o.Dirs).State {
		t.Errorf("the user's own configuration has its state in %s", c.State)
	}
	seen := map[string]string{o.Dirs.State: "the user's own"}
	long := strings.Repeat("long", 20)
	for _, folder := range []string{"a", "b", "a/b", "b/b", "A", "a b", "ä", "ö", "...", "server", long, long + "2", ".hidden", "a/.wasmgate", "b/.wasmgate"} {
		for _, name := range []string{"wasmgate.yaml", "other.yaml", "mcp.json"} {
			path := filepath.Join(home, "src", folder, name)
			text := "version: 1\n"
			if name == "mcp.json" {
				text = `{"mcpServers": {}}`
			}
			c := load(path, text)
			if other := seen[c.State]; other != "" {
				t.Errorf("%s shares %s with %s", path, c.State, other)
			}
			seen[c.State] = path
			if !strings.HasPrefix(c.State, filepath.Join(o.Dirs.State, "files")+string(filepath.Separator)) || filepath.Dir(c.Audit.Path) != c.State {
				t.Errorf("%s has its state in %s, its log in %s", path, c.State, c.Audit.Path)
			}
			if again := load(path, text); again.State != c.State {
				t.Errorf("%s has its state in %s, and then in %s", path, c.State, again.State)
			}
		}
	}
	if c := load(filepath.Join(home, "src", "named", "wasmgate.yaml"), "state: here\n"); c.State != filepath.Join(home, "src", "named", "here") || c.Audit.Path != filepath.Join(c.State, "audit.jsonl") {
		t.Errorf("state: here is %s, its log is %s", c.State, c.Audit.Path)
	}
	if c := load(filepath.Join(home, "src", "log", "wasmgate.yaml"), "audit: {path: a.jsonl}\n"); c.Audit.Path != filepath.Join(home, "src", "log", "a.jsonl") {
		t.Errorf("audit.path: a.jsonl is %s", c.Audit.Path)
	}
}

// Kubernetes moves what the file of a ConfigMap leads to with each change; a link to the folder
// is the same folder.
func TestStateFolderOfLinks(t *testing.T) {
	home := t.TempDir()
	mount, o := filepath.Join(home, "etc"), options(home)
	link := func(to, path string) {
		t.Helper()
		_ = os.Remove(path)
		if err := os.Symlink(to, path); err != nil {
			t.Skip(err)
		}
	}
	state := func(path string) string {
		t.Helper()
		c, err := config.Load(path, o)
		if err != nil {
			t.Fatal(err)
		}
		return c.State
	}
	for _, data := range []string{"..2026_01", "..2026_02"} {
		write(t, filepath.Join(mount, data, "wasmgate.yaml"), "version: 1\n")
	}
	file := filepath.Join(mount, "wasmgate.yaml")
	link("..2026_01", filepath.Join(mount, "..data"))
	link(filepath.Join("..data", "wasmgate.yaml"), file)
	before := state(file)
	link("..2026_02", filepath.Join(mount, "..data"))
	if after := state(file); after != before {
		t.Errorf("the state moved from %s to %s", before, after)
	}
	link(mount, filepath.Join(home, "other"))
	if by := state(filepath.Join(home, "other", "wasmgate.yaml")); by != before {
		t.Errorf("by a link to the folder the state is in %s, not in %s", by, before)
	}
}

func TestLookup(t *testing.T) {
	root := t.TempDir()
	d := config.Dirs{Config: filepath.Join(root, "conf"), State: filepath.Join(root, "state")}
	user := write(t, filepath.Join(d.Config, "wasmgate.yaml"), "")
	outer := write(t, filepath.Join(root, ".wasmgate", "wasmgate.yaml"), "")
	write(t, filepath.Join(root, "repo", ".git", "HEAD"), "")
	project := write(t, filepath.Join(root, "repo", ".wasmgate", "wasmgate.yaml"), "")
	inner := filepath.Join(root, "repo", "a", "b")
	bare := filepath.Join(root, "bare")
	for _, dir := range []string{inner, filepath.Join(bare, ".git"), filepath.Join(root, "plain", "sub")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		explicit, cwd string
		want          config.Files
	}{
		"a named file stands alone":                       {"x.yaml", inner, config.Files{Base: "x.yaml"}},
		"a project is found from below":                   {"", inner, config.Files{Base: user, Project: project}},
		"a project is found at its root":                  {"", filepath.Join(root, "repo"), config.Files{Base: user, Project: project}},
		"above the repository nothing is looked for":      {"", bare, config.Files{Base: user}},
		"without a repository the folder counts":          {"", root, config.Files{Base: user, Project: outer}},
		"without a repository what is above does not":     {"", filepath.Join(root, "plain", "sub"), config.Files{Base: user}},
		"a folder that is missing has none, and no error": {"", filepath.Join(root, "none"), config.Files{Base: user}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, config.Lookup(tt.explicit, tt.cwd, d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// home is a person's folder with a project in it.
type home struct {
	t       *testing.T
	o       config.Options
	cwd     string
	project string
}

func newHome(t *testing.T, user, project string) home {
	dir := t.TempDir()
	h := home{t: t, o: options(dir), cwd: filepath.Join(dir, "work")}
	if user != "" {
		write(t, filepath.Join(h.o.Dirs.Config, "wasmgate.yaml"), user)
	}
	h.project = write(t, filepath.Join(h.cwd, ".wasmgate", "wasmgate.yaml"), project)
	return h
}

func (h home) trust() {
	h.t.Helper()
	if _, err := config.Trust(h.o.Dirs.State, h.project); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) open() *config.Config {
	h.t.Helper()
	c, err := config.Open("", h.cwd, h.o)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func ids(servers []config.Server) string {
	var out []string
	for _, s := range servers {
		out = append(out, s.ID)
	}
	return strings.Join(out, " ")
}

func TestProjectIsInertUntilTrusted(t *testing.T) {
	h := newHome(t, "servers: {mine: {command: x}}\n", "servers: {theirs: {command: ./y}}\n")
	base := h.open()
	if got := ids(base.Servers); got != "mine" {
		t.Errorf("servers before trust: %s", got)
	}
	want := []tree.Problem{{File: h.project, Message: "not trusted, so it has no effect: read it, then run `wasmgate trust`"}}
	if diff := cmp.Diff(want, base.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	h.trust()
	c := h.open()
	if got := ids(c.Servers); got != "mine theirs" || c.Project != h.project {
		t.Errorf("after trust: servers %s, project %s", got, c.Project)
	}
	if c.Servers[1].Command != filepath.Join(filepath.Dir(h.project), "y") {
		t.Errorf("command is %s, not beside the project's file", c.Servers[1].Command)
	}
	if c.State == base.State || c.Audit.Path == base.Audit.Path {
		t.Error("the project shares state or log with the base")
	}
	if filepath.Dir(filepath.Dir(filepath.Dir(c.Audit.Path))) != filepath.Dir(base.Audit.Path) {
		t.Errorf("log %s left the folder of %s", c.Audit.Path, base.Audit.Path)
	}
	if c.Policy.Grants != base.Policy.Grants {
		t.Error("the project changed the grants file")
	}

	write(t, h.project, "servers: {theirs: {command: ./evil}}\n")
	c = h.open()
	if got := ids(c.Servers); got != "mine" {
		t.Errorf("servers after a change: %s", got)
	}
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0].Message, "changed since it was trusted") {
		t.Errorf("warnings after a change: %v", c.Warnings)
	}

	h.trust()
	if was, err := config.Untrust(h.o.Dirs.State, h.project); err != nil || !was {
		t.Fatal(err)
	}
	if ok, err := config.Trusted(h.o.Dirs.State, h.project); ok || err != nil {
		t.Errorf("Trusted after Untrust: %v, %v", ok, err)
	}
}

// A file that is not trusted is not even parsed.
func TestUntrustedNonsense(t *testing.T) {
	h := newHome(t, "", "{{{ \xff")
	if c := h.open(); len(c.Servers) != 0 || c.File != "" || c.State != h.o.Dirs.State {
		t.Errorf("got %+v", c)
	}
}

func TestProjectAddsOnly(t *testing.T) {
	h := newHome(t, "servers: {a: {command: x}}\ntools: {m: {module: /, server: taken}}\nsecrets: {API: {value: x, origin: \"https://a\"}}\n", `version: 1
servers:
  a: {command: y}
  taken: {command: y}
tools:
  m: {module: /}
  n: {module: /, server: a, grant: {secrets: [API]}}
listen: 127.0.0.1:1
policy: {packs: []}
audit: {record: full}
state: /tmp
polcy: {}
secrets: {}
`)
	h.trust()
	_, err := config.Open("", h.cwd, h.o)
	if err == nil {
		t.Fatal("no error")
	}
	const own = "is not allowed in a project's file, which has only servers and tools: put it into your own file"
	want := strings.ReplaceAll(`F:3: servers.a: your own configuration has a server of this name: choose another
F:4: servers.taken: your own configuration has a server of this name: choose another
F:6: tools.m: your own configuration has a module of this name: choose another
F:7: tools.n.server: "a" is one of the servers: choose another name
F:7: tools.n.grant.secrets[0]: no secret is named "API"
F:7: tools.n.server: your own configuration has a server of this name: choose another
F:8: listen: `+own+`
F:9: policy: `+own+`
F:10: audit: `+own+`
F:11: state: `+own+`
F:12: polcy: unknown key; did you mean "policy"?
F:13: secrets: `+own, "F:", h.project+":")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTrustStore(t *testing.T) {
	h := newHome(t, "", "servers: {a: {command: x}}\n")
	h.trust()
	store := filepath.Join(h.o.Dirs.State, "trusted.json")
	info, err := os.Stat(store)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
	t.Run("a link to a trusted file is that file", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link.yaml")
		if err := os.Symlink(h.project, link); err != nil {
			t.Skip(err)
		}
		if ok, err := config.Trusted(h.o.Dirs.State, link); !ok || err != nil {
			t.Errorf("Trusted = %v, %v", ok, err)
		}
	})
	t.Run("a copy of a trusted file is another file", func(t *testing.T) {
		other := write(t, filepath.Join(t.TempDir(), "wasmgate.yaml"), "servers: {a: {command: x}}\n")
		if ok, err := config.Trusted(h.o.Dirs.State, other); ok || err != nil {
			t.Errorf("Trusted = %v, %v", ok, err)
		}
	})
	t.Run("a damaged store trusts nothing, loudly", func(t *testing.T) {
		for _, content := range []string{"", "null", "[]", "{\"a\": 1}"} {
			write(t, store, content)
			if _, err := config.Open("", h.cwd, h.o); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("store %q: %v", content, err)
			}
		}
	})
}

// A file named on the command line is the person's own word.
func TestExplicitNeedsNoTrust(t *testing.T) {
	h := newHome(t, "servers: {mine: {command: x}}\n", "servers: {theirs: {command: y}}\n")
	c, err := config.Open(h.project, h.cwd, h.o)
	if err != nil {
		t.Fatal(err)
	}
	if ids(c.Servers) != "theirs" || c.Project != "" || len(c.Warnings) != 0 {
		t.Errorf("got %v, project %q, warnings %v", c.Servers, c.Project, c.Warnings)
	}
}
