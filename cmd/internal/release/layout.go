package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// A layout is a folder of images in the making.
type layout struct {
	dir string
	release
	images []oci.Descriptor
	others []oci.Descriptor // that refer to them
}

// configured is where an image expects its configuration.
const configured = "/etc/wasmgate/wasmgate.yaml"

// sbomType is what a list of materials is.
const sbomType = "application/vnd.cyclonedx+json"

func newLayout(dir string, r release) (*layout, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return &layout{dir: dir, release: r}, os.MkdirAll(filepath.Join(dir, oci.ImageBlobsDir, "sha256"), 0o755)
}

func digestOf(b []byte) digest.Digest { return digest.FromBytes(b) }

// blob keeps bytes under their digest.
func (l *layout) blob(mediaType string, b []byte) (oci.Descriptor, error) {
	d := digestOf(b)
	return oci.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b))}, os.WriteFile(filepath.Join(l.dir, oci.ImageBlobsDir, "sha256", d.Encoded()), b, 0o644)
}

func (l *layout) object(mediaType string, v any) (oci.Descriptor, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return oci.Descriptor{}, err
	}
	return l.blob(mediaType, b)
}

// image is what runs in a container. Docker and Podman read the health check, which is no part of OCI's format.
type image struct {
	oci.Image
	Config struct {
		oci.ImageConfig
		Healthcheck health
	} `json:"config"`
}

type health struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
}

// add adds the image of a program, and what refers to it. The files of its architecture are a layer below.
func (l *layout) add(p program, files string) error {
	if err := p.forLinux(); err != nil {
		return err
	}
	sbom, err := l.sbom([]program{p})
	if err != nil {
		return err
	}
	trees, path := []*tree{l.files(p, sbom)}, "/usr/local/bin"
	if files != "" {
		below := newTree(l.created)
		if err := below.add(filepath.Join(files, p.arch)); err != nil {
			return err
		}
		trees, path = append([]*tree{below}, trees...), path+":/usr/bin:/bin"
	}
	platform := oci.Platform{OS: p.os, Architecture: p.arch}
	about := image{Image: oci.Image{Created: &l.created, Platform: platform, RootFS: oci.RootFS{Type: "layers"}}}
	about.Config.ImageConfig = oci.ImageConfig{
		User: "65532:65532", Entrypoint: []string{"/usr/local/bin/wasmgate"}, Cmd: []string{"serve", "--config", configured},
		WorkingDir: "/var/lib/wasmgate", Volumes: map[string]struct{}{"/var/lib/wasmgate": {}}, StopSignal: "SIGTERM",
		Env:    []string{"PATH=" + path, "HOME=/var/lib/wasmgate", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: l.annotations(),
	}
	about.Config.Healthcheck = health{
		Test:     []string{"CMD", "/usr/local/bin/wasmgate", "status", "--config", configured},
		Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute,
	}
	var layers []oci.Descriptor
	for _, t := range trees {
		packed, plain, err := t.packed()
		if err != nil {
			return err
		}
		content, err := l.blob(oci.MediaTypeImageLayerGzip, packed)
		if err != nil {
			return err
		}
		layers = append(layers, content)
		about.RootFS.DiffIDs = append(about.RootFS.DiffIDs, digestOf(plain))
	}
	config, err := l.object(oci.MediaTypeImageConfig, about)
	if err != nil {
		return err
	}
	made, err := l.object(oci.MediaTypeImageManifest, oci.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, Config: config, Layers: layers, Annotations: l.annotations(),
	})
	if err != nil {
		return err
	}
	made.Platform = &platform
	l.images = append(l.images, made)
	return l.refer(made, sbom)
}

// refer adds the list of materials of an image, as an artifact that refers to it.
func (l *layout) refer(image oci.Descriptor, sbom []byte) error {
	content, err := l.blob(sbomType, sbom)
	if err != nil {
		return err
	}
	empty := oci.DescriptorEmptyJSON
	if _, err := l.blob(empty.MediaType, empty.Data); err != nil {
		return err
	}
	subject := oci.Descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: image.Size}
	other, err := l.object(oci.MediaTypeImageManifest, oci.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, ArtifactType: sbomType, Config: empty,
		Layers: []oci.Descriptor{content}, Subject: &subject,
	})
	other.ArtifactType = sbomType
	l.others = append(l.others, other)
	return err
}

// close writes the index: one name for the images of all platforms.
func (l *layout) close() error {
	index, err := l.object(oci.MediaTypeImageIndex, oci.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: l.images, Annotations: l.annotations(),
	})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{oci.AnnotationRefName: l.version}
	all := oci.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: append([]oci.Descriptor{index}, l.others...)}
	for name, v := range map[string]any{oci.ImageIndexFile: all, oci.ImageLayoutFile: oci.ImageLayout{Version: oci.ImageLayoutVersion}} {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(l.dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r release) annotations() map[string]string {
	return map[string]string{
		oci.AnnotationTitle: "wasmgate", oci.AnnotationVersion: r.version, oci.AnnotationLicenses: "Apache-2.0",
		oci.AnnotationSource: source, oci.AnnotationDescription: "A WebAssembly-sandboxed MCP gateway with capability-gated tool calls",
	}
}
