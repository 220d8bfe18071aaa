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

// standInGo takes the place of the go command in .ci/release. It writes what `go build -o FILE PACKAGE` would: programs
// that print a version, and one that makes files of the kind that it is asked for.
const standInGo = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
for package; do :; done
[ -d "$package" ] || exit 1
case $package in
*/internal/release) cat >"$2" <<'END' ;;
#!/bin/sh
kind=$1
while [ "$1" != -o ]; do shift; done
[ "$kind" != image ] || { mkdir "$2" && echo layout >"$2/oci-layout"; exit; }
echo "$kind" >"$2"
END
*) printf '#!/bin/sh\necho "%s v1.2.3"\n' "${package##*/}" >"$2" ;;
esac
chmod +x "$2"
`

// TestRelease runs .ci/release over this repository with a stand-in for the compiler, and compares what it
// makes with what docs/how-to/install.md lists, and with each program and file that the docs name.
func TestRelease(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	dist := released(t, root)
	made := make(map[string][]string)
	for _, name := range filesOf(t, dist) {
		made[name] = nil
		if strings.HasSuffix(name, ".tar.gz") && !strings.Contains(name, "-image") { // images are tested by their layouts
			made[name] = holds(t, filepath.Join(dist, name))
		}
	}

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
	for _, line := range regexp.MustCompile(`(?m)^install .*-m \d+ .*$`).FindAllString(howTos[1], -1) {
		words := strings.Fields(line)
		named = append(named, words[slices.Index(words, "-m")+2:len(words)-1]...)
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

// released returns the folder of a release that .ci/release makes of a checkout. It is signed by a key that is made for it.
func released(t *testing.T, root string) string {
	t.Helper()
	for _, program := range []string{"bash", "git", "gzip", "sha256sum", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	if out, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU") {
		t.Skip("tar is not GNU's, which .ci/release needs")
	}
	checkout, bin := t.TempDir(), t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = checkout
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "PLATFORMS=", "NODE_FILES="+bin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", ".ci/release", "deploy/install.sh", "deploy/man/wasmgate.1", "deploy/systemd/wasmgate.service", "deploy/systemd/wasmgate.yaml",
		"cmd/wasmgate/main.go", "cmd/wasmgate-hook/main.go", "cmd/internal/release/main.go",
	} {
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
	return filepath.Join(checkout, "dist")
}

// filesOf returns the names of the files in a folder.
func filesOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
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
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64", "windows-arm64"} {
				os, arch, _ := strings.Cut(platform, "-")
				file := strings.NewReplacer("VERSION", "v1.2.3", "OS-ARCH", platform, "linux-ARCH", "linux-"+arch).Replace(m[1])
				listed[file] = nil
				if !strings.Contains(m[1], "OS-ARCH.tar.gz") {
					continue
				}
				all, linux, _ := strings.Cut(cells[2], "for linux")
				if os == "linux" {
					all += linux
				}
				for _, held := range code.FindAllStringSubmatch(all, -1) {
					name := held[1]
					if os == "windows" && strings.HasPrefix(name, "wasmgate") && name != "wasmgate.1" {
						name += ".exe"
					}
					listed[file] = append(listed[file], name)
				}
				slices.Sort(listed[file])
			}
		}
	}
	return listed
}
