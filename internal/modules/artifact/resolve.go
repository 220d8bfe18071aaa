package artifact

import (
	"context"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// Resolve returns the digest that an image has now, of a name as docker takes it: without a
// registry it is Docker Hub's, without a tag the latest.
func (s *Store) Resolve(ctx context.Context, image string) (string, error) {
	if host, _, _ := strings.Cut(image, "/"); host == image || !strings.ContainsAny(host, ".:") && host != "localhost" {
		image = "docker.io/" + image
	}
	if path, official := strings.CutPrefix(image, "docker.io/"); official && !strings.Contains(path, "/") {
		image = "docker.io/library/" + path
	}
	if !strings.Contains(image[strings.LastIndexByte(image, '/'):], ":") {
		image += ":latest"
	}
	ref, err := ParseTag(scheme + image)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("took longer than %v: %w", s.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	defer s.closeIdle()
	repo := s.repository(ref)
	found, err := described(ctx, repo, ref.Tag)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err == nil && !digestPattern.MatchString(found) {
		err = fmt.Errorf("the registry returned the digest %.80q, which is malformed", found)
	}
	if err != nil {
		err = (&puller{ref: ref, repo: repo, keys: s.keys}).explain(ctx, err)
		return "", fmt.Errorf("artifact: digest of %s: %w", image, err)
	}
	return found, nil
}

// described returns the digest of the manifest that a tag names and reads all its bytes.
func described(ctx context.Context, repo *remote.Repository, tag string) (string, error) {
	found, body, err := repo.FetchReference(ctx, tag)
	if err != nil {
		return "", err
	}
	defer body.Close()
	if found.Size > maxManifest {
		return "", fmt.Errorf("the manifest has %d bytes; at most %d are allowed", found.Size, int64(maxManifest))
	}
	_, err = content.ReadAll(body, found)
	return string(found.Digest), err
}
