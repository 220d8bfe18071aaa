package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/cmd/internal/canned"
	"github.com/wasmgate/wasmgate/cmd/internal/granted"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/dial"
	"github.com/wasmgate/wasmgate/internal/modules"
	"github.com/wasmgate/wasmgate/sandbox"
)

// defaultCases is the file of cases beside a module.
const defaultCases = "cases.yaml"

func (c *cli) newSandboxCheck() *cobra.Command {
	var cases string
	cmd := &cobra.Command{
		Use:   "check MODULE",
		Short: "Check a WASM module as the gateway would, and run its cases",
		Long: `Checks the manifest and the schemas of a module, loads the module, makes its sample call (warm), and
runs the cases of cases.yaml beside it: calls whose arguments and outputs are held against the schemas,
with secrets, values, folders and answers of the web that the file makes up. What the manifest wishes for
(wants) is granted. Nothing leaves the machine.

Exits with 2 if the manifest or the cases are wrong, with 1 if the module does not load, and with 3 if a
case, or the sample call, comes to something else.`,
		Example: "  wasmgate sandbox check words.wasm\n  wasmgate sandbox check words.wasm --cases test/cases.yaml --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSandbox(cmd.Context(), func(r *sandbox.Runtime, from moduleReader) error {
				return c.sandboxCheck(cmd.Context(), r, from, args[0], cases)
			})
		},
	}
	cmd.Flags().StringVar(&cases, "cases", "", "file of cases (default: cases.yaml beside the module, if it is there)")
	return cmd
}

// checked is what a check prints for machines.
type checked struct {
	Advice []string    `json:"advice,omitempty"`
	Cases  []caseEnded `json:"cases"`
}

