package policyfiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files"
	"github.com/wasmgate/wasmgate/policy/bundle"
)

const (
	// fetchTime bounds one fetch of a bundle, redirects included.
	fetchTime = 30 * time.Second
	// maxKey bounds a file with a public key, in bytes.
	maxKey = 64 << 10
)

// A Bundle is where a bundle comes from, and what came from it.
type Bundle struct {
	Config config.Bundle
	kept   string // path of the copy of the last good one
	client *dial.Client

	mu     sync.Mutex
	asked  time.Time // when the source was asked last
	etag   string
	latest *bundle.Bundle // as the source gave it last; nil before it did
	good   *bundle.Bundle // the last one with which the policy loaded; nil before the first
	copied bool           // whether good is the copy of an earlier process
	saved  string         // digest of the copy
	unread error          // why the source cannot be read
	unfit  error          // why latest is not in use
}

// Bundles are those of a policy, in order.
type Bundles []*Bundle

// NewBundles returns the bundles of a configuration's policy. None was asked for yet.
func NewBundles(cfg *config.Config) Bundles { return Bundles(nil).Renewed(cfg) }

// Renewed returns the bundles of another configuration's policy. A bundle whose settings are the same
// is kept, with its state; the others were not read yet.
func (all Bundles) Renewed(cfg *config.Config) (next Bundles) {
	client := dial.New(dial.Options{})
	for _, b := range cfg.Policy.Bundles {
		if i := slices.IndexFunc(all, func(s *Bundle) bool { return reflect.DeepEqual(s.Config, b) }); i >= 0 {
			next = append(next, all[i])
			continue
		}
		sum := sha256.Sum256([]byte(b.Path + b.URL)) // another source has another copy
		name := b.Name + "-" + hex.EncodeToString(sum[:4]) + ".tar.gz"
		next = append(next, &Bundle{Config: b, kept: filepath.Join(cfg.State, "bundles", name), client: client})
	}
	return next
}

// Due reports whether it is time to ask the source at its URL again.
func (s *Bundle) Due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Config.URL != "" && time.Since(s.asked) >= s.Config.Poll
}

// Read asks the source, and reports whether it gave what it had not given before.
// The error, which status shows until the source can be read again, leaves what is
// in use as it is.
func (s *Bundle) Read(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	etag, before := s.etag, s.latest
	s.asked = time.Now()
	s.mu.Unlock()
	b, etag, err := s.get(ctx, etag)
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread = err; err != nil {
		return false, err
	}
	if b == nil || before != nil && b.Digest() == before.Digest() {
		return false, nil
	}
	s.latest, s.etag = b, etag
	return true, nil
}

