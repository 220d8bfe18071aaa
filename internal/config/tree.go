package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of a file. They keep the parsers, which recurse, off the end of the
// stack and away from their quadratic cases.
const (
	maxYAML  = 1 << 20 // bytes; a configuration of 1,000 servers takes 200 KB
	maxJSON  = 8 << 20 // bytes; Claude keeps much else in the file
	maxDepth = 32      // levels; ours needs six
	maxNodes = 200_000 // values, counting those behind an alias each time
)

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	table
)

var kindNames = [...]string{
	null: "nothing", boolean: "true or false", number: "a number", text: "text", list: "a list", table: "a mapping",
}

// A node is a value of either language. The kind says which fields are set.
type node struct {
	kind   kind
	line   int
	text   string // of a scalar, as written but without its quotes
	items  []*node
	fields []field
	index  map[string]int // of a key in fields
	size   int            // nodes in the tree below and including this one
}

type field struct {
	key   string
	line  int
	value *node
	was   string // the key as written, if it was renamed
}

// written returns the key that a person finds in the file.
func (f field) written() string {
	if f.was != "" {
		return f.was
	}
	return f.key
}

// get returns the value of key, or nil.
func (n *node) get(key string) *node {
	if i, ok := n.index[key]; ok {
		return n.fields[i].value
	}
	return nil
}

// A tree collects what is wrong while a parser's nodes become ours.
type tree struct {
	nodes    int
	first    int // entries of a list that were parsed before
	anchors  map[string]*node
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
func (t *tree) add(n *node, f field, path string) {
	if i, ok := n.index[f.key]; ok {
		t.problems = append(t.problems, Problem{
			Line: f.line, Path: join(path, f.key), Message: fmt.Sprintf("given twice; first in line %d", n.fields[i].line),
		})
		return
	}
	if f.value.kind == table || f.value.kind == list || f.value.kind == null {
		f.value.line = f.line // where a person looks for it
	}
	n.put(f)
}

// put appends a field whose key is new.
func (n *node) put(f field) {
	if n.index == nil {
		n.index = map[string]int{}
	}
	n.index[f.key] = len(n.fields)
	n.fields = append(n.fields, f)
	n.size += f.value.size
}

// A syntaxError is where a parser gave up.
type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parse returns the tree of data. The problems have no File yet.
func parse(data []byte, json bool) (root *node, ps []Problem) { return parseAt(data, json, 0) }

// parseAt is parse of a piece of a list, of which first entries come before.
func parseAt(data []byte, json bool, first int) (root *node, ps []Problem) {
	limit := maxYAML
	if json {
		limit = maxJSON
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
	t := &tree{anchors: map[string]*node{}, first: first}
	// The parsers are foreign code; what panics on a file is wrong with the file.
	defer func() {
		if recover() != nil {
			root, ps = nil, append(t.problems, Problem{Message: "the parser gave up on it: write it more plainly"})
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

// join appends a key to a path, in quotes if it would not read as one.
func join(path, key string) string {
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

// read returns the content of a file, up to one byte beyond what is allowed.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxJSON+1))
}

// isJSON tells by the name, and where that says nothing by how data begins.
func isJSON(path string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return true
	case ".yaml", ".yml":
		return false
	}
	s := strings.TrimLeft(strings.TrimPrefix(string(data[:min(len(data), 512)]), "\ufeff"), " \t\r\n")
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*")
}
