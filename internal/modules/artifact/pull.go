package artifact

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// maxManifest bounds a manifest, in bytes, as the OCI distribution specification
// 1.1 asks registries to accept.
const maxManifest = 4 << 20

// A puller fetches from one repository, through the cache.
type puller struct {
	ref      Reference
	repo     *remote.Repository
	cache    cache
	keys     keyring
	progress func(done, total int64)
}

func (s *Store) pull(ctx context.Context, ref Reference) (Module, error) {
	if err := s.cache.prepare(); err != nil {
		return Module{}, err
	}
	defer s.closeIdle()
	p := &puller{ref, s.repository(ref), s.cache, s.keys, s.cfg.Progress}
	return p.module(ctx)
}

func (p *puller) module(ctx context.Context) (Module, error) {
	m, err := p.image(ctx)
	if err != nil {
		return Module{}, err
	}
	layer, tars, err := m.module()
	if err != nil {
		return Module{}, err
	}
	if len(tars) > 0 {
		return p.search(ctx, tars)
	}
	b, err := p.layer(ctx, layer)
	if err != nil {
		return Module{}, err
	}
	return newModule(b, fmt.Sprintf("%s, layer %s", p.ref, layer.Digest))
}

// image returns the manifest that the reference stands for, or that of the
// index's entry.
func (p *puller) image(ctx context.Context) (manifest, error) {
	m, err := p.manifest(ctx, digest.Digest(p.ref.Digest))
	if err != nil || !m.isIndex() {
		return m, err
	}
	entry, err := m.entry()
	if err != nil {
		return manifest{}, err
	}
	if m, err = p.manifest(ctx, entry.Digest); err != nil {
		return manifest{}, fmt.Errorf("entry %.80q of the index: %w", entry.Digest, err)
	}
	if m.isIndex() {
		return manifest{}, fmt.Errorf("entry %s of the index is an index itself, which is not supported", entry.Digest)
	}
	return m, nil
}

func (p *puller) manifest(ctx context.Context, d digest.Digest) (manifest, error) {
	if err := checkDigest(d); err != nil {
		return manifest{}, err
	}
	b := p.cache.read(d, maxManifest)
	if b == nil {
		var err error
		if b, err = p.fetchManifest(ctx, d); err != nil {
			return manifest{}, fmt.Errorf("manifest: %w", p.explain(ctx, err))
		}
		p.cache.write(d, b)
	}
	return parseManifest(b)
}

func (p *puller) fetchManifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	desc, body, err := p.repo.Manifests().FetchReference(ctx, d.String())
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if desc.Size > maxManifest {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", desc.Size, maxManifest)
	}
	return content.ReadAll(body, ocispec.Descriptor{Digest: d, Size: desc.Size})
}

// layer returns the bytes that desc stands for.
func (p *puller) layer(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	if err := checkDigest(desc.Digest); err != nil {
		return nil, err
	}
	if desc.Size < 0 || desc.Size > maxModule {
		return nil, fmt.Errorf("layer %s has %d bytes according to the manifest; at most %d are allowed", desc.Digest, desc.Size, maxModule)
	}
	if b := p.cache.read(desc.Digest, maxModule); int64(len(b)) == desc.Size && b != nil {
		return b, nil
	}
	b, err := p.fetchLayer(ctx, desc)
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", desc.Digest, p.explain(ctx, err))
	}
	p.cache.write(desc.Digest, b)
	return b, nil
}

func (p *puller) fetchLayer(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	body, err := p.repo.Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return content.ReadAll(&counted{r: body, total: desc.Size, progress: p.progress}, desc)
}

// search returns the one module in the layers of a container image.
func (p *puller) search(ctx context.Context, tars []ocispec.Descriptor) (Module, error) {
	s := search{left: maxUnpacked}
	for _, layer := range tars {
		b, err := p.layer(ctx, layer)
		if err != nil {
			return Module{}, err
		}
		if err := s.layer(ctx, b, strings.HasSuffix(layer.MediaType, "gzip")); err != nil {
			return Module{}, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
	}
	name, b, err := s.only()
	if err != nil {
		return Module{}, err
	}
	return newModule(b, fmt.Sprintf("%s, file %.80q", p.ref, name))
}

// checkDigest comes before any use of a digest from a manifest, which is text of
// any kind until then. SHA-256 is what all registries use.
func checkDigest(d digest.Digest) error {
	if !digestPattern.MatchString(string(d)) {
		return fmt.Errorf("the digest %.80q in the manifest is not sha256: and 64 hex digits in lower case", d)
	}
	return nil
}

// counted tells how much of r was read.
type counted struct {
	r           io.Reader
	done, total int64
	progress    func(done, total int64)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 {
		c.done += int64(n)
		c.progress(min(c.done, c.total), c.total)
	}
	return n, err
}
