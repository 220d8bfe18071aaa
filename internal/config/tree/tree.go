package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a file. They keep the parsers, which recurse, off the end of the
// stack and away from their quadratic cases.
const (
	MaxYAML  = 1 << 20 // bytes; a configuration of 1,000 servers takes 200 KB
	MaxJSON  = 8 << 20 // bytes; Claude keeps much else in the file
	maxDepth = 32      // levels; ours needs six
	maxNodes = 200_000 // values, counting those behind an alias each time
)

type Kind uint8

const (
	Null Kind = iota
	Boolean
	Number
	Text
	List
	Table
)

var kindNames = [...]string{
	Null: "nothing", Boolean: "true or false", Number: "a number", Text: "text", List: "a list", Table: "a mapping",
}

// A Node is a value of either language. The kind says which fields are set.
type Node struct {
	Kind   Kind
	Line   int
	Text   string // of a scalar, as written but without its quotes
	Items  []*Node
	Fields []Field
	index  map[string]int // of a key in fields
	size   int            // nodes in the tree below and including this one
}

type Field struct {
	Key   string
	Line  int
	Value *Node
	Was   string // the key as written, if it was renamed
}

// Written returns the key that a person finds in the file.
func (f Field) Written() string {
	if f.Was != "" {
		return f.Was
	}
	return f.Key
}

// Get returns the value of key, or nil.
func (n *Node) Get(key string) *Node {
	if i, ok := n.index[key]; ok {
		return n.Fields[i].Value
	}
	return nil
}

// Same reports whether two values say the same, wherever they stand.
func Same(a, b *Node) bool {
	return a.Kind == b.Kind && a.Text == b.Text &&
		slices.EqualFunc(a.Items, b.Items, Same) &&
		slices.EqualFunc(a.Fields, b.Fields, func(a, b Field) bool { return a.Key == b.Key && Same(a.Value, b.Value) })
}

// Mismatch says that n is not of kind k; "" if it is. An empty value is an empty list or mapping,
// as when all its lines are commented out.
func (n *Node) Mismatch(k Kind) string {
	if n.Kind == k || n.Kind == Null && (k == List || k == Table) {
		return ""
	}
	hint := ""
	if k == Text && (n.Kind == Number || n.Kind == Boolean) {
		hint = ": put it in quotes"
	}
	return fmt.Sprintf("must be %s, not %s%s", kindNames[k], kindNames[n.Kind], hint)
}

// A tree collects what is wrong while a parser's nodes become ours.
type tree struct {
	nodes    int
	first    int // entries of a list that were parsed before
	anchors  map[string]*Node
	problems []Problem
	lineOf   func(offset int) int
}

// count admits another node of size values at depth.
func (t *tree) count(line, depth, size int) error {
	if depth > maxDepth {
		return &syntaxError{line, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	if t.nodes += size; t.nodes > maxNodes {
		return &syntaxError{line, fmt.Sprintf("holds more than %d values", maxNodes)}
	}
	return nil
}

// add appends a field, and reports one that is there already.
func (t *tree) add(n *Node, f Field, path string) {
	if i, ok := n.index[f.Key]; ok {
		t.problems = append(t.problems, Problem{
			Line: f.Line, Path: Join(path, f.Key), Message: fmt.Sprintf("given twice; first in line %d", n.Fields[i].Line),
		})
		return
	}
	if f.Value.Kind == Table || f.Value.Kind == List || f.Value.Kind == Null {
		f.Value.Line = f.Line // where a person looks for it
	}
	n.Put(f)
}

// Put appends a field whose key is new.
func (n *Node) Put(f Field) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[f.Key] = len(n.Fields)
	n.Fields = append(n.Fields, f)
	n.size += f.Value.size
}

// A syntaxError is where a parser gave up.
type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// Parse returns the tree of data. The problems have no File yet.
func Parse(data []byte, json bool) (root *Node, ps []Problem) { return parseAt(data, json, 0) }

// parseAt parses a piece of a list that begins after its first entries, first in number.
func parseAt(data []byte, json bool, first int) (root *Node, ps []Problem) {
	limit := MaxYAML
	if json {
		limit = MaxJSON
	}
	if len(data) > limit {
		return nil, []Problem{{Message: fmt.Sprintf("larger than %d MiB", limit>>20)}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n")) // a line break too (YAML 1.2.2, 5.4)
	if i := invalidUTF8(data); i >= 0 {
		return nil, []Problem{{Line: lineAt(data, i), Message: "not UTF-8"}}
	}
	t := &tree{anchors: map[string]*Node{}, first: first}
	// The parsers are foreign code; what panics on a file is wrong with the file.
	defer func() {
		if recover() != nil {
			root, ps = nil, append(t.problems, Problem{Message: "the YAML parser could not read it in time: write it more simply"})
		}
	}()
	read := t.yaml
	if json {
		read = t.json
	}
	root, err := read(data)
	if err == nil {
		return root, t.problems
	}
	p := Problem{Message: err.Error()}
	if se, ok := errors.AsType[*syntaxError](err); ok {
		p.Line = se.line
		if !json && bytes.Contains(lineOf(data, se.line), []byte("${")) {
			p.Message += ": inside { } and [ ], ${...} has to be in quotes"
		}
	}
	return nil, append(t.problems, p)
}

// lineOf returns the line with a number.
func lineOf(data []byte, number int) []byte {
	n := 0
	for l := range bytes.Lines(data) {
		if n++; n == number {
			return l
		}
	}
	return nil
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// Join appends a key to a path, in quotes if it would not read as one.
func Join(path, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
	}) || key == "" {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Read returns the content of a file, up to one byte beyond what is allowed.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxJSON+1))
}

// IsJSON tells by the name, and where that says nothing by how data begins.
func IsJSON(path string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return true
	case ".yaml", ".yml":
		return false
	}
	s := strings.TrimLeft(strings.TrimPrefix(string(data[:min(len(data), 512)]), "\ufeff"), " \t\r\n")
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*")
}

// ReadWhole returns the content of a file that is no larger than a
// configuration may be.
func ReadWhole(path string) ([]byte, error) {
	data, err := Read(path)
	if err == nil && len(data) > MaxYAML {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d MiB", MaxYAML>>20)}
	}
	return data, err
}
