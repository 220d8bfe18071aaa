package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/config"
	"github.com/wasmgate/wasmgate/gate"
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

// policyFiles are the files that a configuration's policy is made of.
type policyFiles struct{ cfg *config.Config }

func newPolicyFiles(cfg *config.Config) *policyFiles { return &policyFiles{cfg} }

// Policy reads the policy of a configuration.
func Policy(cfg *config.Config) (gateway.Policy, error) { return newPolicyFiles(cfg).load() }

// load reads all files.
func (p *policyFiles) load() (gateway.Policy, error) {
	grants, err := config.ReadGrants(p.cfg.Policy.Grants)
	if err != nil {
		return gateway.Policy{}, err
	}
	o := policy.Options{Packs: p.cfg.Policy.Packs, Timeout: p.cfg.Policy.Timeout}
	for _, g := range grants {
		o.Grants = append(o.Grants, policy.Grant(g))
	}
	labels, err := config.ReadLabels(p.cfg.Policy.Labels)
	if err != nil {
		return gateway.Policy{}, err
	}
	o.Labels = PolicyLabels(labels)
	files, err := p.tree()
	return gateway.Policy{Files: files, Options: o}, err
}

// PolicyLabels puts the labels of a file into the words of a policy.
func PolicyLabels(from []config.ToolLabel) []policy.Label {
	var to []policy.Label
	for _, l := range from {
		label := policy.Label{Pattern: l.Pattern, ToolLabels: gate.ToolLabels{
			Result: gate.ResultKind(l.Result), Private: l.Private, Control: l.Control, Content: l.Content,
		}}
		for _, e := range l.Effect {
			label.Effects = append(label.Effects, gate.ToolEffect(e))
		}
		to = append(to, label)
	}
	return to
}

// tree returns the user's .rego files as one file system, named as the user
// would name them. Nil means there are none.
func (p *policyFiles) tree() (fs.FS, error) {
	files := make(fstest.MapFS)
	for _, root := range p.cfg.Policy.Paths {
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
	if rel, err := filepath.Rel(filepath.Dir(p.cfg.File), path); err == nil && filepath.IsLocal(rel) {
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
	for _, root := range append([]string{p.cfg.Policy.Grants, p.cfg.Policy.Labels}, p.cfg.Policy.Paths...) {
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

// watchPolicy loads the policy anew whenever its files have changed, until ctx
// ends. One that does not load leaves the old one in place.
func (a *App) watchPolicy(ctx context.Context) {
	last := a.policy.state()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if now := a.policy.state(); now != last {
			last = now
			_ = a.reloadPolicy(ctx) // it logs what is wrong
		}
	}
}

// reloadPolicy puts the policy that the files hold now in place.
func (a *App) reloadPolicy(ctx context.Context) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	before := a.gateway.Policy().Revision()
	p, err := a.policy.load()
	if err == nil {
		err = a.gateway.SetPolicy(ctx, p)
	}
	a.policyError.Store(&policyState{err})
	switch after := a.gateway.Policy().Revision(); {
	case err != nil:
		a.log.Error("policy refused; the last good one stays", "error", err)
	case after != before:
		a.log.Info("policy loaded", "revision", after)
	}
	return err
}

// policyState is the outcome of the last load.
type policyState struct{ err error }
