package auth

import (
	"bytes"
	"context"
	"crypto"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Sighting is what an issuer publishes about itself. It helps to find mistakes in the configuration.
type Sighting struct {
	Said    string        // the issuer that its metadata names; "" if there is none
	Keys    []string      // its keys, by their ids
	Fitting []string      // those that are for one of the algorithms that it may sign with
	Foreign bool          // its metadata names other keys than those that are configured
	Clock   time.Duration // by how much its clock is before this machine's
}

// Look asks an issuer for its metadata and its keys, as a first token of it would.
func Look(ctx context.Context, c Issuer) (s Sighting, err error) {
	i, err := newIssuer(c, nil, time.Now)
	if err != nil {
		return s, err
	}
	keys := i.keys.keys
	if c.Keys == nil {
		url := c.KeysURL
		if url == "" {
			if url, s.Said, err = metadata(ctx, c.Fetch, c.URL); err != nil {
				return s, err
			}
		}
		raw, err := fetchDocument(ctx, func(ctx context.Context, url string) (io.ReadCloser, error) {
			return c.Fetch(context.WithValue(ctx, clockKey{}, &s.Clock), url)
		}, url)
		if err != nil {
			return s, err
		}
		if keys, err = parseKeys(raw); err != nil {
			return s, err
		}
	}
	if c.Keys != nil || c.KeysURL != "" {
		s.Foreign = foreign(ctx, c, keys)
	}
	for id, key := range keys {
		s.Keys = append(s.Keys, id)
		if slices.ContainsFunc(i.Algorithms, func(alg string) bool { return fits(key, alg) }) {
			s.Fitting = append(s.Fitting, id)
		}
	}
	slices.Sort(s.Keys)
	slices.Sort(s.Fitting)
	return s, nil
}

// foreign reports whether none of some keys is one that the issuer's metadata names, where it has any.
func foreign(ctx context.Context, c Issuer, keys map[string]jose.JSONWebKey) bool {
	if c.Fetch == nil {
		return false
	}
	url, _, err := metadata(ctx, c.Fetch, c.URL)
	if err != nil {
		return false
	}
	raw, err := fetchDocument(ctx, c.Fetch, url)
	if err != nil {
		return false
	}
	own, err := parseKeys(raw)
	if err != nil {
		return false
	}
	for _, key := range own { // whose ids say little: many call theirs "1"
		mark, err := key.Thumbprint(crypto.SHA256)
		if err != nil || slices.ContainsFunc(slices.Collect(maps.Values(keys)), func(k jose.JSONWebKey) bool {
			other, err := k.Thumbprint(crypto.SHA256)
			return err != nil || bytes.Equal(mark, other)
		}) {
			return false
		}
	}
	return true
}
