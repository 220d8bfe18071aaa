package except

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files"
)

// ErrChanged says that the configuration is not what it was when it was seen.
var ErrChanged = errors.New("the configuration was changed after you loaded it: look again")

// A ByHand says why only a person can write an exception.
type ByHand struct{ File, Why string }

func (e *ByHand) Error() string {
	if e.File == "" {
		return "there is no configuration file: " + e.Why
	}
	return fmt.Sprintf("%s cannot be written safely: %s. Put the lines in by hand", e.File, e.Why)
}

// ErrNone says that an exception is not one of what was found.
var ErrNone = errors.New("this exception is not offered for the finding, or is in force already")

// Offers are the exceptions from what was found. Seen names the state of the file into which they
// could be written.
type Offers struct {
	File string  `json:"file"`
	Seen string  `json:"seen"`
	All  []Offer `json:"exceptions"`
}

// An Offer is an exception, and what would be written.
type Offer struct {
	Exception
	Line   string `json:"line,omitempty"`    // of the file as it would be, which has the exception
	ByHand string `json:"by_hand,omitempty"` // why it cannot be written
}

// Offered returns the exceptions that there are from what was found.
func Offered(c *config.Config, f Found) (Offers, error) {
	o := Offers{File: c.File, All: []Offer{}}
	seen, data, err := See(c.File)
	if err != nil && !errors.As(err, new(*ByHand)) {
		return o, err
	}
	o.Seen = seen
	for _, e := range For(c, f) {
		one := Offer{Exception: e}
		why := err
		if why == nil {
			_, one.Line, why = Plan(c.File, data, e)
		}
		if why != nil {
			one.ByHand = why.Error()
		}
		o.All = append(o.All, one)
	}
	return o, nil
}

// Named returns one of the exceptions from what was found.
func Named(c *config.Config, f Found, name string) (Exception, error) {
	all := For(c, f)
	i := slices.IndexFunc(all, func(e Exception) bool { return e.Name == name })
	if i < 0 {
		return Exception{}, ErrNone
	}
	return all[i], nil
}

// See returns what names the state of a configuration's file, and its bytes.
func See(file string) (seen string, data []byte, err error) {
	if file == "" {
		return "", nil, &ByHand{Why: "write one, with version: 1 and the lines, and name it with --config"}
	}
	if data, err = os.ReadFile(file); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), data, nil
}

// Plan returns the file with an exception in it, and the lines that are new there. The error is a
// [*ByHand] if it cannot be written without touching anything else.
func Plan(file string, data []byte, e Exception) (out []byte, lines string, err error) {
	byHand := func(why string) ([]byte, string, error) { return nil, "", &ByHand{file, why} }
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".yaml" && ext != ".yml" {
		return byHand("wasmgate edits only files whose names end with .yaml or .yml")
	}
	if _, err := config.Parse(file, data, config.Options{}); err != nil { // which also bounds what is parsed below
		return byHand("it has problems, which wasmgate doctor lists")
	}
	parsed, err := parser.ParseBytes(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), 0)
	if err != nil || len(parsed.Docs) != 1 {
		return byHand("it is not YAML of exactly one document")
	}
	w := writer{lines: slices.Collect(bytes.Lines(bytes.Clone(data))), e: e}
	if err := w.write(parsed.Docs[0].Body); err != nil {
		return byHand(err.Error())
	}
	out = bytes.Join(w.lines, nil)
	c, err := config.Parse(file, out, config.Options{})
	if err != nil || !w.adds(data, out) {
		return byHand("it is written in a way that only a person can edit")
	}
	if !e.holds(c) {
		return byHand("an entry that takes precedence would hide it, or the entry is in another file")
	}
	return out, strings.TrimRight(string(w.lines[w.at]), "\r\n"), nil
}

// Write puts an exception into a configuration's file, if it is still what was seen.
func Write(file, seen string, e Exception) (lines string, err error) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	unlock, err := files.LockBeside(file)
	if err != nil {
		return "", err
	}
	defer unlock()
	now, data, err := See(file)
	if err != nil {
		return "", err
	}
	if now != seen {
		return "", ErrChanged
	}
	out, lines, err := Plan(file, data, e)
	if err != nil {
		return "", err
	}
	return lines, files.ReplaceSynced(file, out, files.Mode(file, 0o600))
}

// A writer edits a file by lines. The parser knows where things stand; comments and styles stay
// as they are since nothing is rendered anew.
type writer struct {
	lines [][]byte
	e     Exception
	at    int // the line that has the exception

	path  []string // of what was added
	item  bool     // that is the first of the list there
	value any      // that was there before it; nil: nothing
}

var errMarks = errors.New("anchors and aliases are used there, so that other entries would change too")

// write goes down the keys that there are, and adds what is missing as their first entry: the first
// that matches counts. The whole file has it at its end.
func (w *writer) write(body ast.Node) error {
	node, above := body, 0 // the line of the key above
	for depth, key := range w.e.at {
		found, err := member(node, key)
		if err != nil {
			return err
		}
		if found == nil {
			w.path = w.e.at[:depth+1]
			return w.insert(node, above, nested(w.e.at, depth, w.e.entry(), w.e.key == ""), depth == 0)
		}
		node, above = found.Value, found.Key.GetToken().Position.Line
	}
	w.path = w.e.at
	if w.e.key == "" {
		w.item = true
		return w.insert(node, above, w.e.value, false)
	}
	key := strings.Trim(w.e.key, `"`)
	w.path = append(slices.Clone(w.path), key)
	found, err := member(node, key)
	if err != nil {
		return err
	}
	if found != nil {
		return w.replace(found.Value)
	}
	return w.insert(node, above, w.e.entry(), false)
}

