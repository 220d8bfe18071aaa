package decode

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A File is one file that is read: what its values may see of their surroundings, and what is
// wrong with them.
type File struct {
	Name     string                      // as problems have it
	Dir      string                      // where relative paths start
	Lookup   func(string) (string, bool) // the environment
	Keep     bool                        // leave variables as they are (for an import)
	Foreign  bool                        // the file is a project's, which may not refer to the user's secrets
	Words    *Words                      // those of its tags; nil: see [Words]
	Problems tree.Problems
	Warnings []tree.Problem
}

// Parse returns the file's outermost value, or false after reporting that there is none.
func (f *File) Parse(data []byte, json bool) (Value, bool) { return f.Root(tree.Parse(data, json)) }

// Root reports what is wrong with a tree that was parsed, and returns its outermost value; false
// if there is none.
func (f *File) Root(root *tree.Node, ps []tree.Problem) (Value, bool) {
	for _, p := range ps {
		p.File = f.Name
		f.Problems = append(f.Problems, p)
	}
	return f.Value(root, ""), root != nil
}

// Value returns the value that n is, at a path.
func (f *File) Value(n *tree.Node, path string) Value { return Value{Node: n, Path: path, file: f} }

// A Value is one value of a file, with the place where it stands and the rules by which it is read.
type Value struct {
	*tree.Node
	Path    string
	file    *File
	lenient bool      // an unset variable is empty
	refers  bool      // it may refer to secrets
	faults  *[]string // takes what a server lacks to be started; nil where a variable has to be set
}

// A Field is a key of a table.
type Field struct {
	Key   string
	At    Value // where the key stands
	Value Value
}

// A Reader decodes one value.
type Reader = func(v Value)

// File is the file that has the value.
func (v Value) File() *File { return v.file }

// Place returns another value that is read by the same rules.
func (v Value) Place(n *tree.Node, path string) Value {
	v.Node, v.Path = n, path
	return v
}

// Under returns the place of a key of v that is not there, or as a whole.
func (v Value) Under(key string) Value { return v.Place(v.Node, tree.Join(v.Path, key)) }

// Has reports whether a table has a key.
func (v Value) Has(key string) bool { return v.Node.Get(key) != nil }

// Get returns the value of a key; without the key nothing, where the table stands.
func (v Value) Get(key string) Value {
	n := v.Node.Get(key)
	if n == nil {
		n = &tree.Node{Line: v.Line}
	}
	return v.Place(n, tree.Join(v.Path, key))
}

// Field returns the i-th key of a table.
func (v Value) Field(i int) Field {
	f := v.Fields[i]
	at := v.Place(&tree.Node{Line: f.Line}, tree.Join(v.Path, f.Written()))
	return Field{f.Key, at, at.Place(f.Value, at.Path)}
}

// Item returns the i-th item of a list.
func (v Value) Item(i int) Value { return v.Place(v.Items[i], fmt.Sprintf("%s[%d]", v.Path, i)) }

// Lenient returns v read so that an unset variable is empty, as for a server that is not enabled.
func (v Value) Lenient() Value {
	v.lenient = true
	return v
}

// Faulting returns v read so that variables which are not set fault what is read, and nothing
// else: reading a log, say, needs no password of a server. Fault returns one text of them in the end.
func (v Value) Faulting() (faulting Value, fault func() string) {
	v.faults = new([]string)
	return v, func() string { return strings.Join(*v.faults, "; ") }
}

// Fault adds what is lacking to v's faults, if it has any.
func (v Value) Fault(err error) {
	if v.faults != nil {
		*v.faults = append(*v.faults, v.Path+": "+err.Error())
	}
}

// Referring has a reader take references to secrets, which are read when the server starts.
func Referring(read Reader) Reader {
	return func(v Value) {
		v.refers = !v.file.Foreign
		read(v)
	}
}

// Fail reports what is wrong with v.
func (v Value) Fail(format string, args ...any) {
	v.file.Problems = append(v.file.Problems, tree.Problem{File: v.file.Name, Line: v.Line, Path: v.Path, Message: fmt.Sprintf(format, args...)})
}

// Warn reports what deserves a look.
func (v Value) Warn(format string, args ...any) {
	v.file.Warnings = append(v.file.Warnings, tree.Problem{File: v.file.Name, Line: v.Line, Path: v.Path, Message: fmt.Sprintf(format, args...)})
}

// Is reports whether v is of kind k, and fails it otherwise.
func (v Value) Is(k tree.Kind) bool {
	wrong := v.Mismatch(k)
	if wrong != "" {
		v.Fail("%s", wrong)
	}
	return wrong == ""
}

// Needs reports a table that does not have a key, which what describes.
func (v Value) Needs(key, what string) {
	if (v.Kind == tree.Table || v.Kind == tree.Null) && !v.Has(key) {
		v.Fail("needs %s", what)
	}
}

// Entries returns the keys of a table.
func (v Value) Entries() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		if !v.Is(tree.Table) {
			return
		}
		for i := range v.Fields {
			if !yield(v.Field(i)) {
				return
			}
		}
	}
}

// List returns the items of a list.
func (v Value) List() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.Is(tree.List) {
			return
		}
		for i := range v.Items {
			if !yield(v.Item(i)) {
				return
			}
		}
	}
}

// Table gives the value of each key to its reader. A key without one is a problem.
func (v Value) Table(readers map[string]Reader) {
	for f := range v.Entries() {
		if read := readers[f.Key]; read != nil {
			read(f.Value)
			continue
		}
		f.At.Path = tree.Join(v.Path, f.Key)
		f.At.Fail("unknown key%s", Hint(f.Key, slices.Sorted(maps.Keys(readers))))
	}
}

// Table returns the reader of a table.
func Table(readers map[string]Reader) Reader { return func(v Value) { v.Table(readers) } }

// Hint says which words are known: the nearest, or all if they are few.
func Hint(s string, known []string) string {
	if h := spelling.Suggest(s, known); h != "" {
		return h
	}
	if len(known) <= 8 {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}

// Expanded returns the text of v with its variables replaced.
func (v Value) Expanded() (string, bool) {
	if v.file.Keep {
		return v.Text, true
	}
	lookup := v.file.Lookup
	if v.lenient {
		lookup = func(name string) (string, bool) { s, _ := v.file.Lookup(name); return s, true }
	}
	s, err := variables.Expand(v.Text, lookup)
	if unset, ok := errors.AsType[*variables.UnsetError](err); ok && v.faults != nil {
		v.Fault(unset)
	} else if err != nil {
		v.Fail("%v", err)
	}
	if err == nil && variables.Refers(s) && !v.refers && !strings.ContainsRune(v.Text, 0) {
		v.Fail("refers to a secret: that works only in args, env and headers of a server, and not in a project's file")
		return "", false
	}
	return s, err == nil
}

// Unchecked reports whether a value cannot be judged yet: it holds a variable that is left as it
// is, or one that a disabled server may do without.
func (v Value) Unchecked() bool { return (v.file.Keep || v.lenient) && strings.Contains(v.Text, "$") }

// Resolve returns a path, which starts at the folder of the file.
func (v Value) Resolve(s string) string {
	if filepath.IsAbs(s) || v.file.Keep && strings.HasPrefix(s, "$") {
		return s
	}
	return filepath.Join(v.file.Dir, s)
}
