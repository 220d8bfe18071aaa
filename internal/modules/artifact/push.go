package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// wasmConfig is the media type of the configuration of a module, by the CNCF's "Wasm OCI
// Artifact" guidance.
const wasmConfig = "application/vnd.wasm.config.v0+json"

// ParseTag reads where a module is pushed to: oci://registry/repository:tag.
func ParseTag(s string) (Reference, error) {
	rest, remote := strings.CutPrefix(s, scheme)
	if !remote || strings.Contains(rest, "@") || len(s) > maxReference {
		return Reference{}, fmt.Errorf("artifact: %.200q is not oci://registry/repository:tag", s)
	}
	r, err := parseRemote(rest + "@sha256:" + strings.Repeat("0", 64))
	switch {
	case err != nil:
		return Reference{}, fmt.Errorf("artifact: %.200q: %w", s, err)
	case r.Tag == "":
		return Reference{}, fmt.Errorf("artifact: %.200q has no tag: append one, such as :v1", s)
	}
	r.Digest = ""
	return r, nil
}

// Push puts a module into a registry under a tag, and returns the reference by which [Store.Fetch]
// finds exactly this module. The same module gives the same digest.
func (s *Store) Push(ctx context.Context, to Reference, module []byte) (Reference, error) {
	switch {
	case len(module) > maxModule:
		return to, fmt.Errorf("artifact: the module has %d bytes; at most %d are allowed", len(module), maxModule)
	case !bytes.HasPrefix(module, []byte(magic)):
		return to, errors.New("artifact: the file is not a WebAssembly module")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("took longer than %v: %w", s.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	defer s.closeIdle()
	repo := s.repository(to)
	layer := content.NewDescriptorFromBytes(wasmTypes[0], module)
	config := encode(map[string]any{"architecture": "wasm", "os": "wasip1", "layerDigests": []string{string(layer.Digest)}})
	image := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: content.NewDescriptorFromBytes(wasmConfig, config), Layers: []ocispec.Descriptor{layer},
	}
	manifest := encode(image)
	described := content.NewDescriptorFromBytes(image.MediaType, manifest)
	err := repo.Push(ctx, image.Config, bytes.NewReader(config))
	if err == nil {
		err = repo.Push(ctx, layer, bytes.NewReader(module))
	}
	if err == nil {
		err = repo.PushReference(ctx, described, bytes.NewReader(manifest), to.Tag)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		err = (&puller{ref: to, repo: repo, keys: s.keys}).explain(ctx, err)
		return to, fmt.Errorf("artifact: push to %s/%s: %w", to.Registry, to.Repository, err)
	}
	to.Digest = string(described.Digest)
	return to, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // made of texts and numbers here
	}
	return b
}
