package policyfiles

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/folder"
	"github.com/wasmgate/wasmgate/internal/files/watch"
	"github.com/wasmgate/wasmgate/policy"
)

// maxPolicyFile bounds a file of a policy, maxPolicyFiles how many there are.
const (
	maxPolicyFile  = 4 << 20
	maxPolicyFiles = 1000
)

// Files are those that a policy is made of.
type Files struct {
	file   string // the configuration's
	Policy config.Policy
}

// New returns the files of a configuration's policy, without its shadow.
func New(cfg *config.Config) *Files {
	p := cfg.Policy
	p.Shadow = nil
	return &Files{cfg.File, p}
}

// Shadow returns the files of its shadow policy, or nil if there is none.
func Shadow(cfg *config.Config) *Files {
	if cfg.Policy.Shadow == nil {
		return nil
	}
	return &Files{cfg.File, *cfg.Policy.Shadow}
}

// Read reads the policy of a configuration, as a gateway that starts on it would.
// What it falls back from is logged, and is in unread.
func Read(ctx context.Context, cfg *config.Config, log *slog.Logger) (p gateway.Policy, unread, err error) {
	bundles := NewBundles(cfg)
	if err := bundles.First(ctx, log); err != nil {
		return gateway.Policy{}, nil, err
	}
	for _, s := range bundles {
		unread = errors.Join(unread, s.unread)
	}
	p, err = New(cfg).Load()
	p.Options.Bundles = bundles.newest()
	return p, unread, err
}

// Load reads all files; bundles are none of them.
func (p *Files) Load() (gateway.Policy, error) {
	grants, err := policydata.ReadGrants(p.Policy.Grants)
	if err != nil {
		return gateway.Policy{}, err
	}
	o := policy.Options{Packs: p.Policy.Packs, Timeout: p.Policy.Timeout}
	shared, err := policydata.ParseGrants("the grants that gateways share", p.Policy.Shared)
	if err != nil {
		return gateway.Policy{}, err
	}
	for _, g := range slices.Concat(grants, shared) {
		o.Grants = append(o.Grants, policy.Grant(g))
	}
	labels, err := policydata.ReadLabels(p.Policy.Labels)
	if err != nil {
		return gateway.Policy{}, err
	}
	o.Labels = Labels(labels)
	limits, err := policydata.ReadRateLimits(p.Policy.RateLimits)
	if err != nil {
		return gateway.Policy{}, err
	}
	o.RateLimits = rateLimits(limits)
	files, err := p.tree()
	return gateway.Policy{Files: files, Options: o}, err
}

// Labels puts the labels of a file into the words of a policy.
func Labels(from []policydata.ToolLabel) []policy.Label {
	var to []policy.Label
	for _, l := range from {
		label := policy.Label{Pattern: l.Pattern, ToolLabels: provenance.ToolLabels{
			Result: provenance.ResultKind(l.Result), Private: l.Private, Kind: provenance.TextKind(l.Kind), Control: l.Control, Content: l.Content,
			To: l.To, Commits: l.Commits, Takes: l.Takes, Identity: places(l.Identity), Names: places(l.Names), Makes: l.Makes, Own: places(l.Own), DestroysOwn: l.Destroys == "own",
		}}
		for place, kind := range l.IDs {
			if label.IDs == nil {
				label.IDs = make(map[provenance.Place]string)
			}
			label.IDs[provenance.Place(place)] = kind
		}
		for _, e := range l.Effect {
			label.Effects = append(label.Effects, provenance.ToolEffect(e))
		}
		to = append(to, label)
	}
	return to
}

func places(from []string) []provenance.Place {
	var to []provenance.Place
	for _, p := range from {
		to = append(to, provenance.Place(p))
	}
	return to
}

// tree returns the user's .rego files as one file system, named as the user
// would name them. Nil means there are none.
func (p *Files) tree() (fs.FS, error) {
	return tree(p.Policy.Paths, p.name)
}

// Folder returns the .rego files of a folder, named from it on. Nil means there are none.
func Folder(dir string) (fs.FS, error) {
	return tree([]string{dir}, (&Files{file: filepath.Join(dir, "x")}).name)
}

func tree(roots []string, name func(path string) string) (fs.FS, error) {
	files := make(fstest.MapFS)
	for _, root := range roots {
		err := folder.Walk(root, func(path string, err error) error {
			if err != nil || filepath.Ext(path) != ".rego" {
				return err
			}
			if len(files) == maxPolicyFiles {
				return fmt.Errorf("more than %d policy files", maxPolicyFiles)
			}
			return addFile(files, path, name(path))
		})
		if err != nil {
			return nil, fmt.Errorf("read policies: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	return files, nil
}

// name shortens a path to one from the configuration's folder, where it can.
func (p *Files) name(path string) string {
	if rel, err := filepath.Rel(filepath.Dir(p.file), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return strings.TrimPrefix(filepath.ToSlash(path), "/")
}

func addFile(files fstest.MapFS, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxPolicyFile {
		return fmt.Errorf("%s is larger than %d bytes", path, maxPolicyFile)
	}
	data, err := os.ReadFile(path)
	files[name] = &fstest.MapFile{Data: data}
	return err
}

// State tells one version of the files from another.
func (p *Files) State() [32]byte {
	h := sha256.New()
	roots := append([]string{p.Policy.Grants, p.Policy.Labels, p.Policy.RateLimits}, p.Policy.Paths...)
	for _, b := range p.Policy.Bundles {
		if b.Path != "" {
			roots = append(roots, b.Path, filepath.Join(b.Path, ".manifest"), filepath.Join(b.Path, ".signatures.json")) // a walk skips hidden files
		}
	}
	roots = slices.DeleteFunc(roots, func(root string) bool { return root == "" }) // "" would be the working directory
	for _, root := range roots {
		_ = folder.Walk(root, func(path string, err error) error {
			fmt.Fprintf(h, "%s %v %s\n", path, err, watch.State(path))
			return nil
		})
	}
	return [32]byte(h.Sum(nil))
}

// Watch calls f, and again whenever the files of a configuration's policy have
// changed, until ctx ends.
func Watch(ctx context.Context, cfg *config.Config, f func()) {
	files := New(cfg)
	last := files.State() // before f reads them
	f()
	watch.Each(ctx, func() {
		if now := files.State(); now != last {
			last = now
			f()
		}
	})
}

// rateLimits puts the limits of a file into the words of a policy.
func rateLimits(from []policydata.RateLimit) []policy.RateLimit {
	var to []policy.RateLimit
	for _, l := range from {
		to = append(to, policy.RateLimit{
			To: l.To, Tools: l.Tools, Servers: l.Servers, Except: l.Except, Key: l.Key,
			Calls: int64(l.Calls), Bytes: l.Bytes, Per: l.Per.String(), Burst: int64(l.Burst),
		})
	}
	return to
}
