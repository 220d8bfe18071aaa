package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/cmd/internal/canned"
	"github.com/wasmgate/wasmgate/cmd/internal/granted"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/cases"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/sandbox"
)

// Ended is what came of a case. It is as it should be without Problems.
type Ended struct {
	Name     string   `json:"name"`
	Line     int      `json:"line"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
	Figures
}

// Trials run the cases of a module.
type Trials struct {
	module   *sandbox.Module
	manifest sandbox.Manifest
	cases    *cases.Cases
	rules    dial.Rules
	grants   sandbox.Grants
	copies   string // the folder of the copies of granted folders
}

// New compiles a module with what it wishes for. They must be closed.
func New(ctx context.Context, r *sandbox.Runtime, wasm []byte, mc sandbox.ModuleConfig, manifest sandbox.Manifest, cases *cases.Cases) (_ *Trials, err error) {
	rules, grants := Wished(manifest)
	t := &Trials{manifest: manifest, cases: cases, grants: grants}
	t.grants.Dirs, t.grants.Config = nil, cases.Config
	if t.rules, err = dial.Compile(rules); err != nil {
		return nil, err
	}
	if t.copies, err = os.MkdirTemp("", "wasmgate-check"); err != nil {
		return nil, err
	}
	for i, d := range cases.Dirs {
		at, err := filepath.EvalSymlinks(t.copies)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		path := filepath.Join(at, fmt.Sprint(i))
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		as := d.As
		if as == "" {
			as = filepath.ToSlash(d.Path)
		}
		t.grants.Dirs = append(t.grants.Dirs, sandbox.Dir{Path: path, Write: d.Write, As: as})
	}
	mc.Grants = t.grants
	if t.module, err = r.Compile(ctx, wasm, mc); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close removes the copies.
func (t *Trials) Close() error { return os.RemoveAll(t.copies) }

// Advice returns what the author of the module may not mean.
func (t *Trials) Advice() []string {
	all := Advice(t.manifest.Tools)
	if note := t.module.Note(); note != "" {
		all = append(all, note)
	}
	for _, tool := range t.manifest.Tools { // whether the module has it, only a call can tell
		if len(t.manifest.Tools) > 1 && !slices.ContainsFunc(t.cases.Cases, func(one cases.Case) bool { return one.Tool == tool.Name }) {
			all = append(all, fmt.Sprintf("no case calls tool %s", tool.Name))
		}
	}
	return all
}

// Run makes the sample call, which is reported if it fails, and runs the cases.
func (t *Trials) Run(ctx context.Context) []Ended {
	all := []Ended{}
	if err := t.sample(ctx); err != nil {
		all = append(all, Ended{Name: "the sample call warm", Problems: []string{err.Error()}})
	}
	for _, one := range t.cases.Cases {
		all = append(all, t.run(ctx, one))
	}
	return all
}

// refresh copies the folders that the cases grant.
func (t *Trials) refresh() error {
	for i, d := range t.cases.Dirs {
		to := t.grants.Dirs[i].Path
		old, err := os.ReadDir(to)
		if err != nil {
			return err
		}
		for _, e := range old {
			if err := os.RemoveAll(filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
		if err := os.CopyFS(to, os.DirFS(d.Path)); err != nil {
			return fmt.Errorf("copy %s: %w", d.Path, err)
		}
	}
	return nil
}

// sample makes the sample call of the manifest, which the snapshot would hold.
func (t *Trials) sample(ctx context.Context) error {
	w := t.manifest.Warm
	if w == nil {
		return nil
	}
	tool, err := Tool(t.module, w.Tool)
	if err != nil {
		return err
	}
	res, err := Call(ctx, t.module, tool, w.Arguments, nil)
	if err == nil && res.IsError {
		err = fmt.Errorf("the tool reports an error: %.200q", res.Output)
	}
	return err
}

// run runs a case.
func (t *Trials) run(ctx context.Context, one cases.Case) Ended {
	ended := Ended{Name: one.Name, Line: one.Line}
	res, problems, err := t.try(ctx, one)
	ended.Figures = NewFigures(res)
	if err != nil {
		problems = append(problems, tree.Problem{File: t.cases.File, Line: one.Line, Message: err.Error()})
	}
	for _, p := range problems {
		if p.Line == 0 {
			p.Line = one.Line
		}
		ended.Problems = append(ended.Problems, p.String())
	}
	ended.OK = len(problems) == 0
	return ended
}

// try makes the call of a case, and holds what comes against what it wants.
func (t *Trials) try(ctx context.Context, one cases.Case) (res sandbox.Result, problems []tree.Problem, err error) {
	tool, err := Tool(t.module, one.Tool)
	if err != nil {
		return res, nil, err
	}
	if err := t.refresh(); err != nil {
		return res, nil, err
	}
	web, err := canned.New(t.cases.File, one.HTTP)
	if err != nil {
		return res, nil, err
	}
	defer web.Close()
	secrets, err := t.secrets(one)
	if err != nil {
		return res, nil, err
	}
	host, err := granted.New(tool.Name, web.Options(), t.rules, secrets, t.grants.Dirs)
	if err != nil {
		return res, nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	for key, value := range one.KV {
		if err := host.Set(ctx, key, []byte(value)); err != nil {
			return res, nil, fmt.Errorf("kv: %w", err)
		}
	}
	res, called := Call(ctx, t.module, tool, one.Arguments, host)
	return res, web.Found(), compare(one.Want, res, called)
}

// secrets returns those of a case that the manifest wishes for.
func (t *Trials) secrets(one cases.Case) (all []dial.Secret, err error) {
	var wanted []string
	if t.manifest.Wants != nil {
		wanted = t.manifest.Wants.Secrets
	}
	for _, s := range one.Secrets {
		if !slices.Contains(wanted, s.Name) {
			return nil, fmt.Errorf("secret %s is not in wants.secrets of the manifest", s.Name)
		}
		if slices.ContainsFunc(all, func(o dial.Secret) bool { return o.Name() == s.Name }) {
			continue // the case's own goes before that of all
		}
		secret, err := dial.NewSecret(s.Name, string(s.Value), s.Origin)
		if err != nil {
			return nil, err
		}
		all = append(all, secret)
	}
	return all, nil
}

// compare says how what came of a call differs from what was to come.
func compare(want cases.Want, res sandbox.Result, err error) error {
	var no *Refused
	var trap *sandbox.Trap
	code := ""
	switch {
	case errors.As(err, &no):
		code = no.Code
	case errors.As(err, &trap):
		code = trap.Code()
	case err != nil:
		return err
	}
	switch {
	case want.Refused != "" && code == want.Refused:
		return nil
	case want.Refused != "" && code == "":
		return fmt.Errorf("it answers %.400s, want %s", res.Output, want.Refused)
	case code != "":
		return err
	case want.Error != nil && res.IsError && strings.Contains(string(res.Output), *want.Error):
		return nil
	case want.Error != nil && res.IsError:
		return fmt.Errorf("it reports the error %.400q, want one with %q in it", res.Output, *want.Error)
	case want.Error != nil:
		return fmt.Errorf("it answers %.400s, want an error with %q in it", res.Output, *want.Error)
	case res.IsError:
		return fmt.Errorf("it reports the error %.400q", res.Output)
	case want.Result != nil && !sameJSON(res.Output, want.Result):
		return fmt.Errorf("it answers %.400s, want %.400s", bytes.TrimSpace(res.Output), want.Result)
	}
	return nil
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b []byte) bool {
	x, err := gate.ParseDoc(a)
	if err != nil {
		return false
	}
	y, err := gate.ParseDoc(b)
	return err == nil && x.Digest() == y.Digest()
}
