package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

var made = time.Unix(1_790_000_000, 0).UTC()

// makeImage makes an image of programs as the command line does.
func makeImage(to string, more ...string) error {
	return run("image", append([]string{"-o", to, "-version", "v1.2.3", "-created", "1790000000"}, more...))
}

// build builds a program for a platform, of this module, so that its modules are in it.
func build(t *testing.T, arch string, more ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", out}, more...), ".")...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out
}

// TestImage makes the same image twice, of two platforms, and has skopeo read it.
func TestImage(t *testing.T) {
	unraced.Long(t)
	amd, arm := build(t, "amd64"), build(t, "arm64")
	dir := filepath.Join(t.TempDir(), "image")
	if err := makeImage(dir, amd, arm); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := makeImage(again, amd, arm); err != nil {
		t.Fatal(err)
	}
	first, second := read(t, dir, "index.json"), read(t, again, "index.json")
	if string(first) != string(second) {
		t.Errorf("two images of the same binaries differ:\n%s\n%s", first, second)
	}
	var index, images oci.Index
	unmarshal(t, first, &index)
	unmarshal(t, blob(t, dir, index.Manifests[0]), &images)
	if len(images.Manifests) != 2 || images.Manifests[0].Platform.Architecture != "amd64" || images.Manifests[1].Platform.Architecture != "arm64" || len(index.Manifests) != 3 {
		t.Fatalf("index %s", first)
	}
	var m oci.Manifest
	unmarshal(t, blob(t, dir, images.Manifests[0]), &m)
	var config image
	unmarshal(t, blob(t, dir, m.Config), &config)
	if check := config.Config.Healthcheck.Test; len(check) != 5 || check[2] != "status" {
		t.Errorf("health check %q", check)
	}
	if config.Config.User != "65532:65532" || config.Created.Unix() != made.Unix() || config.Config.Entrypoint[0] != "/usr/local/bin/wasmgate" {
		t.Errorf("config %+v", config)
	}
	entries := unpack(t, dir, m.Layers[0])
	for name, e := range entries {
		writable := e.Mode&0o022 != 0 && name != "tmp/"
		if writable || e.Uid != 0 && name != "var/lib/wasmgate/" || !e.ModTime.Equal(made) {
			t.Errorf("%s: mode %o, owner %d, time %v", name, e.Mode, e.Uid, e.ModTime)
		}
	}
	if e := entries["usr/local/bin/wasmgate"]; e == nil || e.Mode != 0o755 {
		t.Errorf("the program: %+v", e)
	}
	if e := entries["etc/ssl/certs/ca-certificates.crt"]; e == nil || e.Size < 100_000 {
		t.Errorf("certificates: %+v", e)
	}

	// The list of materials refers to the image, and names what the program was built of.
	var about oci.Manifest
	unmarshal(t, blob(t, dir, index.Manifests[1]), &about)
	var sbom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	unmarshal(t, blob(t, dir, about.Layers[0]), &sbom)
	if about.Subject.Digest != images.Manifests[0].Digest || sbom.BOMFormat != "CycloneDX" {
		t.Errorf("list of materials: %+v", about)
	}
	found := false
	for _, c := range sbom.Components {
		found = found || c.Name == "github.com/opencontainers/image-spec" && strings.HasPrefix(c.PURL, "pkg:golang/github.com/opencontainers/image-spec@v")
	}
	if !found {
		t.Errorf("components %v", sbom.Components)
	}
	withFiles(t, amd)
	t.Run("skopeo", func(t *testing.T) {
		toolchain.Need(t, "skopeo")
		out, err := exec.CommandContext(t.Context(), "skopeo", "inspect", "--override-arch", "arm64", "--override-os", "linux", "oci:"+dir+":v1.2.3").CombinedOutput()
		var seen struct {
			Architecture string
			Labels       map[string]string
			Layers       []string
		}
		if err == nil {
			err = json.Unmarshal(out, &seen)
		}
		if err != nil || seen.Architecture != "arm64" || seen.Labels[oci.AnnotationVersion] != "v1.2.3" || len(seen.Layers) != 1 {
			t.Errorf("%v: %s", err, out)
		}
		copied := filepath.Join(t.TempDir(), "copied")
		if out, err := exec.CommandContext(t.Context(), "skopeo", "--insecure-policy", "copy", "--all", "oci:"+dir+":v1.2.3", "oci:"+copied+":v").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out) // it reads every blob against its digest
		}
	})
}

// TestRefuses binaries that could not run in the image, and a folder that is there.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := makeImage(dir, build(t, "amd64")); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
	if err := makeImage(filepath.Join(dir, "a"), "image_test.go"); err == nil {
		t.Error("a file that is not a program was taken")
	}
	out := filepath.Join(dir, "windows.exe")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if err := makeImage(filepath.Join(dir, "b"), out); err == nil || !strings.Contains(err.Error(), "is for windows/amd64") {
		t.Errorf("error %v", err)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// blob returns the bytes of a descriptor, which they have to fit.
func blob(t *testing.T, dir string, d oci.Descriptor) []byte {
	t.Helper()
	b := read(t, dir, filepath.Join("blobs", "sha256", d.Digest.Encoded()))
	if digestOf(b) != d.Digest || int64(len(b)) != d.Size {
		t.Fatalf("%s has %d bytes of another digest", d.Digest, len(b))
	}
	return b
}

func unmarshal(t *testing.T, b []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, dir string, d oci.Descriptor) map[string]*tar.Header {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(string(blob(t, dir, d))))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*tar.Header)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h
	}
}

// withFiles makes an image with files of others below those of its own.
func withFiles(t *testing.T, amd string) {
	t.Helper()
	files, dir := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.MkdirAll(filepath.Join(files, "amd64", "usr", "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "amd64", "usr", "bin", "node"), []byte("node"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("usr/bin", filepath.Join(files, "amd64", "bin")); err != nil {
		t.Fatal(err)
	}
	if err := makeImage(dir, "-files", files, amd); err != nil {
		t.Fatal(err)
	}
	var index, images oci.Index
	unmarshal(t, read(t, dir, "index.json"), &index)
	unmarshal(t, blob(t, dir, index.Manifests[0]), &images)
	var m oci.Manifest
	unmarshal(t, blob(t, dir, images.Manifests[0]), &m)
	var config oci.Image
	unmarshal(t, blob(t, dir, m.Config), &config)
	if len(m.Layers) != 2 || config.Config.Env[0] != "PATH=/usr/local/bin:/usr/bin:/bin" {
		t.Fatalf("%d layers, %q", len(m.Layers), config.Config.Env)
	}
	below := unpack(t, dir, m.Layers[0])
	if e := below["usr/bin/node"]; e == nil || e.Mode != 0o755 || e.Uid != 0 || !e.ModTime.Equal(made) {
		t.Errorf("the file: %+v", e)
	}
	if e := below["bin"]; e == nil || e.Typeflag != tar.TypeSymlink || e.Linkname != "usr/bin" {
		t.Errorf("the link: %+v", e)
	}
	if err := makeImage(filepath.Join(t.TempDir(), "image"), "-files", t.TempDir(), amd); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an image without the files of its architecture: %v", err)
	}
}
