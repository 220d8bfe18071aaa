//go:build unix

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// standInGo takes the place of the go command in .ci/release: it writes what `go build -o FILE PACKAGE`
// would, a file, and what `go run PACKAGE -o FOLDER` would, a folder.
const standInGo = `#!/bin/sh
what=$1; shift
while [ "$1" != -o ]; do shift; done
case $what in
build) for package; do :; done; [ -d "$package" ] && echo "$package" >"$2" ;;
run) mkdir "$2" && echo layout >"$2/oci-layout" ;;
esac
`

// TestRelease runs .ci/release over this repository with a stand-in for the compiler, and compares what it
// makes with what docs/how-to/install.md lists, and with each program and file that the docs name.
func TestRelease(t *testing.T) {
	for _, program := range []string{"bash", "git", "gzip", "sha256sum", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if out, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("tar is not GNU's, which .ci/release needs")
	}
	root := filepath.Join("..", "..", "..")
	made := released(t, root)

	var howTos [2]string
	for i, name := range []string{"install.md", "run-as-a-service.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "how-to", name))
		if err != nil {
			t.Fatal(err)
		}
		howTos[i] = string(text)
	}
	listed := listedFiles(t, howTos[0])
	if got, want := slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(listed)); !slices.Equal(got, want) {
		t.Fatalf("the release has %q\ndocs/how-to/install.md lists %q", got, want)
	}
	for name, want := range listed {
		if got := made[name]; !slices.Equal(got, want) {
			t.Errorf("%s holds %q, docs/how-to/install.md lists %q", name, got, want)
		}
	}

	// What the docs install from a release for linux is in it, and so is each program that they name.
	linux := made["wasmgate-v1.2.3-linux-amd64.tar.gz"]
	var named []string
	for _, line := range regexp.MustCompile(`(?m)^install -m \d+ .*$`).FindAllString(howTos[1], -1) {
		words := strings.Fields(line)
		named = append(named, words[3:len(words)-1]...)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	howTo, err := filepath.Glob(filepath.Join(root, "docs", "how-to", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, howTo...)
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range regexp.MustCompile("`(wasmgate-[a-z]+)`").FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, "cmd", word[1])); err == nil {
				named = append(named, word[1])
			}
		}
	}
	if !slices.Contains(named, "wasmgate-hook") || !slices.Contains(named, "deploy/systemd/wasmgate.service") {
		t.Errorf("the docs name %q, which is not all", named)
	}
	for _, name := range named {
		if !slices.ContainsFunc(linux, func(one string) bool {
			return one == name || strings.HasSuffix(one, "/") && strings.HasPrefix(name, one)
		}) {
			t.Errorf("the docs name %s of a release, which has %q", name, linux)
		} else if _, err := os.Stat(filepath.Join(root, name)); strings.Contains(name, "/") && err != nil {
			t.Error(err)
		}
	}
	programs, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, main := range programs {
		if name := filepath.Base(filepath.Dir(main)); !slices.Contains(linux, name) {
			t.Errorf("the program %s is not in a release", name)
		}
	}
}

// released returns the files that .ci/release makes of a checkout, with what is in each archive.
func released(t *testing.T, root string) map[string][]string {
	checkout, bin := t.TempDir(), t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = checkout
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "PLATFORMS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	for _, name := range []string{"LICENSE", "README.md", ".ci/release", "deploy/systemd/wasmgate.service", "cmd/wasmgate/main.go", "cmd/wasmgate-hook/main.go"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(checkout, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(standInGo), 0o755); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	run("git", "init", "-q")
	run("git", "add", ".")
	run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "all")
	run("bash", ".ci/release", "v1.2.3", key)

	files, err := os.ReadDir(filepath.Join(checkout, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string][]string)
	for _, f := range files {
		made[f.Name()] = nil
		if strings.HasSuffix(f.Name(), "-image.tar.gz") || !strings.HasSuffix(f.Name(), ".gz") {
			continue // the image is tested by its layout
		}
		made[f.Name()] = holds(t, filepath.Join(checkout, "dist", f.Name()))
	}
	return made
}

// holds returns what is in an archive: files, and the folders at its top, with a slash.
func holds(t *testing.T, archive string) (names []string) {
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return slices.Compact(names)
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(h.Name, "./")
		if top, _, below := strings.Cut(name, "/"); below {
			name = top + "/"
		}
		if name != "" {
			names = append(names, name)
		}
	}
}

// listedFiles reads the table of a release's files, for all platforms.
func listedFiles(t *testing.T, page string) map[string][]string {
	_, table, found := strings.Cut(page, "| file | holds |")
	if !found {
		t.Fatal("docs/how-to/install.md has no table of a release's files")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([^`]+)`")
	listed := make(map[string][]string)
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		file := strings.ReplaceAll(code.FindStringSubmatch(cells[1])[1], "VERSION", "v1.2.3")
		if !strings.Contains(file, "OS-ARCH") {
			listed[file] = nil
			continue
		}
		all, linux, _ := strings.Cut(cells[2], "for linux")
		for _, os := range []string{"linux", "darwin", "windows"} {
			for _, arch := range []string{"amd64", "arm64"} {
				cell := all
				if os == "linux" {
					cell += linux
				}
				var in []string
				for _, m := range code.FindAllStringSubmatch(cell, -1) {
					name := m[1]
					if os == "windows" && strings.HasPrefix(name, "wasmgate") {
						name += ".exe"
					}
					in = append(in, name)
				}
				slices.Sort(in)
				listed[strings.ReplaceAll(file, "OS-ARCH", os+"-"+arch)] = in
			}
		}
	}
	return listed
}
