package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Manifest is the file next to a WASM module that says what the module offers.
type Manifest struct {
	File   string // its path
	Source []byte // what the file holds
	// JSON is what it says; the order of members and the digits of numbers are those of
	// the file.
	JSON []byte
	root *tree.Node
}

// Read returns the manifest that is next to a WASM module: the YAML file with the module's name and the
// ending .yaml. It is nil if there is none. The error is a [tree.Problems] if the file is no manifest.
func Read(module string) (*Manifest, error) {
	path := File(module)
	data, err := tree.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a manifest in YAML, or in JSON, which is a part of YAML. Errors contain the name of the
// file, and are [tree.Problems].
func Parse(file string, data []byte) (*Manifest, error) {
	f := &decode.File{Name: file}
	root, ok := f.Parse(data, false)
	if !ok {
		return nil, f.Problems.Err()
	}
	var json []byte
	if root.Table(members); len(f.Problems) == 0 {
		json = root.JSON()
	}
	if err := f.Problems.Err(); err != nil {
		return nil, err
	}
	return &Manifest{file, data, json, root.Node}, nil
}

// Problem is one at a JSON Pointer into the manifest, or at the nearest place above it
// that is there.
func (m *Manifest) Problem(where, message string) tree.Problem {
	p := tree.Problem{File: m.File, Message: message, Line: m.root.Line}
	at := m.root
	for token := range strings.SplitSeq(strings.TrimPrefix(where, "/"), "/") {
		token = pointer.Unescape(token)
		i, err := strconv.Atoi(token)
		switch {
		case at.Kind == tree.Table && at.Get(token) != nil:
			at, p.Path = at.Get(token), tree.Join(p.Path, token)
		case at.Kind == tree.List && err == nil && i >= 0 && i < len(at.Items):
			at, p.Path = at.Items[i], p.Path+"["+token+"]"
		default:
			return p
		}
		p.Line = at.Line
	}
	return p
}

// members are the readers of a manifest's members, each for the kind of its value. The package that
// runs the module checks what the values mean.
var members = map[string]decode.Reader{
	"tools":     each(tool),
	"wants":     decode.Table(map[string]decode.Reader{"http": each(wantedHTTP), "dirs": each(wantedDir), "secrets": decode.KindList(tree.Text), "kv": decode.Kind(tree.Boolean)}),
	"limits":    decode.Table(map[string]decode.Reader{"timeout": unit("s"), "fuel": decode.Kind(tree.Number), "memory": unit("MiB")}),
	"isolation": decode.Kind(tree.Text),
	"snapshot":  decode.Kind(tree.Text),
	"args":      decode.KindList(tree.Text),
	"stdin":     decode.Kind(tree.Text),
	"stdout":    decode.Kind(tree.Text),
	"imports":   decode.Table(map[string]decode.Reader{"stub": decode.KindList(tree.Text)}),
	"warm":      decode.Table(map[string]decode.Reader{"tool": decode.Kind(tree.Text), "arguments": decode.Kind(tree.Table)}),
}

func tool(v decode.Value) {
	v.Table(map[string]decode.Reader{
		"name": decode.Kind(tree.Text), "title": decode.Kind(tree.Text), "description": decode.Kind(tree.Text),
		"inputSchema": decode.Kind(tree.Table), "outputSchema": decode.Kind(tree.Table), "annotations": decode.Kind(tree.Table),
	})
	v.Needs("name", "a name")
	v.Needs("inputSchema", "an inputSchema, such as {type: object}")
}

func wantedHTTP(v decode.Value) {
	v.Table(map[string]decode.Reader{"origin": decode.Literal(check.Origin), "methods": decode.KindList(tree.Text), "path": decode.Literal(check.Prefix)})
}

func wantedDir(v decode.Value) {
	v.Table(map[string]decode.Reader{"path": decode.Kind(tree.Text), "write": decode.Kind(tree.Boolean)})
}

// each reads each item of a list.
func each(read decode.Reader) decode.Reader {
	return func(v decode.Value) {
		for item := range v.List() {
			read(item)
		}
	}
}

// unit reads a number with a unit.
func unit(usual string) decode.Reader { return func(v decode.Value) { v.HasUnit(usual) } }

// File is where the manifest of a module is looked for.
func File(module string) string {
	return strings.TrimSuffix(module, filepath.Ext(module)) + ".yaml"
}
