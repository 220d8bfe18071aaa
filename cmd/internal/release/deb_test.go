package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// unpacked is a folder as .ci/release packs it into an archive for linux.
func unpacked(t *testing.T) string {
	t.Helper()
	dir, program := t.TempDir(), build(t, "arm64")
	root := filepath.Join("..", "..", "..")
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	err = os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(root, "deploy")))
	for name, from := range map[string]string{"LICENSE": "LICENSE", "README.md": "README.md", "wasmgate.1": "deploy/man/wasmgate.1"} {
		text, readErr := os.ReadFile(filepath.Join(root, from))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	for _, name := range []string{"wasmgate", "wasmgate-hook"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// makeFile makes a file of a release twice, which must be the same bytes, and returns its path.
func makeFile(t *testing.T, kind, name string, from ...string) string {
	t.Helper()
	var made [2][]byte
	path := filepath.Join(t.TempDir(), name)
	for i := range made {
		args := append([]string{"-o", path, "-version", "v1.2.3-rc.1", "-created", "1790000000", "-commit", "c0ffee"}, from...)
		if err := run(kind, args); err != nil {
			t.Fatal(err)
		}
		made[i] = read(t, filepath.Dir(path), name)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Errorf("%s: two of the same input differ", kind)
	}
	return path
}

// TestDeb has dpkg-deb read a package.
func TestDeb(t *testing.T) {
	unraced.Long(t)
	toolchain.Need(t, "dpkg-deb")
	path := makeFile(t, "deb", "wasmgate.deb", unpacked(t))
	ask := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "dpkg-deb", append(args, path)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	about := ask("--field")
	for _, want := range []string{"Package: wasmgate\n", "Version: 1.2.3~rc.1\n", "Architecture: arm64\n"} {
		if !strings.Contains(about, want) {
			t.Errorf("no %q in\n%s", want, about)
		}
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--raw-extract", path, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{
		"usr/lib/systemd/system/wasmgate.service": "ExecStart=/usr/bin/wasmgate serve --config /etc/wasmgate/wasmgate.yaml\n",
		"etc/wasmgate/wasmgate.yaml":              "state: /var/lib/wasmgate/state\n",
		"usr/share/doc/wasmgate/copyright":        "Apache License",
		"DEBIAN/conffiles":                        "/etc/wasmgate/wasmgate.yaml\n",
		"DEBIAN/postinst":                         "useradd --system",
	} {
		if text := string(read(t, dir, name)); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", name, want, text)
		}
	}
	if manual, err := exec.CommandContext(t.Context(), "gzip", "-dc", filepath.Join(dir, "usr/share/man/man1/wasmgate.1.gz")).Output(); err != nil || !bytes.HasPrefix(manual, []byte(".TH WASMGATE 1\n")) {
		t.Errorf("the manual page: %.100s, %v", manual, err)
	}
	for _, name := range []string{"usr/bin/wasmgate", "usr/bin/wasmgate-hook", "DEBIAN/postinst", "DEBIAN/prerm", "DEBIAN/postrm"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestAbout makes what tells of an archive: the materials of both programs, and how they were built.
func TestAbout(t *testing.T) {
	unraced.Long(t)
	folder := unpacked(t)
	program := filepath.Join(folder, "wasmgate")
	var sbom struct {
		Components []struct {
			Type, Name, Version string
			Hashes              []struct{ Content string }
		}
	}
	path := makeFile(t, "sbom", "a.cdx.json", program, filepath.Join(folder, "wasmgate-hook"))
	unmarshal(t, read(t, filepath.Dir(path), "a.cdx.json"), &sbom)
	var names []string
	for _, c := range sbom.Components {
		names = append(names, c.Name)
		if c.Type == "application" && (c.Version != "v1.2.3-rc.1" || c.Hashes[0].Content != digestOf(read(t, folder, c.Name)).Encoded()) {
			t.Errorf("%+v", c)
		}
	}
	for _, want := range []string{"wasmgate", "wasmgate-hook", "std", "github.com/opencontainers/image-spec"} {
		if n := len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name != want })); n != 1 {
			t.Errorf("%s is listed %d times", want, n)
		}
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	path = makeFile(t, "provenance", "a.provenance.json", program)
	if err := json.Unmarshal(read(t, filepath.Dir(path), "a.provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" ||
		statement.Subject[0].Name != "wasmgate" || statement.Subject[0].Digest["sha256"] != digestOf(read(t, folder, "wasmgate")).Encoded() ||
		statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != "c0ffee" {
		t.Errorf("%+v", statement)
	}
	if err := run("provenance", []string{"-o", path, program}); err == nil {
		t.Error("a provenance without a commit was made")
	}
}
