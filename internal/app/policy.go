package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/policy"
)

// maxPolicyFile bounds a file of a policy, maxPolicyFiles how many there are.
const (
	maxPolicyFile  = 4 << 20
	maxPolicyFiles = 1000
)

// watchEvery is how often the files of the policy are looked at. Looking works
// on every file system, and costs some stats.
const watchEvery = time.Second

// policyFiles are the files that a policy is made of.
type policyFiles struct {
	file string // the configuration's
	cfg  config.Policy
}

func newPolicyFiles(cfg *config.Config) *policyFiles { return &policyFiles{cfg.File, cfg.Policy} }

// Policy reads the policy of a configuration, as a gateway that starts on it would.
// What it falls back from is logged, and is in unread.
func Policy(ctx context.Context, cfg *config.Config, log *slog.Logger) (p gateway.Policy, unread, err error) {
	sources := newBundleSources(cfg)
	if err := readBundles(ctx, sources, log); err != nil {
		return gateway.Policy{}, nil, err
	}
	for _, s := range sources {
		unread = errors.Join(unread, s.unread)
	}
	p, err = newPolicyFiles(cfg).load()
	p.Options.Bundles = newestBundles(sources)
	return p, unread, err
}

// load reads all files.
func (p *policyFiles) load() (gateway.Policy, error) {
	grants, err := config.ReadGrants(p.cfg.Grants)
	if err != nil {
		return gateway.Policy{}, err
	}
	o := policy.Options{Packs: p.cfg.Packs, Timeout: p.cfg.Timeout}
	for _, g := range grants {
		o.Grants = append(o.Grants, policy.Grant(g))
	}
	labels, err := config.ReadLabels(p.cfg.Labels)
	if err != nil {
		return gateway.Policy{}, err
	}
	o.Labels = PolicyLabels(labels)
	limits, err := config.ReadRateLimits(p.cfg.RateLimits)
	if err != nil {
		return gateway.Policy{}, err
	}
	o.RateLimits = policyRateLimits(limits)
	files, err := p.tree()
	return gateway.Policy{Files: files, Options: o}, err
}

// PolicyLabels puts the labels of a file into the words of a policy.
func PolicyLabels(from []config.ToolLabel) []policy.Label {
	var to []policy.Label
	for _, l := range from {
		label := policy.Label{Pattern: l.Pattern, ToolLabels: gate.ToolLabels{
			Result: gate.ResultKind(l.Result), Private: l.Private, Kind: gate.TextKind(l.Kind), Control: l.Control, Content: l.Content,
			To: l.To, Commits: l.Commits, Takes: l.Takes, Identity: places(l.Identity), Names: places(l.Names), Makes: l.Makes, Verbatim: l.Fetch == "verbatim",
		}}
		for place, kind := range l.IDs {
			if label.IDs == nil {
				label.IDs = make(map[gate.Place]string)
			}
			label.IDs[gate.Place(place)] = kind
		}
		for _, e := range l.Effect {
			label.Effects = append(label.Effects, gate.ToolEffect(e))
		}
		to = append(to, label)
	}
	return to
}

func places(from []string) []gate.Place {
	var to []gate.Place
	for _, p := range from {
		to = append(to, gate.Place(p))
	}
	return to
}

// tree returns the user's .rego files as one file system, named as the user
// would name them. Nil means there are none.
func (p *policyFiles) tree() (fs.FS, error) {
	files := make(fstest.MapFS)
	for _, root := range p.cfg.Paths {
		err := walk(root, func(path string, err error) error {
			if err != nil || filepath.Ext(path) != ".rego" {
				return err
			}
			if len(files) == maxPolicyFiles {
				return fmt.Errorf("more than %d policy files", maxPolicyFiles)
			}
			return addFile(files, path, p.name(path))
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

// walk gives f each file below root, which may be one itself. Root may be a link;
// folders below it that are links are left out, so that there is no circle.
func walk(root string, f func(path string, err error) error) error {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return f(root, err)
	}
	return filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return nil
		}
		return f(root+strings.TrimPrefix(path, real), err) // as the user names it
	})
}

