//go:build unix

package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestInstall runs the install script of a release that is served on loopback. What is wrong with a release, or with what the
// script finds on the machine, leaves nothing installed.
func TestInstall(t *testing.T) {
	released := released(t, filepath.Join("..", "..", ".."))
	archive := "wasmgate-v1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	if _, err := os.Stat(filepath.Join(released, archive)); err != nil {
		t.Skip("there is no release for this machine")
	}
	edit := func(t *testing.T, dist, name string, edit func(string) string) {
		t.Helper()
		path := filepath.Join(dist, name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(edit(string(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	more := func(text string) string { return text + "\n" }
	unsigned := func(t *testing.T, dist string) {
		edit(t, dist, "install.sh", func(text string) string {
			before, after, _ := strings.Cut(text, "\nsigner='")
			_, after, _ = strings.Cut(after, "\n")
			return before + "\nsigner=\n" + after
		})
	}
	shells := []string{"sh"}
	for _, shell := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(shell); err == nil {
			shells = append(shells, shell)
		}
	}
	type set struct {
		spoil func(t *testing.T, dist string)
		args  []string
		hide  string // a program that is not installed
		want  string // in the output
		fails bool
	}
	tests := map[string]set{
		"unsigned":                {spoil: unsigned, want: "only checksums were checked"},
		"no ssh-keygen":           {hide: "ssh-keygen", want: "the signature was not checked"},
		"by wget":                 {hide: "curl", want: "installed wasmgate v1.2.3"},
		"a signer, no ssh-keygen": {hide: "ssh-keygen", args: []string{"--signer", "OTHER"}, want: "--signer needs ssh-keygen", fails: true},
		"another signer":          {args: []string{"--signer", "OTHER"}, want: "does not hold", fails: true},
		"another archive":         {spoil: func(t *testing.T, dist string) { edit(t, dist, archive, more) }, want: "has the checksum", fails: true},
		"other checksums":         {spoil: func(t *testing.T, dist string) { edit(t, dist, "SHA256SUMS", more) }, want: "does not hold", fails: true},
		"no signature": {spoil: func(t *testing.T, dist string) { _ = os.Remove(filepath.Join(dist, "SHA256SUMS.sig")) },
			want: "is not signed", fails: true},
		"no checksums": {spoil: func(t *testing.T, dist string) { _ = os.Remove(filepath.Join(dist, "SHA256SUMS")) }, want: "cannot be fetched", fails: true},
		"not in the checksums": {spoil: func(t *testing.T, dist string) {
			unsigned(t, dist)
			edit(t, dist, "SHA256SUMS", func(text string) string { return strings.ReplaceAll(text, archive, "x"+archive) })
		}, want: "has no line, or several", fails: true},
		"twice in the checksums": {spoil: func(t *testing.T, dist string) {
			unsigned(t, dist)
			edit(t, dist, "SHA256SUMS", func(text string) string { return text + text })
		}, want: "has no line, or several", fails: true},
		"no sha256sum": {spoil: unsigned, hide: "sha256sum", want: "cannot be checked", fails: true},
		"cut short": {spoil: func(t *testing.T, dist string) {
			edit(t, dist, "install.sh", func(text string) string { return strings.TrimSuffix(text, "main \"$@\"\n") })
		}},
		"without TLS":       {args: []string{"--from", "http://192.0.2.1/x"}, want: "must be an https URL", fails: true},
		"a name like local": {args: []string{"--from", "http://127.0.0.1.example.com/x"}, want: "must be an https URL", fails: true},
		"no such option":    {args: []string{"--force", "yes"}, want: "unknown option --force", fails: true},
		"no value":          {args: []string{"--dir"}, want: "--dir needs a value", fails: true},
		"a path":            {args: []string{"--version", "../v1"}, want: "is no version", fails: true},
	}
	for _, shell := range shells {
		tests["with "+shell] = set{want: "the signature holds\ninstalled wasmgate v1.2.3 in "}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dist, home := t.TempDir(), t.TempDir()
			if err := os.CopyFS(dist, os.DirFS(released)); err != nil {
				t.Fatal(err)
			}
			if tt.spoil != nil {
				tt.spoil(t, dist)
			}
			other := filepath.Join(home, "other")
			if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			site := httptest.NewServer(http.FileServer(http.Dir(dist)))
			defer site.Close()
			shell := "sh"
			if _, with, ok := strings.Cut(name, "with "); ok {
				shell = with
			}
			args := []string{filepath.Join(dist, "install.sh"), "--from", site.URL}
			for _, arg := range tt.args {
				args = append(args, strings.Replace(arg, "OTHER", other+".pub", 1))
			}
			cmd := exec.CommandContext(t.Context(), shell, args...)
			cmd.Env = []string{"HOME=" + home, "PATH=" + withOnly(t, tt.hide), "TMPDIR=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, want an error: %v, with %q:\n%s", err, tt.fails, tt.want, out)
			}
			var installed []string
			_ = fs.WalkDir(os.DirFS(home), ".local", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					installed = append(installed, filepath.Base(name))
				}
				return nil
			})
			want := []string{"wasmgate", "wasmgate-hook", "wasmgate.1"}
			if tt.fails || tt.want == "" {
				want = nil
			}
			if !slices.Equal(installed, want) {
				t.Errorf("installed %q, want %q", installed, want)
			}
		})
	}
}

// withOnly returns a folder with the programs that the script uses, but for one.
func withOnly(t *testing.T, hidden string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"awk", "cat", "chmod", "cp", "cut", "curl", "gzip", "mkdir", "mktemp", "mv", "rm", "sh", "sha256sum", "ssh-keygen", "tar", "uname", "wget"} {
		path, err := exec.LookPath(name)
		if name == hidden || name == "wget" && hidden != "curl" {
			continue
		}
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Skip(err)
		}
	}
	return bin
}
