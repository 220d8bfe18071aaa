package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module begins the paths of this module's packages.
const Module = "github.com/wasmgate/wasmgate/"

// A Package is what [Measure] finds of one, without its tests.
type Package struct {
	Path  string // without [Module]
	Lines int
	// Group is the largest group of its files that all need one another: each uses, by a
	// chain, declarations and methods in each other.
	Group []string
	// Uses are how many pairs of its files have one file that uses declarations or methods in the
	// other. Upward are those that run upward, as "user.go used.go", in the order of its files in
	// which the fewest do.
	Uses   int
	Upward []string
	// Struct is the struct with the most methods, Methods are how many it has.
	Struct  string
	Methods int
	// Names are its exported names, as "T" and "T.Method", if other modules can import it.
	Names []string

	types *types.Package
}

// Public reports whether other modules can import the package.
func (p Package) Public() bool {
	return p.types.Name() != "main" && !slices.Contains(strings.Split(p.Path, "/"), "internal")
}

// UpwardPercent is how many percent of the uses between the package's files run upward. A few uses
// of a small package say nothing, and are 0.
func (p Package) UpwardPercent() int {
	if p.Uses < 20 {
		return 0
	}
	return (100*len(p.Upward) + p.Uses/2) / p.Uses
}

// A House is all packages of a module, but for those that only tests import.
type House []Package

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles, Imports              []string
}

// Measure measures the module in a folder, as it is built for this system.
func Measure(dir string) (House, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,Imports", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, &stderr)
	}
	var all []listed
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all, exports[p.ImportPath] = append(all, p), p.Export
	}
	fset := token.NewFileSet()
	known := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }) // reads each once
	var h House
	for _, p := range all {
		if !strings.HasPrefix(p.ImportPath, Module) || slices.Contains(p.Imports, "testing") {
			continue
		}
		one, err := p.measure(fset, known)
		if err != nil {
			return nil, err
		}
		h = append(h, one)
	}
	return h, nil
}

func (p listed) measure(fset *token.FileSet, known types.Importer) (Package, error) {
	one := Package{Path: strings.TrimPrefix(p.ImportPath, Module)}
	var files []*ast.File
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return one, err
		}
		one.Lines += bytes.Count(src, []byte("\n"))
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), src, parser.SkipObjectResolution)
		if err != nil {
			return one, err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: known}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		return one, fmt.Errorf("%s: %w", one.Path, err)
	}
	one.types = pkg
	uses := needs(fset, pkg, info)
	one.Group = largestGroup(uses)
	one.Uses, one.Upward = upward(uses)
	one.Struct, one.Methods = largestStruct(pkg)
	if one.Public() {
		one.Names = exported(pkg)
	}
	return one, nil
}

// exported returns the exported names of a package: what it declares, and the methods of
// its types, also of those that are another package's by an alias.
func exported(pkg *types.Package) (names []string) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		names = append(names, name)
		named, ok := types.Unalias(o.Type()).(*types.Named)
		if _, isType := o.(*types.TypeName); !ok || !isType {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() {
				names = append(names, name+"."+m.Name())
			}
		}
	}
	return names
}

// needs returns which files use declarations and methods in which others.
func needs(fset *token.FileSet, pkg *types.Package, info *types.Info) map[string][]string {
	of := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	uses := make(map[string][]string)
	for id, o := range info.Uses {
		if _, method := o.(*types.Func); o.Pkg() != pkg || o.Parent() != pkg.Scope() && !method {
			continue
		}
		if from, to := of(id.Pos()), of(o.Pos()); from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses
}

// largestGroup returns the largest strongly connected component, sorted (R. Tarjan,
// "Depth-first search and linear graph algorithms", 1972).
func largestGroup(edges map[string][]string) (largest []string) {
	index, low := make(map[string]int), make(map[string]int)
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		for _, w := range edges[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if slices.Contains(stack, w) {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] == index[v] {
			at := slices.Index(stack, v)
			group := slices.Clone(stack[at:])
			stack = stack[:at]
			if len(group) > len(largest) {
				largest = group
			}
		}
	}
	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Sort(largest)
	return largest
}

// upward returns how many edges there are, and how many of them run upward in an order in which
// few do: files are moved, one by one, to where the fewest do, until no move helps.
func upward(edges map[string][]string) (all int, up []string) {
	order := descent(edges)
	at := make(map[string]int, len(order))
	place := func() {
		for i, file := range order {
			at[file] = i
		}
	}
	into := make(map[string][]string)
	for from, tos := range edges {
		all += len(tos)
		for _, to := range tos {
			into[to] = append(into[to], from)
		}
	}
	place()
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(order) {
			// gain is how many fewer edges run upward if the file goes past those passed so far.
			here, best, most, gain := at[file], at[file], 0, 0
			step := func(passed string, down int) int {
				d := 0
				if slices.Contains(edges[file], passed) {
					d -= down
				}
				if slices.Contains(into[file], passed) {
					d += down
				}
				return d
			}
			for i := here + 1; i < len(order); i++ {
				if gain += step(order[i], 1); gain > most {
					best, most = i, gain
				}
			}
			gain = 0
			for i := here - 1; i >= 0; i-- {
				if gain += step(order[i], -1); gain > most {
					best, most = i, gain
				}
			}
			if best != here {
				order = slices.Insert(slices.Delete(order, here, here+1), best, file)
				place()
				moved = true
			}
		}
	}
	for from, tos := range edges {
		for _, to := range tos {
			if at[to] < at[from] {
				up = append(up, from+" "+to)
			}
		}
	}
	slices.Sort(up)
	return all, up
}

// descent returns all files, those that use others before them where there is no circle.
func descent(edges map[string][]string) (order []string) {
	seen := make(map[string]bool)
	var visit func(string)
	visit = func(file string) {
		if seen[file] {
			return
		}
		seen[file] = true
		for _, to := range slices.Sorted(slices.Values(edges[file])) {
			visit(to)
		}
		order = append(order, file)
	}
	for _, file := range slices.Sorted(maps.Keys(edges)) {
		visit(file)
	}
	slices.Reverse(order)
	return order
}

// largestStruct returns the struct of a package with the most methods of its own.
func largestStruct(pkg *types.Package) (name string, methods int) {
	for _, one := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(one).(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		named, ok := t.Type().(*types.Named)
		if !ok {
			continue
		}
		if _, ok := named.Underlying().(*types.Struct); ok && named.NumMethods() > methods {
			name, methods = one, named.NumMethods()
		}
	}
	return name, methods
}
