package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Manifest is the file beside a WASM module that says what the module offers.
type Manifest struct {
	File   string // its path
	Source []byte // what the file holds
	// JSON is what it says; the order of members and the digits of numbers are those of
	// the file.
	JSON []byte
	root *tree.Node
}

// ReadManifest returns the manifest that stands beside a WASM module: the YAML file with
// the module's name and the ending .yaml. It is nil if there is none. The error is a
// [Problems] if the file is no manifest.
func ReadManifest(module string) (*Manifest, error) {
	path := ManifestFile(module)
	data, err := tree.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseManifest(path, data)
}

// ParseManifest reads a manifest in YAML, of which JSON is a part. The name of the file
// stands in errors, which are [Problems].
func ParseManifest(file string, data []byte) (*Manifest, error) {
	d := &decoder{file: file}
	root := d.parse(data, false)
	if root == nil {
		return nil, d.problems.Err()
	}
	var b bytes.Buffer
	d.manifest(root)
	if len(d.problems) == 0 {
		d.json(&b, root, "")
	}
	if err := d.problems.Err(); err != nil {
		return nil, err
	}
	return &Manifest{file, data, b.Bytes(), root}, nil
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

// manifest reports what is no member of a manifest, or of another kind than its member
// is. What its values mean is judged by who runs the module.
func (d *decoder) manifest(n *tree.Node) {
	d.table(n, "", map[string]reader{
		"tools": func(n *tree.Node, path string) {
			d.items(n, path, func(n *tree.Node, path string) {
				d.table(n, path, map[string]reader{
					"name": d.kind(tree.Text), "title": d.kind(tree.Text), "description": d.kind(tree.Text),
					"inputSchema": d.kind(tree.Table), "outputSchema": d.kind(tree.Table), "annotations": d.kind(tree.Table),
				})
				d.needs(n, path, "name", "a name")
				d.needs(n, path, "inputSchema", "an inputSchema, such as {type: object}")
			})
		},
		"wants": func(n *tree.Node, path string) {
			d.table(n, path, map[string]reader{"http": d.wantedHTTP, "dirs": d.wantedDirs, "secrets": d.kindList(tree.Text), "kv": d.kind(tree.Boolean)})
		},
		"limits": func(n *tree.Node, path string) {
			d.table(n, path, map[string]reader{
				"timeout": func(n *tree.Node, path string) { d.hasUnit(n, path, "s") }, "fuel": d.kind(tree.Number),
				"memory": func(n *tree.Node, path string) { d.hasUnit(n, path, "MiB") },
			})
		},
		"isolation": d.kind(tree.Text), "snapshot": d.kind(tree.Text), "args": d.kindList(tree.Text), "stdin": d.kind(tree.Text), "stdout": d.kind(tree.Text),
		"imports": func(n *tree.Node, path string) { d.table(n, path, map[string]reader{"stub": d.kindList(tree.Text)}) },
		"warm": func(n *tree.Node, path string) {
			d.table(n, path, map[string]reader{"tool": d.kind(tree.Text), "arguments": d.kind(tree.Table)})
		},
	})
}

func (d *decoder) wantedHTTP(n *tree.Node, path string) {
	d.items(n, path, func(n *tree.Node, path string) {
		d.table(n, path, map[string]reader{"origin": d.literal(checkOrigin), "methods": d.kindList(tree.Text), "path": d.literal(checkPrefix)})
	})
}

func (d *decoder) wantedDirs(n *tree.Node, path string) {
	d.items(n, path, func(n *tree.Node, path string) {
		d.table(n, path, map[string]reader{"path": d.kind(tree.Text), "write": d.kind(tree.Boolean)})
	})
}

// kind is the reader of a value of a kind that is taken as it is written.
func (d *decoder) kind(k tree.Kind) reader {
	return func(n *tree.Node, path string) { d.is(n, path, k) }
}

func (d *decoder) kindList(k tree.Kind) reader {
	return func(n *tree.Node, path string) { d.items(n, path, d.kind(k)) }
}

// literal is the reader of a text that is taken as it is written, and passes a check.
func (d *decoder) literal(c check) reader {
	return func(n *tree.Node, path string) {
		if !d.is(n, path, tree.Text) {
			return
		}
		if err := plain(n.Text); err != nil {
			d.fail(n, path, "%v", err)
		} else if err := c(n.Text); err != nil {
			d.fail(n, path, "%q %v", n.Text, err)
		}
	}
}

// ManifestFile is where the manifest of a module is looked for.
func ManifestFile(module string) string {
	return strings.TrimSuffix(module, filepath.Ext(module)) + ".yaml"
}

// json writes a tree as JSON.
func (d *decoder) json(b *bytes.Buffer, n *tree.Node, path string) {
	switch n.Kind {
	case tree.Null:
		b.WriteString("null")
	case tree.Boolean:
		b.WriteString(strings.ToLower(n.Text))
	case tree.Number:
		if !json.Valid([]byte(n.Text)) {
			d.fail(n, path, "is a number that JSON cannot write: use decimal digits")
		}
		b.WriteString(n.Text)
	case tree.List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(b, item, path+"["+strconv.Itoa(i)+"]")
		}
		b.WriteByte(']')
	case tree.Table:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(b, &tree.Node{Kind: tree.Text, Text: f.Key}, path)
			b.WriteByte(':')
			d.json(b, f.Value, tree.Join(path, f.Key))
		}
		b.WriteByte('}')
	default:
		s, _ := json.Marshal(n.Text) // a string cannot fail
		b.Write(s)
	}
}
