package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Docker's names of what OCI took over from it.
const (
	dockerManifest  = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerLayerGzip = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

const (
	// maxTarLayers bounds the layers of a container image that are searched. A
	// plug-in's image has one or two; one with more is a program's.
	maxTarLayers = 8
	// maxListed bounds how many candidates an error names.
	maxListed = 8
)

var (
	manifestTypes = []string{ocispec.MediaTypeImageManifest, dockerManifest}
	indexTypes    = []string{ocispec.MediaTypeImageIndex, dockerIndex}

	// wasmTypes are what modules are published as: by the CNCF's "Wasm OCI
	// Artifact" guidance, by wasm-to-oci, and by Solo's WASM Image Specification.
	// The last one is a component, which is fetched so that the sandbox can say what
	// to do.
	wasmTypes = []string{
		"application/wasm",
		"application/vnd.wasm.content.layer.v1+wasm",
		"application/vnd.module.wasm.content.layer.v1+wasm",
		"application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
	}
	tarTypes = []string{ocispec.MediaTypeImageLayer, ocispec.MediaTypeImageLayerGzip, dockerLayerGzip}
)

// A manifest is an image manifest, which has layers, or an index, which has
// manifests.
type manifest struct {
	MediaType string               `json:"mediaType"`
	Manifests []ocispec.Descriptor `json:"manifests"`
	Layers    []ocispec.Descriptor `json:"layers"`
}

// parseManifest reads a manifest. Its type follows from its own bytes, which the digest covers, and not
// from the registry's Content-Type, which the digest does not cover.
func parseManifest(b []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return manifest{}, fmt.Errorf("the artifact's manifest is not valid: %w", err)
	}
	switch {
	case m.MediaType != "" && !slices.Contains(manifestTypes, m.MediaType) && !slices.Contains(indexTypes, m.MediaType):
		return manifest{}, fmt.Errorf("the manifest is of the type %.80q, which is not supported: it must be an image manifest or index of OCI or Docker", m.MediaType)
	case len(m.Layers) > 0 && len(m.Manifests) > 0: // readers would not agree on what it is: CVE-2021-41190
		return manifest{}, errors.New("the manifest has both layers and manifests")
	case m.isIndex() && len(m.Manifests) == 0 || !m.isIndex() && len(m.Layers) == 0:
		return manifest{}, errors.New("the manifest is empty: it names no layer")
	}
	return m, nil
}

// isIndex goes by the content only where the type is left out, which OCI allows.
func (m manifest) isIndex() bool {
	return slices.Contains(indexTypes, m.MediaType) || m.MediaType == "" && len(m.Manifests) > 0
}

// entry returns the manifest of an index that is for WASM, or the only one.
func (m manifest) entry() (ocispec.Descriptor, error) {
	found := filter(m.Manifests, isWASM)
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(m.Manifests), isAttestation)
	}
	if len(found) != 1 {
		return ocispec.Descriptor{}, fmt.Errorf("the index has %d manifests that match; use the digest of one of them: %s", len(found), list(found))
	}
	return found[0], nil
}

func isWASM(d ocispec.Descriptor) bool {
	return d.Platform != nil && (strings.HasPrefix(d.Platform.Architecture, "wasm") || strings.HasPrefix(d.Platform.OS, "wasi"))
}

// isAttestation recognizes the descriptions that Docker's buildx adds to an image, about how it was
// built.
func isAttestation(d ocispec.Descriptor) bool {
	return d.Annotations["vnd.docker.reference.type"] == "attestation-manifest"
}

// module returns the layer that is the module, or the tar layers to search for
// it.
func (m manifest) module() (layer ocispec.Descriptor, tars []ocispec.Descriptor, err error) {
	wasm := filter(m.Layers, func(d ocispec.Descriptor) bool { return slices.Contains(wasmTypes, d.MediaType) })
	tars = filter(m.Layers, func(d ocispec.Descriptor) bool { return slices.Contains(tarTypes, d.MediaType) })
	switch {
	case len(wasm) == 1:
		return wasm[0], nil, nil
	case len(wasm) > 1:
		return layer, nil, fmt.Errorf("the artifact has %d layers with a WebAssembly module; publish one in an artifact of its own: %s", len(wasm), list(wasm))
	case len(tars) > maxTarLayers:
		return layer, nil, fmt.Errorf("it is a container image of %d layers, more than the %d that are searched for a module", len(tars), maxTarLayers)
	case len(tars) > 0:
		return layer, tars, nil
	case len(m.Layers) == 1:
		return m.Layers[0], nil, nil
	}
	return layer, nil, fmt.Errorf("no layer of the artifact is a WebAssembly module; publish the module with the media type application/wasm: %s", list(m.Layers))
}

func filter(all []ocispec.Descriptor, keep func(ocispec.Descriptor) bool) []ocispec.Descriptor {
	var kept []ocispec.Descriptor
	for _, d := range all {
		if keep(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

// list names descriptors in an error. All of their text is foreign.
func list(all []ocispec.Descriptor) string {
	var names []string
	for _, d := range all[:min(len(all), maxListed)] {
		name := fmt.Sprintf("%.80q", d.Digest)
		switch title := d.Annotations[ocispec.AnnotationTitle]; {
		case d.Platform != nil:
			name += fmt.Sprintf(" (%.40q)", d.Platform.OS+"/"+d.Platform.Architecture)
		case title != "":
			name += fmt.Sprintf(" (%.80q, %.80q)", d.MediaType, title)
		default:
			name += fmt.Sprintf(" (%.80q)", d.MediaType)
		}
		names = append(names, name)
	}
	if len(all) > maxListed {
		names = append(names, fmt.Sprintf("and %d more", len(all)-maxListed))
	}
	return strings.Join(names, ", ")
}
