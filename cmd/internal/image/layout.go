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
	dir    string
	images []oci.Descriptor
	others []oci.Descriptor // that refer to them
}

// sbomType is what a list of materials is.
const sbomType = "application/vnd.cyclonedx+json"

func newLayout(dir string) (*layout, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return &layout{dir: dir}, os.MkdirAll(filepath.Join(dir, oci.ImageBlobsDir, "sha256"), 0o755)
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

// add adds the image of a binary, and what refers to it.
func (l *layout) add(name, version string, created time.Time) error {
	b, err := readBinary(name)
	if err != nil {
		return err
	}
	sbom, err := materials(b, version, created)
	if err != nil {
		return err
	}
	packed, plain, err := layer(b, sbom, created)
	if err != nil {
		return err
	}
	content, err := l.blob(oci.MediaTypeImageLayerGzip, packed)
	if err != nil {
		return err
	}
	platform := oci.Platform{OS: b.os, Architecture: b.arch}
	config, err := l.object(oci.MediaTypeImageConfig, oci.Image{
		Created: &created, Platform: platform, RootFS: oci.RootFS{Type: "layers", DiffIDs: []digest.Digest{digestOf(plain)}},
		Config: oci.ImageConfig{
			User: "65532:65532", Entrypoint: []string{"/usr/local/bin/wasmgate"}, Cmd: []string{"serve", "--config", "/etc/wasmgate/wasmgate.yaml"},
			WorkingDir: "/var/lib/wasmgate", Volumes: map[string]struct{}{"/var/lib/wasmgate": {}}, StopSignal: "SIGTERM",
			Env:    []string{"PATH=/usr/local/bin", "HOME=/var/lib/wasmgate", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			Labels: annotations(version),
		},
	})
	if err != nil {
		return err
	}
	image, err := l.object(oci.MediaTypeImageManifest, oci.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, Config: config, Layers: []oci.Descriptor{content}, Annotations: annotations(version),
	})
	if err != nil {
		return err
	}
	image.Platform = &platform
	l.images = append(l.images, image)
	return l.refer(image, sbom)
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
func (l *layout) close(version string, created time.Time) error {
	index, err := l.object(oci.MediaTypeImageIndex, oci.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: l.images, Annotations: annotations(version),
	})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{oci.AnnotationRefName: version}
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

func annotations(version string) map[string]string {
	return map[string]string{
		oci.AnnotationTitle: "wasmgate", oci.AnnotationVersion: version, oci.AnnotationLicenses: "Apache-2.0",
		oci.AnnotationSource: "https://github.com/wasmgate/wasmgate", oci.AnnotationDescription: "A WebAssembly-sandboxed MCP gateway with capability-gated tool calls",
	}
}
