package confine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/confine"
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
		"a file at home means itself":     {[]confine.Access{read("/home/me/.toolrc")}, confine.Proposal{Rules: confine.Rules{Read: []string{"/home/me/.toolrc"}}}},
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
			if diff := cmp.Diff(tt.want, confine.Propose(tt.used, home, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProposeLeavesOut: nothing that holds keys, runs when its user signs in or belongs to the
// gateway is proposed, whether home and the places in it are links or not.
func TestProposeLeavesOut(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	real := filepath.Join(t.TempDir(), "disks", "me")
	keys := []string{
		".ssh/id_rsa", ".git-credentials", ".npmrc", ".pypirc", ".bash_history", ".cargo/credentials.toml", ".azure/token", ".config/gh/hosts.yml", ".config/sops/age/keys.txt",
		".local/share/keyrings/login.keyring", ".mozilla/firefox/x/logins.json", ".aws/credentials", ".kube/config", ".docker/config.json", ".vault-token",
	}
	logins := []string{".bashrc", ".local/bin/ls", ".config/autostart/x.desktop", ".config/systemd/user/x.service", ".profile", "bin/ls", ".gitconfig", ".vimrc"}
	own := []string{".config/wasmgate/grants.yaml", ".local/state/wasmgate/wasm/x"}
	for _, name := range slices.Concat(keys, logins, own, []string{"elsewhere/moved/token"}) {
		path := filepath.Join(real, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "me")
	if err := errors.Join(os.Symlink(real, link), os.Symlink("elsewhere/moved", filepath.Join(real, ".fly"))); err != nil {
		t.Fatal(err)
	}
	keys = append(keys, "elsewhere/moved/token") // that is ~/.fly
	for _, home := range []string{real, link} {
		var used []confine.Access
		left := 0
		for kind, names := range map[confine.AccessKind][]string{
			confine.AccessRead: slices.Concat(keys, own), confine.AccessWrite: slices.Concat(keys, logins, own),
		} {
			for _, name := range names {
				path := filepath.Join(real, name)
				used = append(used, confine.Access{Kind: kind, Path: path})
				if kind == confine.AccessWrite { // a file is made
					used = append(used, confine.Access{Kind: kind, Path: filepath.Dir(path), Folder: true})
				}
			}
			left += len(names)
		}
		got := confine.Propose(used, home, []string{filepath.Join(home, ".config/wasmgate"), filepath.Join(home, ".local/state/wasmgate")})
		if len(got.Rules.Read)+len(got.Rules.Write) > 0 {
			t.Errorf("home %s: read %q, write %q", home, got.Rules.Read, got.Rules.Write)
		}
		if n := len(got.Left); n != 21 || !strings.HasSuffix(got.Left[20], " more") {
			t.Errorf("home %s: %d lines, the last %q; of %d", home, n, got.Left[n-1], left)
		}
	}
	plain := confine.Propose([]confine.Access{
		{Kind: confine.AccessRead, Path: filepath.Join(real, ".bashrc")}, {Kind: confine.AccessExecute, Path: filepath.Join(real, ".local/bin/uvx")},
		{Kind: confine.AccessWrite, Path: filepath.Join(real, "src/bin/out")}, {Kind: confine.AccessRead, Path: filepath.Join(real, ".cargo/registry/x")},
	}, real, nil)
	want := confine.Rules{
		Read: []string{filepath.Join(real, ".bashrc"), filepath.Join(real, ".cargo/registry")}, Execute: []string{filepath.Join(real, ".local/bin/uvx")},
		Write: []string{filepath.Join(real, "src/bin")},
	}
	if diff := cmp.Diff(want, plain.Rules); diff != "" || len(plain.Left) > 0 {
		t.Errorf("what is none of these (-want +got):\n%s\n%q", diff, plain.Left)
	}
}

// TestKeysAreToldFirst: what a server uses without end pushes no key out of the list.
func TestKeysAreToldFirst(t *testing.T) {
	var used []confine.Access
	for i := range 100 {
		used = append(used, confine.Access{Kind: confine.AccessSocket, Path: fmt.Sprint("/run/", i)}, confine.Access{Kind: confine.AccessRead, Path: fmt.Sprint("/dev/", i)})
	}
	used = append(used, confine.Access{Kind: confine.AccessRead, Path: "/home/me/.ssh/id"})
	left := confine.Propose(used, "/home/me", nil).Left
	if !strings.HasPrefix(left[0], "/home/me/.ssh/id: among keys") || left[len(left)-1] != "181 more" {
		t.Errorf("%q", left)
	}
}
