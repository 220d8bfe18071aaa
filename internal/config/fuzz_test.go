package config_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/extract"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Any bytes are a configuration or problems that say where, and what is a
// configuration keeps its promises.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "version: 1\nlisten: 127.0.0.1:0\n", "servers:\n  a: {command: x, env: {A: \"${B:-c}\"}}\n",
		"a: &a [*a]\nb: *a\n", "servers: {a: {url: \"https://h/\", headers: {A: b}}}\n", "? [a]\n: b\n", "- - - a\n", "a: |\n  b\n--- \n",
		"audit: {max_size: 1GiB}\n<<: {}\n", "sanitize: {tools: {\"a*\": off}}\n",
		"tools: {t: {module: /, grant: {http: [{origin: \"https://a\"}], dirs: [{path: b}], secrets: [S]}, config: {a: 1}}}\nsecrets: {S: {value: x, origin: \"https://a\"}}\n", "{\"version\": 1}", bomb(), "\"\\", "%YAML 1.2\n---\n", "!!a &b *c",
	} {
		f.Add([]byte(s))
	}
	o := options(f.TempDir())
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("wasmgate.yaml", data, o)
		if err == nil {
			check(t, c)
			return
		}
		var ps tree.Problems
		if c != nil || !errors.As(err, &ps) || len(ps) == 0 {
			t.Fatalf("%v with error %v", c, err)
		}
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
		for _, p := range ps {
			if p.File != "wasmgate.yaml" || p.Line < 0 || p.Line > lines || p.Message == "" {
				t.Errorf("problem %#v in %d lines", p, lines)
			}
		}
	})
}

func check(t *testing.T, c *config.Config) {
	t.Helper()
	for _, addr := range c.Listen {
		if err := c.CheckListen(addr); err != nil {
			t.Error(err)
		}
	}
	for _, s := range c.Servers {
		if s.Enabled && s.Fault == "" && (s.Command == "") == (s.URL == "") {
			t.Errorf("server %#v has no way, or two", s.ID)
		}
		if s.Timeout <= 0 {
			t.Errorf("server %s has no timeout", s.ID)
		}
	}
	for _, m := range c.Tools {
		if (m.Path == "") == (m.Ref == "") {
			t.Errorf("module %s is nowhere, or in two places", m.ID)
		}
		for _, name := range m.Grant.Secrets {
			if !slices.ContainsFunc(c.Secrets, func(s config.BoundSecret) bool { return s.Name == name && s.Value != "" && s.Origin != "" }) {
				t.Errorf("module %s is granted the secret %q, which there is not", m.ID, name)
			}
		}
		for _, g := range m.Grant.HTTP {
			if g.Origin == "" || g.Path == "" || g.Path[0] != '/' {
				t.Errorf("module %s is granted %+v", m.ID, g)
			}
		}
		for _, g := range m.Grant.Dirs {
			if !filepath.IsAbs(g.Path) || filepath.Clean(g.Path) != g.Path {
				t.Errorf("module %s is granted %+v", m.ID, g)
			}
		}
	}
	if c.State == "" || c.Audit.Path == "" || c.Policy.Grants == "" || c.Policy.Timeout <= 0 || c.Limits.Body <= 0 {
		t.Errorf("a default is missing: %+v", c)
	}
}

// Whatever is imported and rendered loads again as the same servers.
func FuzzImportMCP(f *testing.F) {
	for _, s := range []string{
		hostFile, `{"servers": {"a": {"command": "x", "args": ["${NAME}", "$", "$$", "${", "a\u0000"]}}}`,
		`{"mcp": {"servers": {"A B": {"url": "https://u:p@h/?token=abcdef"}}}}`, "// \n{}", "{\"servers\":{\"local\":{\"command\":\"\u2028\"}}}",
		`{"mcpServers": {"a": {"httpUrl": "https://h", "headers": {"Authorization": "Bearer abc"}, "disabled": true}}}`,
	} {
		f.Add([]byte(s))
	}
	o := options(f.TempDir())
	o.Getenv = func(name string) (string, bool) { return "${" + name + "}", true }
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, _, err := config.ImportMCP(bytes.NewReader(data), "/w/.vscode/mcp.json")
		if err != nil {
			return
		}
		extracted, moved := extract.Servers(servers)
		if len(extracted) != len(servers) {
			t.Fatalf("%d servers became %d", len(servers), len(extracted))
		}
		again, more := extract.Servers(extracted)
		if diff := cmp.Diff(extracted, again); diff != "" || len(more) != 0 {
			t.Errorf("a second pass moves %v after %v:\n%s", more, moved, diff)
		}
		var ps tree.Problems
		if _, err := config.Parse("wasmgate.yaml", edit.Render(extracted), o); errors.As(err, &ps) {
			for _, p := range ps {
				if p.Path == "" || p.Path == "servers" {
					t.Errorf("%v in\n%s", p, edit.Render(extracted))
				}
			}
		}
	})
}
