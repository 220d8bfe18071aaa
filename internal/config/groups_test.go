package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestGroups(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "text.wasm"), "")
	file := write(t, filepath.Join(dir, "wasmgate.yaml"), `
version: 1
groups: {docs: ["files__read_*", notes__get], all: ["*"]}
principals: {alice: {groups: [docs, tickets]}, bob: {roles: [dev]}}
servers:
  tickets: {command: sh, groups: [tickets, docs]}
tools:
  text: {module: text.wasm, groups: [words]}
catalog: {mode: beside}
`)
	c, err := config.Load(file, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"docs": {"files__read_*", "notes__get"}, "all": {"*"}, "tickets": {}, "words": {}}
	if diff := cmp.Diff(want, c.AllGroups()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"docs", "tickets"}, c.Principals[0].Groups); diff != "" || c.Principals[1].Groups != nil {
		t.Errorf("principals %+v: %s", c.Principals, diff)
	}
	if c.Catalog.Mode != "beside" {
		t.Errorf("catalog %+v", c.Catalog)
	}
	if d := config.Default(options(dir).Dirs); d.Catalog.Mode != "off" {
		t.Errorf("catalog without a file %+v", d.Catalog)
	}
}

func TestGroupProblems(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"a group of no name":                  {"groups: {Docs: [a__b]}\n", `wasmgate.yaml:1: groups.Docs: a group is named with lower-case letters, digits and -`},
		"a pattern that is none":              {"groups: {docs: [\"a*b\"]}\n", `wasmgate.yaml:1: groups.docs[0]: "a*b" is not the name of a tool, or its beginning and *`},
		"a group of a server that is none":    {"servers: {a: {command: x, groups: [B]}}\n", `wasmgate.yaml:1: servers.a.groups[0]: "B" is not a group: lower-case letters, digits and -`},
		"a principal with an unknown group":   {"groups: {docs: [a__b]}\nprincipals: {alice: {groups: [doc]}}\n", `wasmgate.yaml:2: principals.alice.groups: no group is named "doc"; did you mean "docs"?`},
		"a principal that is offered nothing": {"principals: {alice: {groups: []}}\n", `wasmgate.yaml:1: principals.alice.groups: offers nothing: name a group, or leave it out to offer all`},
		"an unknown mode of the catalog":      {"catalog: {mode: on}\n", `wasmgate.yaml:1: catalog.mode: "on" is not one of off, beside, only; did you mean "only"?`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := config.Load(write(t, filepath.Join(dir, "wasmgate.yaml"), "version: 1\n"+tt.file), options(dir))
			want := strings.ReplaceAll(strings.ReplaceAll(tt.want, "yaml:2:", "yaml:3:"), "yaml:1:", "yaml:2:")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// TestProjectJoinsNoGroups: grants are given to groups, and a project's servers do not
// grant themselves anything.
func TestProjectJoinsNoGroups(t *testing.T) {
	h := newHome(t, "groups: {docs: [a__b]}\n", `version: 1
servers: {x: {command: sh, groups: [docs]}}
tools: {m: {module: /, groups: [docs]}}
groups: {docs: [x__y]}
catalog: {mode: only}
`)
	h.trust()
	_, err := config.Open("", h.cwd, h.o)
	if err == nil {
		t.Fatal("no error")
	}
	const given = "is not allowed in a project's file, because grants can be given to groups: put it into your own file"
	const own = "is not allowed in a project's file, which has only servers and tools: put it into your own file"
	want := strings.ReplaceAll(`F:2: servers.x.groups: `+given+`
F:3: tools.m.groups: `+given+`
F:4: groups: `+own+`
F:5: catalog: `+own, "F:", h.project+":")
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
