package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadManifest returns, as JSON, the manifest that stands beside a WASM module:
// the YAML file with the module's name and the ending .yaml. It is nil if there
// is none. The order of members and the digits of numbers are those of the file.
// The error is a [Problems] if the file is no manifest.
func ReadManifest(module string) ([]byte, error) {
	path := ManifestFile(module)
	data, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &decoder{file: path}
	root := d.parse(data, false)
	if root == nil {
		return nil, d.problems.err()
	}
	var b bytes.Buffer
	if d.is(root, "", table) {
		d.json(&b, root, "")
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
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