// member returns the entry of a mapping with a key, nil without.
func member(n ast.Node, key string) (*ast.MappingValueNode, error) {
	values := []*ast.MappingValueNode{}
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, errMarks
	default:
		return nil, errors.New("an exception cannot be added here: the key has no value yet, or its value is not a mapping")
	}
	for _, v := range values {
		if v.Key.GetToken().Value == key {
			return v, nil
		}
	}
	return nil, nil
}

// insert writes an entry as the first of a mapping or a list.
func (w *writer) insert(n ast.Node, above int, entry string, atEnd bool) error {
	if atEnd {
		last := len(w.lines) - 1
		if last >= 0 && !bytes.HasSuffix(w.lines[last], []byte("\n")) {
			w.lines[last] = append(w.lines[last], '\n')
		}
		return w.line(len(w.lines), entry)
	}
	indent := func(column int) string { return strings.Repeat(" ", column-1) }
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.IsFlowStyle {
			return w.within(n.Start.Position.Line, n.Start.Position.Column, entry, len(n.Values) > 0)
		}
		return w.line(above, indent(n.Values[0].Key.GetToken().Position.Column)+entry)
	case *ast.MappingValueNode:
		return w.line(above, indent(n.Key.GetToken().Position.Column)+entry)
	case *ast.SequenceNode:
		if n.IsFlowStyle {
			return w.within(n.Start.Position.Line, n.Start.Position.Column, entry, len(n.Values) > 0)
		}
		return w.line(above, indent(n.Start.Position.Column)+"- "+entry)
	case *ast.AnchorNode, *ast.AliasNode:
		return errMarks
	}
	return errors.New("an exception cannot be added here: the key has no value yet, or its value is not a list")
}

// line adds a line after a number of them.
func (w *writer) line(after int, text string) error {
	if after < 0 || after > len(w.lines) {
		return errors.New("its lines differ from what the parser reports")
	}
	end := "\n"
	if after > 0 && bytes.HasSuffix(w.lines[after-1], []byte("\r\n")) {
		end = "\r\n"
	}
	w.lines, w.at = slices.Insert(w.lines, after, []byte(text+end)), after
	return nil
}

// within adds an entry after the bracket at a place.
func (w *writer) within(line, column int, entry string, more bool) error {
	if more {
		entry += ", "
	}
	i, err := w.place(line, column)
	if err != nil || i >= len(w.lines[w.at]) || !strings.ContainsRune("{[", rune(w.lines[w.at][i])) {
		return errors.New("its brackets differ from what the parser reports")
	}
	w.lines[w.at] = slices.Concat(w.lines[w.at][:i+1], []byte(entry), w.lines[w.at][i+1:])
	return nil
}

var plainWord = regexp.MustCompile(`^("[^"\\]*"|'[^']*'|[A-Za-z]+)`)

// replace puts the value in the place of a word.
func (w *writer) replace(old ast.Node) error {
	word, ok := old.(*ast.StringNode)
	if !ok {
		return errors.New("the value there is not a plain scalar")
	}
	i, err := w.place(word.Token.Position.Line, word.Token.Position.Column)
	if err != nil {
		return err
	}
	text := w.lines[w.at][i:]
	w.value = word.Value
	w.lines[w.at] = slices.Concat(w.lines[w.at][:i], []byte(w.e.value), text[len(plainWord.Find(text)):])
	return nil
}

// place returns the byte of a column of a line, which it notes.
func (w *writer) place(line, column int) (int, error) {
	if line < 1 || line > len(w.lines) {
		return 0, errors.New("its lines differ from what the parser reports")
	}
	w.at = line - 1
	i := 0
	for range column - 1 {
		_, n := utf8.DecodeRune(w.lines[w.at][i:])
		i += n
	}
	return i, nil
}

// adds reports whether the new file says what the old one did, and the exception besides.
func (w *writer) adds(before, after []byte) bool {
	var was, is yaml.MapSlice
	if yaml.UnmarshalWithOptions(before, &was, yaml.UseOrderedMap()) != nil || yaml.UnmarshalWithOptions(after, &is, yaml.UseOrderedMap()) != nil {
		return false
	}
	return reflect.DeepEqual(any(was), w.without(any(is), w.path))
}

// without takes what was added out of a value.
func (w *writer) without(v any, path []string) any {
	if list, ok := v.([]any); ok && len(path) == 0 && len(list) > 0 {
		return list[1:]
	}
	table, ok := v.(yaml.MapSlice)
	if !ok || len(path) == 0 {
		return v
	}
	i := slices.IndexFunc(table, func(m yaml.MapItem) bool { return m.Key == path[0] })
	if i < 0 {
		return v
	}
	table = slices.Clone(table)
	switch {
	case len(path) > 1 || w.item:
		table[i].Value = w.without(table[i].Value, path[1:])
	case w.value != nil:
		table[i].Value = w.value
	default:
		table = slices.Delete(table, i, i+1)
	}
	return table
}