// get returns the bundle that the source holds now, verified, and its entity tag. It
// is nil if that is still the one with the given tag.
func (s *Bundle) get(ctx context.Context, etag string) (*bundle.Bundle, string, error) {
	o, err := s.options()
	if err != nil {
		return nil, "", err
	}
	if s.Config.URL != "" {
		body, tag, err := s.fetch(ctx, etag)
		if err != nil || body == nil {
			return nil, "", err
		}
		b, err := bundle.Read(body, o)
		return b, tag, err
	}
	info, err := os.Stat(s.Config.Path)
	if err == nil && info.IsDir() {
		var root *os.Root // a link in it leads nowhere else
		if root, err = os.OpenRoot(s.Config.Path); err == nil {
			defer root.Close()
			b, err := bundle.ReadFolder(root.FS(), o)
			return b, "", err
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("bundle %s: %w", s.Config.Name, err)
	}
	b, err := readArchive(s.Config.Path, o)
	return b, "", err
}

// options returns how the bundle is read. Keys are read anew each time: one that is
// taken away verifies nothing more.
func (s *Bundle) options() (bundle.Options, error) {
	o := bundle.Options{Name: s.Config.Name}
	if s.Config.Verify == nil {
		return o, nil
	}
	o.Verify = &bundle.Verification{Keys: map[string]string{}, Scope: s.Config.Verify.Scope, Algorithm: s.Config.Verify.Algorithm}
	for id, key := range s.Config.Verify.Keys {
		if !strings.HasPrefix(key, config.PEM) {
			text, err := readBounded(key, maxKey)
			if err != nil {
				return o, fmt.Errorf("bundle %s: key %s: %w", s.Config.Name, id, err)
			}
			key = string(text)
		}
		o.Verify.Keys[id] = key
	}
	return o, nil
}

// fetch asks for the archive, unless it still has the entity tag (RFC 9110, 13.1.2).
// Only the one origin is ever asked, and only if its address may be.
func (s *Bundle) fetch(ctx context.Context, etag string) (body []byte, tag string, err error) {
	fail := func(err error) ([]byte, string, error) {
		return nil, "", fmt.Errorf("bundle %s: fetch: %w", s.Config.Name, err)
	}
	to, err := dial.NewTarget(http.MethodGet, s.Config.URL)
	if err != nil {
		return fail(err)
	}
	rules, err := dial.Compile([]dial.Rule{{Origin: to.Origin(), Private: s.Config.Private}})
	if err != nil {
		return fail(err)
	}
	header := http.Header{}
	for name, value := range s.Config.Headers {
		header.Set(name, string(value))
	}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	answer, err := s.client.Egress(dial.Scope{
		Rules:  rules,
		Limits: dial.Limits{ResponseBytes: bundle.MaxBytes + maxKey, Timeout: fetchTime},
		Ask:    func(context.Context, dial.Target) error { return nil }, // the operator named it
	}).Do(ctx, dial.Request{URL: s.Config.URL, Header: header})
	switch {
	case err != nil:
		return fail(explained(err))
	case answer.Status == http.StatusNotModified && etag != "":
		return nil, etag, nil
	case answer.Status != http.StatusOK:
		return fail(fmt.Errorf("the server answered with status %d", answer.Status))
	}
	return answer.Body, http.Header(answer.Header).Get("Etag"), nil
}

// explained returns what an operator may know beyond what a tool may.
func explained(err error) error {
	var denied *dial.Denied
	var failed *dial.Failed
	switch {
	case errors.As(err, &denied) && denied.Need != nil && denied.Need.Private:
		return fmt.Errorf("%w; if that is meant, set private: true", err)
	case errors.As(err, &failed) && failed.Detail != "" && failed.Detail != failed.Reason:
		return fmt.Errorf("%w (%s)", err, failed.Detail)
	}
	return err
}

// restore reads the copy of the last good bundle, if there is one that is still
// signed as it has to be.
func (s *Bundle) restore() error {
	o, err := s.options()
	if err != nil {
		return err
	}
	b, err := readArchive(s.kept, o)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no copy of an earlier one in %s", filepath.Dir(s.kept))
	}
	if err != nil {
		return fmt.Errorf("the kept copy: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good, s.saved, s.copied = b, b.Digest(), true
	return nil
}

// newest returns the bundle to be tried, and whether it differs from the one in use.
func (s *Bundle) newest() (b *bundle.Bundle, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil {
		return s.good, false
	}
	return s.latest, s.good == nil || s.latest.Digest() != s.good.Digest()
}

// inUse returns the last good bundle; nil if there is none.
func (s *Bundle) inUse() *bundle.Bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.good
}

// adopt makes the newest bundle the last good one, and keeps a copy of it.
func (s *Bundle) adopt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil {
		return nil
	}
	s.good, s.unfit, s.copied = s.latest, nil, false
	if s.saved == s.good.Digest() {
		return nil
	}
	if err := s.save(); err != nil {
		return fmt.Errorf("bundle %s: keep a copy: %w", s.Config.Name, err)
	}
	s.saved = s.good.Digest()
	return nil
}

// save writes the copy: whole or not at all, and readable only by its owner.
func (s *Bundle) save() error {
	archive, err := s.good.Archive()
	if err != nil {
		return err
	}
	if len(archive) > bundle.MaxBytes {
		return fmt.Errorf("it has more than %d bytes packed", bundle.MaxBytes)
	}
	if err := os.MkdirAll(filepath.Dir(s.kept), 0o700); err != nil {
		return err
	}
	return files.ReplaceSynced(s.kept, archive, 0o600)
}

// refuse notes why the newest bundle is not in use.
func (s *Bundle) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unfit = fmt.Errorf("bundle %s: %w", s.Config.Name, err)
}

// BundleStatus is the state of a bundle.
type BundleStatus struct {
	Name     string `json:"name"`
	Source   string `json:"source"` // path or URL, without its query
	Revision string `json:"revision,omitempty"`
	Digest   string `json:"digest"` // of the files in use
	Verified bool   `json:"verified"`
	Copy     bool   `json:"copy"`            // the copy of an earlier process is in use
	Error    string `json:"error,omitempty"` // why the source cannot be read, or what it holds is not in use
}

// Status returns the state of the bundle.
func (s *Bundle) Status() BundleStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := BundleStatus{Name: s.Config.Name, Source: s.Config.String(), Verified: s.Config.Verify != nil, Copy: s.copied}
	if s.good != nil {
		b.Revision, b.Digest = s.good.Revision(), s.good.Digest()
	}
	if err := errors.Join(s.unread, s.unfit); err != nil {
		b.Error = err.Error()
	}
	return b
}

func readArchive(path string, o bundle.Options) (*bundle.Bundle, error) {
	archive, err := readBounded(path, bundle.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", o.Name, err)
	}
	return bundle.Read(archive, o)
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}
