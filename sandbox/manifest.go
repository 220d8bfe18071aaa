package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/wasmgate/wasmgate/sandbox/rewrite"
)

const (
	maxManifest = 1 << 20 // bytes; schemas of some hundred tools
	maxTools    = 256
	maxToolName = 128 // bytes; MCP 2025-11-25 recommends no longer names
)

// A Manifest states what a module offers. Its JSON stands in the module's
// custom section `wasmgate`, or in a file beside the module.
type Manifest struct {
	Tools []Tool `json:"tools"`
}

// A Tool is the definition of one function of a module, with the members that
// MCP's tools/list gives it. All of it is the module's own claim.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`            // a JSON object
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // a JSON object, or absent
	Annotations  json.RawMessage `json:"annotations,omitempty"`  // a JSON object, or absent
}

// ParseManifest reads a manifest from JSON. It refuses unknown members: a wish
// that this version does not know must not be taken for granted.
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if len(b) > maxManifest {
		return m, fmt.Errorf("sandbox: the manifest has %d bytes, more than %d", len(b), maxManifest)
	}
	if !utf8.Valid(b) {
		return m, errors.New("sandbox: the manifest is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("sandbox: read the manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Manifest{}, errors.New("sandbox: the manifest is more than one JSON value")
	}
	if err := m.check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// ReadManifest returns the manifest that a module carries. It checks the module
// as far as that can be done without compiling it.
func ReadManifest(wasm []byte) (Manifest, error) {
	m, err := rewrite.Decode(wasm)
	if err != nil {
		return Manifest{}, fmt.Errorf("sandbox: %w", err)
	}
	return choose(nil, m.Manifest)
}

func (m Manifest) check() error {
	if len(m.Tools) == 0 || len(m.Tools) > maxTools {
		return fmt.Errorf("sandbox: the manifest names %d tools; 1 to %d can be", len(m.Tools), maxTools)
	}
	seen := map[string]bool{}
	for _, t := range m.Tools {
		if t.Name == "" || len(t.Name) > maxToolName || strings.ContainsFunc(t.Name, func(c rune) bool { return c <= ' ' || c == 0x7f || c == utf8.RuneError }) {
			return fmt.Errorf("sandbox: the manifest has a tool named %.200q: a name has 1 to %d bytes without spaces and control characters", t.Name, maxToolName)
		}
		if seen[t.Name] {
			return fmt.Errorf("sandbox: the manifest names tool %q twice", t.Name)
		}
		seen[t.Name] = true
		if !isObject(t.InputSchema) {
			return fmt.Errorf("sandbox: tool %q: inputSchema is not a JSON object", t.Name)
		}
		if t.OutputSchema != nil && !isObject(t.OutputSchema) {
			return fmt.Errorf("sandbox: tool %q: outputSchema is not a JSON object", t.Name)
		}
		if t.Annotations != nil && !isObject(t.Annotations) {
			return fmt.Errorf("sandbox: tool %q: annotations is not a JSON object", t.Name)
		}
	}
	return nil
}

func isObject(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")) && json.Valid(b)
}