// name shortens a path to one from the configuration's folder, where it can.
func (p *policyFiles) name(path string) string {
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

// state tells one version of the files from another.
func (p *policyFiles) state() [32]byte {
	h := sha256.New()
	roots := append([]string{p.cfg.Grants, p.cfg.Labels, p.cfg.RateLimits}, p.cfg.Paths...)
	for _, b := range p.cfg.Bundles {
		if b.Path != "" {
			roots = append(roots, b.Path)
		}
	}
	roots = slices.DeleteFunc(roots, func(root string) bool { return root == "" }) // "" would be the working directory
	for _, root := range roots {
		_ = walk(root, func(path string, err error) error {
			info, serr := os.Stat(path) // of what a link points to
			if err = errors.Join(err, serr); err != nil {
				fmt.Fprintf(h, "%s %v\n", path, err)
				return nil
			}
			fmt.Fprintf(h, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return [32]byte(h.Sum(nil))
}

// WatchPolicy calls f, and again whenever the files of a configuration's policy have
// changed, until ctx ends.
func WatchPolicy(ctx context.Context, cfg *config.Config, f func()) {
	files := newPolicyFiles(cfg)
	last := files.state() // before f reads them
	f()
	watch(ctx, func() {
		if now := files.state(); now != last {
			last = now
			f()
		}
	})
}

// watch calls look every so often until ctx ends.
func watch(ctx context.Context, look func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			look()
		case <-ctx.Done():
			return
		}
	}
}

// policyState tells one version of all files from another.
func (a *App) policyState() [2][32]byte {
	state := [2][32]byte{a.policy.Load().state()}
	if a.shadow != nil {
		state[1] = a.shadow.state()
	}
	return state
}

// watchPolicy loads the policy anew whenever its files have changed, until ctx
// ends. One that does not load leaves the old one in place.
func (a *App) watchPolicy(ctx context.Context) {
	last := a.policyState()
	watch(ctx, func() {
		if now := a.policyState(); now != last {
			last = now
			_ = a.reloadPolicy(ctx) // it logs what is wrong
		}
	})
}

// reconfigure has calls checked, and decided on, as a configuration says, in one step. Bundles
// and the shadow policy stay those of the start.
func (a *App) reconfigure(ctx context.Context, next *config.Config, checks gateway.Config) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	files := newPolicyFiles(next)
	files.cfg.Bundles, files.cfg.Shadow = a.cfg.Policy.Bundles, a.cfg.Policy.Shadow
	if reflect.DeepEqual(files, a.policy.Load()) {
		return a.gateway.Reconfigure(ctx, checks, nil)
	}
	if _, err := settle(files, a.bundles, a.log, func(p gateway.Policy) error { return a.gateway.Reconfigure(ctx, checks, &p) }); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	a.policy.Store(files)
	a.policyError.Store(&outcome{})
	a.log.Info("policy loaded", "revision", a.gateway.Policy().Revision())
	return nil
}

// reloadPolicy puts the policy that the files and bundles hold now in place. What is
// wrong with a bundle is no error: its last good one stays, and status says why.
func (a *App) reloadPolicy(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	for _, s := range a.bundles {
		if s.cfg.Path != "" {
			a.readBundle(ctx, s)
		}
	}
	before := a.gateway.Policy().Revision()
	_, err := settle(a.policy.Load(), a.bundles, a.log, func(p gateway.Policy) error { return a.gateway.SetPolicy(ctx, p) })
	a.policyError.Store(&outcome{err})
	switch after := a.gateway.Policy().Revision(); {
	case err != nil:
		a.log.Error("policy refused; the last good one stays", "error", err)
	case after != before:
		a.log.Info("policy loaded", "revision", after)
	}
	a.reloadShadow(ctx)
	return err
}

// An outcome is what came of the last time that something was read.
type outcome struct{ err error }
