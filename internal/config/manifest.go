package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/pointer"
)

// A Manifest is the file beside a WASM module that says what the module offers.
type Manifest struct {
	File   string // its path
	Source []byte // what the file holds
	// JSON is what it says; the order of members and the digits of numbers are those of
	// the file.
	JSON []byte
	root *node
}

// ReadManifest returns the manifest that stands beside a WASM module: the YAML file with
// the module's name and the ending .yaml. It is nil if there is none. The error is a
// [Problems] if the file is no manifest.
func ReadManifest(module string) (*Manifest, error) {
	path := ManifestFile(module)
	data, err := read(path)
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
		return nil, d.problems.err()
	}
	var b bytes.Buffer
	d.manifest(root)
	if len(d.problems) == 0 {
		d.json(&b, root, "")
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return &Manifest{file, data, b.Bytes(), root}, nil
}

// Problem is one at a JSON Pointer into the manifest, or at the nearest place above it
// that is there.
func (m *Manifest) Problem(where, message string) Problem {
	p := Problem{File: m.File, Message: message, Line: m.root.line}
	at := m.root
	for token := range strings.SplitSeq(strings.TrimPrefix(where, "/"), "/") {
		token = pointer.Unescape(token)
		i, err := strconv.Atoi(token)
		switch {
		case at.kind == table && at.get(token) != nil:
			at, p.Path = at.get(token), join(p.Path, token)
		case at.kind == list && err == nil && i >= 0 && i < len(at.items):
			at, p.Path = at.items[i], p.Path+"["+token+"]"
		default:
			return p
		}
		p.Line = at.line
	}
	return p
}

// manifest reports what is no member of a manifest, or of another kind than its member
// is. What its values mean is judged by who runs the module.
func (d *decoder) manifest(n *node) {
	d.table(n, "", map[string]reader{
		"tools": func(n *node, path string) {
			d.items(n, path, func(n *node, path string) {
				d.table(n, path, map[string]reader{
					"name": d.kind(text), "title": d.kind(text), "description": d.kind(text),
					"inputSchema": d.kind(table), "outputSchema": d.kind(table), "annotations": d.kind(table),
				})
				d.needs(n, path, "name", "a name")
				d.needs(n, path, "inputSchema", "an inputSchema, such as {type: object}")
			})
		},
		"wants": func(n *node, path string) {
			d.table(n, path, map[string]reader{"http": d.wantedHTTP, "dirs": d.wantedDirs, "secrets": d.kindList(text), "kv": d.kind(boolean)})
		},
		"limits": func(n *node, path string) {
			d.table(n, path, map[string]reader{
				"timeout": func(n *node, path string) { d.hasUnit(n, path, "s") }, "fuel": d.kind(number),
				"memory": func(n *node, path string) { d.hasUnit(n, path, "MiB") },
			})
		},
		"isolation": d.kind(text), "snapshot": d.kind(text), "args": d.kindList(text), "stdin": d.kind(text), "stdout": d.kind(text),
		"imports": func(n *node, path string) { d.table(n, path, map[string]reader{"stub": d.kindList(text)}) },
		"warm": func(n *node, path string) {
			d.table(n, path, map[string]reader{"tool": d.kind(text), "arguments": d.kind(table)})
		},
	})
}

func (d *decoder) wantedHTTP(n *node, path string) {
	d.items(n, path, func(n *node, path string) {
		d.table(n, path, map[string]reader{"origin": d.literal(checkOrigin), "methods": d.kindList(text), "path": d.literal(checkPrefix)})
	})
}

func (d *decoder) wantedDirs(n *node, path string) {
	d.items(n, path, func(n *node, path string) {
		d.table(n, path, map[string]reader{"path": d.kind(text), "write": d.kind(boolean)})
	})
}

// kind is the reader of a value of a kind that is taken as it is written.
func (d *decoder) kind(k kind) reader {
	return func(n *node, path string) { d.is(n, path, k) }
}

func (d *decoder) kindList(k kind) reader {
	return func(n *node, path string) { d.items(n, path, d.kind(k)) }
}

// literal is the reader of a text that is taken as it is written, and passes a check.
func (d *decoder) literal(c check) reader {
	return func(n *node, path string) {
		if !d.is(n, path, text) {
			return
		}
		if err := plain(n.text); err != nil {
			d.fail(n, path, "%v", err)
		} else if err := c(n.text); err != nil {
			d.fail(n, path, "%q %v", n.text, err)
		}
	}
}

// ManifestFile is where the manifest of a module is looked for.
func ManifestFile(module string) string {
	return strings.TrimSuffix(module, filepath.Ext(module)) + ".yaml"
}

// json writes a tree as JSON.
func (d *decoder) json(b *bytes.Buffer, n *node, path string) {
	switch n.kind {
	case null:
		b.WriteString("null")
	case boolean:
		b.WriteString(strings.ToLower(n.text))
	case number:
		if !json.Valid([]byte(n.text)) {
			d.fail(n, path, "is a number that JSON cannot write: use decimal digits")
		}
		b.WriteString(n.text)
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(b, item, path+"["+strconv.Itoa(i)+"]")
		}
		b.WriteByte(']')
	case table:
		b.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(b, &node{kind: text, text: f.key}, path)
			b.WriteByte(':')
			d.json(b, f.value, join(path, f.key))
		}
		b.WriteByte('}')
	default:
		s, _ := json.Marshal(n.text) // a string cannot fail
		b.Write(s)
	}
}