// caseEnded is what came of a case. It is as it should be without Problems.
type caseEnded struct {
	Name     string   `json:"name"`
	Line     int      `json:"line"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
	figures
}

func (c *cli) sandboxCheck(ctx context.Context, r *sandbox.Runtime, from moduleReader, module, file string) error {
	wasm, mc, err := from.read(module)
	if err != nil {
		return err
	}
	cases, err := casesOf(module, file)
	if err != nil {
		return named(err)
	}
	manifest, err := manifestOf(wasm, mc)
	if err != nil {
		return err
	}
	for _, f := range modules.Flaws(manifest) { // of one that the module carries
		return misuse("%s: its manifest, %s: %s", module, f.Pointer, f.Message)
	}
	t, err := newTrials(ctx, r, wasm, mc, manifest, cases)
	if err != nil {
		return err
	}
	defer t.close()
	out := checked{Advice: advice(manifest), Cases: []caseEnded{}}
	if note := t.module.Note(); note != "" {
		out.Advice = append(out.Advice, note)
	}
	if err := t.sample(ctx); err != nil {
		out.Cases = append(out.Cases, caseEnded{Name: "the sample call warm", Problems: []string{err.Error()}})
	}
	for _, one := range cases.Cases {
		out.Cases = append(out.Cases, t.run(ctx, one))
	}
	for _, tool := range manifest.Tools { // whether the module has it, only a call can tell
		if len(manifest.Tools) > 1 && !slices.ContainsFunc(cases.Cases, func(one config.Case) bool { return one.Tool == tool.Name }) {
			out.Advice = append(out.Advice, fmt.Sprintf("no case calls tool %s", tool.Name))
		}
	}
	return c.printChecked(out)
}

// casesOf reads the cases of a module; none if there is no file.
func casesOf(module, file string) (*config.Cases, error) {
	if file != "" {
		return config.ReadCases(file)
	}
	cases, err := config.ReadCases(filepath.Join(filepath.Dir(module), defaultCases))
	if errors.Is(err, fs.ErrNotExist) {
		return new(config.Cases), nil
	}
	return cases, err
}

func (c *cli) printChecked(out checked) error {
	failed := 0
	for _, one := range out.Cases {
		if !one.OK {
			failed++
		}
	}
	if c.json {
		if err := c.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, a := range out.Advice {
			fmt.Fprintln(c.err, visible("advice: "+a))
		}
		for _, one := range out.Cases {
			how := paint(c.out, good, "ok  ")
			if !one.OK {
				how = paint(c.out, bad, "FAIL")
			}
			fmt.Fprintf(c.out, "%s  %s (%s)\n", how, visible(one.Name), time.Duration(one.TookUS)*time.Microsecond)
			for _, p := range one.Problems {
				fmt.Fprintln(c.out, "      "+visible(p))
			}
		}
		if len(out.Cases) == 0 {
			fmt.Fprintln(c.err, "it would be offered; there are no cases: write calls and what is to come of them to cases.yaml beside it")
		}
	}
	if failed > 0 {
		return &exitError{exitFalse, fmt.Errorf("%d of %s failed", failed, plural(len(out.Cases), "case"))}
	}
	return nil
}

// advice is what a manifest says and its author may not mean.
func advice(m sandbox.Manifest) (all []string) {
	for _, t := range m.Tools {
		if strings.TrimSpace(t.Description) == "" {
			all = append(all, fmt.Sprintf("tool %s has no description, by which models choose it", t.Name))
		}
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
			Additional any                        `json:"additionalProperties"`
		}
		if json.Unmarshal(t.InputSchema, &s) != nil {
			continue
		}
		for _, name := range s.Required {
			if _, known := s.Properties[name]; !known && s.Additional == false {
				all = append(all, fmt.Sprintf("tool %s requires %q, and allows no such property: nobody can call it", t.Name, name))
			}
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(t.InputSchema, &members) // it was an object before
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if hint := config.Suggest(name, schemaWords); hint != "" && !slices.Contains(schemaWords, name) {
				all = append(all, fmt.Sprintf("tool %s: its inputSchema has %q, which means nothing in a schema%s", t.Name, name, hint))
			}
		}
	}
	return all
}

// schemaWords are the keywords of an object's schema that are often written.
var schemaWords = strings.Fields("type properties required additionalProperties description title items enum const default examples anyOf oneOf allOf not if then else patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas unevaluatedProperties $ref $defs $schema $id $comment definitions")

// trials run the cases of a module.
type trials struct {
	module   *sandbox.Module
	manifest sandbox.Manifest
	cases    *config.Cases
	rules    dial.Rules
	grants   sandbox.Grants
	copies   string // the folder of the copies of granted folders
}

// newTrials compiles a module with what it wishes for. They must be closed.
func newTrials(ctx context.Context, r *sandbox.Runtime, wasm []byte, mc sandbox.ModuleConfig, manifest sandbox.Manifest, cases *config.Cases) (_ *trials, err error) {
	rules, grants := wished(manifest)
	t := &trials{manifest: manifest, cases: cases, grants: grants}
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
			return nil, errors.Join(err, t.close())
		}
		path := filepath.Join(at, fmt.Sprint(i))
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, errors.Join(err, t.close())
		}
		as := d.As
		if as == "" {
			as = filepath.ToSlash(d.Path)
		}
		t.grants.Dirs = append(t.grants.Dirs, sandbox.Dir{Path: path, Write: d.Write, As: as})
	}
	mc.Grants = t.grants
	if t.module, err = r.Compile(ctx, wasm, mc); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *trials) close() error { return os.RemoveAll(t.copies) }

// refresh copies the folders that the cases grant.
func (t *trials) refresh() error {
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
func (t *trials) sample(ctx context.Context) error {
	w := t.manifest.Warm
	if w == nil {
		return nil
	}
	tool, err := chooseTool(t.module, w.Tool)
	if err != nil {
		return err
	}
	res, err := callTool(ctx, t.module, tool, w.Arguments, nil)
	if err == nil && res.IsError {
		err = fmt.Errorf("the tool reports an error: %.200q", res.Output)
	}
	return err
}

// run runs a case.
func (t *trials) run(ctx context.Context, one config.Case) caseEnded {
	ended := caseEnded{Name: one.Name, Line: one.Line}
	res, problems, err := t.try(ctx, one)
	ended.figures = newFigures(res)
	if err != nil {
		problems = append(problems, config.Problem{File: t.cases.File, Line: one.Line, Message: err.Error()})
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
func (t *trials) try(ctx context.Context, one config.Case) (res sandbox.Result, problems []config.Problem, err error) {
	tool, err := chooseTool(t.module, one.Tool)
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
		if err := host.Set(key, []byte(value)); err != nil {
			return res, nil, fmt.Errorf("kv: %w", err)
		}
	}
	res, called := callTool(ctx, t.module, tool, one.Arguments, host)
	return res, web.Found(), compare(one.Want, res, called)
}

// secrets returns those of a case that the manifest wishes for.
func (t *trials) secrets(one config.Case) (all []dial.Secret, err error) {
	var wanted []string
	if t.manifest.Wants != nil {
		wanted = t.manifest.Wants.Secrets
	}
	for _, s := range one.Secrets {
		if !slices.Contains(wanted, s.Name) {
			return nil, fmt.Errorf("secret %s is none of those that the manifest wishes for (wants.secrets)", s.Name)
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
func compare(want config.Want, res sandbox.Result, err error) error {
	var no *refused
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
