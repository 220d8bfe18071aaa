package confine_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/confine"
)

func TestPropose(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	const home = "/home/me"
	read := func(path string) confine.Access { return confine.Access{Kind: confine.AccessRead, Path: path} }
	list := func(path string) confine.Access {
		return confine.Access{Kind: confine.AccessRead, Path: path, Folder: true}
	}
	write := func(path string) confine.Access { return confine.Access{Kind: confine.AccessWrite, Path: path} }
	tests := map[string]struct {
		used []confine.Access
		want confine.Proposal
	}{
		"nothing":                         {nil, confine.Proposal{}},
		"a file means its folder":         {[]confine.Access{read("/srv/a/x"), read("/srv/a/y")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/a"}}}},
		"a program means itself":          {[]confine.Access{{Kind: confine.AccessExecute, Path: "/opt/x/bin/x"}}, confine.Proposal{Rules: confine.Rules{Execute: []string{"/opt/x/bin/x"}}}},
		"folders within others go":        {[]confine.Access{read("/srv/a/x"), read("/srv/a/b/c/x")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/a"}}}},
		"two beside each other stay":      {[]confine.Access{list("/srv/a/b"), list("/srv/a/c")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/a/b", "/srv/a/c"}}}},
		"three become the one around":     {[]confine.Access{list("/srv/a/b"), list("/srv/a/c"), list("/srv/a/d")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/a"}}}},
		"but not a broad one":             {[]confine.Access{list("/srv/b"), list("/srv/c"), list("/srv/d")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/b", "/srv/c", "/srv/d"}}}},
		"packages become one":             {[]confine.Access{read("/srv/a/node_modules/x/package.json"), read("/srv/a/node_modules/y/node_modules/z/i.js")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/srv/a/node_modules"}}}},
		"what is written is not read too": {[]confine.Access{read("/srv/a/x"), write("/srv/a/y")}, confine.Proposal{Rules: confine.Rules{Write: []string{"/srv/a"}}}},
		"a file at home means itself":     {[]confine.Access{read("/home/me/.npmrc")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/home/me/.npmrc"}}}},
		"home is never proposed": {[]confine.Access{list("/home/me"), list("/"), list("/home")}, confine.Proposal{Left: []string{
			"/: the whole folder was used (read); name what of it is needed", "/home/me: the whole folder was used (read); name what of it is needed",
			"/home: the whole folder was used (read); name what of it is needed",
		}}},
		"keys are never proposed": {[]confine.Access{read("/home/me/.ssh/id")}, confine.Proposal{Left: []string{"/home/me/.ssh/id: among keys; name it under read if the server is meant to have it"}}},
		"ports, once each":        {[]confine.Access{{Kind: confine.AccessConnect, Port: 443}, {Kind: confine.AccessConnect, Port: 80}, {Kind: confine.AccessConnect, Port: 443}}, confine.Proposal{Rules: confine.Rules{Connect: []uint16{80, 443}}}},
		"port 53 is names":        {[]confine.Access{{Kind: confine.AccessConnect, Port: 53}}, confine.Proposal{Rules: confine.Rules{DNS: true}}},
		"other sockets":           {[]confine.Access{{Kind: confine.AccessSocket, Path: "/run/bus"}}, confine.Proposal{Left: []string{"/run/bus: sockets other than TCP are never allowed"}}},
		"its own process":         {[]confine.Access{read("/proc/12/maps")}, confine.Proposal{}},
		"the system's":            {[]confine.Access{read("/dev/tty")}, confine.Proposal{Left: []string{"/dev/tty: of the system, and mostly not needed; name it under read if it is"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, confine.Propose(tt.used, home)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
