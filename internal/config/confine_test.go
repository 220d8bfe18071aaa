package config_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

func TestConfine(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		confine string
		want    config.Confine
	}{
		"nothing at all": {`{}`, config.Confine{}},
		"all of it": {`{read: [/srv, docs], write: ["${PLACE}"], execute: [/opt/x], connect: [443, 8080], dns: true,
          memory: 512MiB, processes: 64, files: 256, cpu: 1m, best_effort: true}`, config.Confine{
			Read: []string{"/srv", filepath.Join(dir, "docs")}, Write: []string{"/var/x"}, Execute: []string{"/opt/x"}, Connect: []uint16{443, 8080}, DNS: true,
			Memory: 512 << 20, Processes: 64, Files: 256, CPU: time.Minute, BestEffort: true,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(dir)
			o.Getenv = environment(map[string]string{"PLACE": "/var/x"})
			c, err := config.Parse(filepath.Join(dir, "wasmgate.yaml"), []byte("servers: {a: {command: x, confine: "+tt.confine+"}}\n"), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, c.Servers[0].Confine); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfineProblems(t *testing.T) {
	const at = "wasmgate.yaml:1: servers.a.confine"
	tests := map[string]struct{ server, want string }{
		"an unknown part":           {`command: x, confine: {reads: []}`, at + `.reads: unknown key; did you mean "read"?`},
		"a path for a list":         {`command: x, confine: {read: /srv}`, at + `.read: must be a list, not text`},
		"an empty path":             {`command: x, confine: {write: [""]}`, at + `.write[0]: "" is empty`},
		"a host for a port":         {`command: x, confine: {connect: ["a:443"]}`, at + `.connect[0]: must be a number, not text`},
		"a port that is none":       {`command: x, confine: {connect: [70000]}`, at + `.connect[0]: "70000" is not a whole number from 1 to 65535`},
		"hardly any memory":         {`command: x, confine: {memory: 1MiB}`, at + `.memory: "1MiB" is not from 16MiB to 1024GiB`},
		"no processes":              {`command: x, confine: {processes: 0}`, at + `.processes: "0" is not a whole number from 1 to 1048576`},
		"fewer files than it takes": {`command: x, confine: {files: 3}`, at + `.files: "3" is not a whole number from 8 to 1048576`},
		"part of a second":          {`command: x, confine: {cpu: 1500ms}`, at + `.cpu: "1500ms" is not a duration of whole seconds, such as 60s`},
		"a server with a URL":       {`url: "https://h/", confine: {}`, at + `: has no effect without a command`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte("servers: {a: {"+tt.server+"}}\n"), options(t.TempDir()))
			var ps tree.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("Parse = %v", err)
			}
			if diff := cmp.Diff(tt.want, ps.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenderedConfinementIsReadBack(t *testing.T) {
	tests := map[string]config.Confine{
		"nothing":    {},
		"all":        {Read: []string{"/srv/a b", "/srv/$x", "/srv/#: y"}, Write: []string{"/w"}, Execute: []string{"/x"}, Connect: []uint16{80, 443}, DNS: true},
		"names only": {DNS: true},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := string(edit.RenderConfine("a", want)) + "    command: x\n"
			c, err := config.Parse(filepath.Join(dir, "wasmgate.yaml"), []byte(file), options(dir))
			if err != nil {
				t.Fatalf("%v\n%s", err, file)
			}
			if diff := cmp.Diff(&want, c.Servers[0].Confine); diff != "" {
				t.Errorf("%s\n%s", diff, file)
			}
		})
	}
}
