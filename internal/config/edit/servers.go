package edit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/files"
)

// AddServers adds servers to the wasmgate.yaml at path, and returns the ids of those that were not
// there yet. If there is no file, it creates one that only its owner can read. Everything else in the
// file stays as it is, comments included. If the file has a server with other settings, or is written
// in a way that only a person can edit, AddServers returns an error and writes nothing. The servers are
// those of [config.ImportMCP].
func AddServers(path string, servers []config.Server) (added []string, err error) {
	path = files.Canonical(path) // not the link to it, if it is one
	if tree.IsJSON(path, nil) {
		return nil, fmt.Errorf("%s is the file of another program: name a wasmgate.yaml", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	unlock, err := files.LockBeside(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	data, err := tree.ReadWhole(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte("version: 1\n"), nil
	}
	if err != nil {
		return nil, err
	}
	w := &writer{path: path, data: data}
	if w.root, err = w.tree(data); err != nil {
		return nil, err
	}
	if err := w.choose(servers); err != nil || len(w.ids) == 0 {
		return nil, err
	}
	out := w.edited()
	if err := w.check(out); err != nil {
		return nil, err
	}
	return w.ids, files.ReplaceSynced(path, out, files.Mode(path, 0o600))
}

// A writer adds servers to one file.
type writer struct {
	path string
	data []byte
	root *tree.Node

	ids   []string     // to be added
	nodes []*tree.Node // what each is to read as
	text  []byte       // the same as [Render] writes it
}

func (w *writer) tree(data []byte) (*tree.Node, error) {
	f := &decode.File{Name: w.path}
	root, ok := f.Parse(data, false)
	if !ok || !root.Is(tree.Table) {
		return nil, f.Problems.Err()
	}
	return root.Node, nil
}

// choose keeps the servers that the file does not have.
func (w *writer) choose(servers []config.Server) error {
	var differ []string
	for _, s := range servers {
		text := Render([]config.Server{s})
		root, err := w.tree(text)
		if err != nil {
			return err
		}
		now := root.Get("servers").Get(s.ID)
		if old := w.servers(w.root).Get(s.ID); old == nil {
			w.ids, w.nodes = append(w.ids, s.ID), append(w.nodes, now)
			w.text = append(w.text, text[len("servers:\n"):]...)
		} else if !tree.Same(old, now) {
			differ = append(differ, s.ID)
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s has other servers of these names: %s; rename or remove them there, and try again. Nothing was written", w.path, strings.Join(differ, ", "))
	}
	return nil
}

// servers returns the servers of a file; no fields if there are none.
func (*writer) servers(root *tree.Node) *tree.Node {
	if n := root.Get("servers"); n != nil {
		return n
	}
	return new(tree.Node)
}

// noServers is a block of servers that holds nothing.
var noServers = regexp.MustCompile(`^servers:[ \t]*\{[ \t]*\}`)

// edited returns the file with the servers after the last one that it has.
func (w *writer) edited() []byte {
	lines := slices.Collect(bytes.Lines(bytes.Clone(w.data)))
	if n := len(lines); n > 0 && !bytes.HasSuffix(lines[n-1], []byte("\n")) {
		lines[n-1] = append(lines[n-1], '\n')
	}
	at := slices.IndexFunc(w.root.Fields, func(f tree.Field) bool { return f.Key == "servers" })
	if at < 0 {
		return slices.Concat(bytes.Join(lines, nil), []byte("servers:\n"), w.text)
	}
	first, end := w.root.Fields[at].Line, len(lines) // lines are counted from 1
	if at+1 < len(w.root.Fields) {
		end = w.root.Fields[at+1].Line - 1
	}
	for end > first && isOutside(lines[end-1]) {
		end--
	}
	lines[first-1] = noServers.ReplaceAll(lines[first-1], []byte("servers:"))
	indent := "  "
	if fields := w.root.Fields[at].Value.Fields; len(fields) > 0 {
		line := lines[fields[0].Line-1]
		indent = string(line[:len(line)-len(bytes.TrimLeft(line, " "))])
	}
	var text []byte
	for line := range bytes.Lines(w.text) { // which is written with two spaces
		text = append(append(text, indent...), line[len("  "):]...)
	}
	return bytes.Join(slices.Insert(lines, end, text), nil)
}

// isOutside reports whether a line is empty, or a comment that belongs to no block.
func isOutside(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 || line[0] == '#' }

// check holds the new file against what it was meant to be: an edit by lines does not
// suit every way of writing YAML.
func (w *writer) check(out []byte) error {
	if len(out) > tree.MaxYAML {
		return fmt.Errorf("%s would be larger than %d MiB. Nothing was written", w.path, tree.MaxYAML>>20)
	}
	byHand := fmt.Errorf("%s is written in a way that only a person can edit: run the command without a file to write to, and put in what it prints by hand. Nothing was written", w.path)
	root, err := w.tree(out)
	if err != nil {
		return byHand
	}
	for _, f := range w.root.Fields {
		if now := root.Get(f.Key); f.Key != "servers" && (now == nil || !tree.Same(f.Value, now)) {
			return byHand
		}
	}
	before, now := w.servers(w.root), w.servers(root)
	if len(now.Fields) != len(before.Fields)+len(w.ids) {
		return byHand
	}
	for _, f := range before.Fields {
		if one := now.Get(f.Key); one == nil || !tree.Same(f.Value, one) {
			return byHand
		}
	}
	for i, id := range w.ids {
		if one := now.Get(id); one == nil || !tree.Same(w.nodes[i], one) {
			return byHand
		}
	}
	return config.CheckServers(w.path, now)
}
