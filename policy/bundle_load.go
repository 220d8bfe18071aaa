package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/wasmgate/wasmgate/policy/bundle"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// loadedBundle is a bundle with its modules parsed.
type loadedBundle struct {
	*bundle.Bundle
	rules, tests map[string]*ast.Module
}

// addBundles parses the modules of bundles, and finds what two sources define.
func (s *source) addBundles(bundles []*bundle.Bundle) []Problem {
	problems := overlaps(bundles)
	for _, b := range bundles {
		one := loadedBundle{b, map[string]*ast.Module{}, map[string]*ast.Module{}}
		modules, folder := b.Modules(), owned.BundleFolder+b.Name()+"/"
		for _, name := range slices.Sorted(maps.Keys(modules)) {
			to := one.rules
			if strings.HasSuffix(name, "_test.rego") {
				to = one.tests
			}
			problems = append(problems, s.parse(folder+name, modules[name], to)...)
		}
		s.bundles = append(s.bundles, one)
	}
	if len(bundles) == 0 || problems != nil {
		return problems
	}
	return s.clashes()
}

// overlaps finds bundles of one name, or that claim the same part of data.
func overlaps(bundles []*bundle.Bundle) []Problem {
	var problems []Problem
	say := func(format string, args ...any) {
		problems = append(problems, Problem{Message: fmt.Sprintf(format, args...)})
	}
	for i, a := range bundles {
		for _, b := range bundles[:i] {
			if a.Name() == b.Name() {
				say("two bundles are called %s; give one of them another name", a.Name())
			}
			for _, ra := range a.Roots() {
				for _, rb := range b.Roots() {
					if opa.RootPathsOverlap(ra, rb) && !(ra == owned.Root && rb == owned.Root) {
						say("the bundles %s and %s claim the same data: their roots %q and %q overlap; change the roots in one of the manifests", b.Name(), a.Name(), rb, ra)
					}
				}
			}
		}
	}
	return problems
}

// clashes finds rules that a bundle and somebody else define: each would add to what
// the other means.
func (s *source) clashes() []Problem {
	var problems []Problem
	first := map[string]string{} // file, by the path of a rule
	for _, file := range slices.Sorted(maps.Keys(s.rules)) {
		m := s.rules[file]
		for _, r := range m.Rules {
			at := append(stringsOf(m.Package.Path[1:]), stringsOf(r.Head.Ref())...)
			if len(at) == 2 && at[0] == owned.Root && slices.Contains(owned.Sets, at[1]) {
				continue
			}
			name := strings.Join(at, ".")
			before, ok := first[name]
			if !ok {
				first[name] = file
				continue
			}
			a, b := origin(before), origin(file)
			if a != b && (strings.HasPrefix(a, owned.BundleFolder) || strings.HasPrefix(b, owned.BundleFolder)) {
				problems = append(problems, Problem{File: file, Line: r.Location.Row, Message: fmt.Sprintf("data.%s is defined in %s too; only one source can define it", name, before)})
			}
		}
	}
	return problems
}

// origin names the source that a file belongs to: a bundle, the packs, or the user.
func origin(file string) string {
	if rest, ok := strings.CutPrefix(file, owned.BundleFolder); ok {
		name, _, _ := strings.Cut(rest, "/")
		return owned.BundleFolder + name
	}
	if strings.HasPrefix(file, owned.PackFolder) {
		return owned.PackFolder
	}
	return ""
}

// conflicts finds data of bundles and of the program in the place of rules.
func (s *source) conflicts(c *ast.Compiler) []Problem {
	if len(s.bundles)+len(s.given) == 0 {
		return nil
	}
	var data any = s.data()
	errs := ast.CheckPathConflicts(c, func(path []string) (bool, error) {
		at := data
		for _, name := range path {
			o, ok := at.(map[string]any)
			if !ok {
				return true, nil // what is above is a value already
			}
			if at, ok = o[name]; !ok {
				return false, nil
			}
		}
		return true, nil
	})
	if len(errs) == 0 {
		return nil
	}
	return problemsOf("", errs)
}

// addData takes the data that the program gives.
func (s *source) addData(given map[string]any) []Problem {
	if len(given) == 0 {
		return nil
	}
	b, err := json.Marshal(given)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b)) // a copy, in which numbers are what they were
		d.UseNumber()
		err = d.Decode(&s.given)
	}
	if err != nil {
		return []Problem{{Message: fmt.Sprintf("the program's data is not JSON: %v", err)}}
	}
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(s.given)) {
		whose := ""
		if name == owned.Root || slices.Contains(owned.Data, name) {
			whose = "the gateway"
		}
		for _, b := range s.bundles {
			if slices.ContainsFunc(b.Roots(), func(root string) bool { return opa.RootPathsOverlap(root, name) }) {
				whose = "the bundle " + b.Name()
			}
		}
		if whose != "" {
			problems = append(problems, Problem{Message: fmt.Sprintf("the data of the Go program has the member %s, which belongs to %s; choose another name in the program", name, whose)})
		}
	}
	return problems
}

// data returns the data of all bundles, whose roots do not overlap, and of the program.
func (s *source) data() map[string]any {
	all := map[string]any{}
	maps.Copy(all, s.given)
	for _, b := range s.bundles {
		merge(all, b.Data())
	}
	return all
}

// merge adds to an object what it does not have. It does not change from, nor what
// from holds.
func merge(to, from map[string]any) {
	for k, v := range from {
		o, object := v.(map[string]any)
		if !object {
			to[k] = v
			continue
		}
		deeper, ok := to[k].(map[string]any)
		if !ok {
			deeper = map[string]any{}
			to[k] = deeper
		}
		merge(deeper, o)
	}
}

func (s *source) dataText() []byte {
	b, err := json.Marshal(s.data())
	if err != nil {
		panic(err) // it was JSON
	}
	return b
}
