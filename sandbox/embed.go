package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// manifestSection is the name of the custom section that holds the manifest of a module.
const manifestSection = "wasmgate"

// Embed returns a module that carries a manifest, in the place of the one that it carries
// already. All other sections stay as they are.
func Embed(wasm []byte, m Manifest) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	const header = 8 // magic and version
	if len(wasm) < header || string(wasm[:4]) != "\x00asm" {
		return nil, errors.New("sandbox: it is not a WASM module")
	}
	out := bytes.Clone(wasm[:header])
	for rest := wasm[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errors.New("sandbox: the module ends within a section")
		}
		section := rest[:1+n+int(size)]
		if !carriesManifest(section[0], section[1+n:]) {
			out = append(out, section...)
		}
		rest = rest[len(section):]
	}
	body := append(binary.AppendUvarint(nil, uint64(len(manifestSection))), manifestSection...)
	body = append(body, text...)
	out = binary.AppendUvarint(append(out, 0), uint64(len(body)))
	return append(out, body...), nil
}

// carriesManifest reports whether a section is the one with the manifest.
func carriesManifest(id byte, body []byte) bool {
	size, n := binary.Uvarint(body)
	return id == 0 && n > 0 && size == uint64(len(manifestSection)) && bytes.HasPrefix(body[n:], []byte(manifestSection))
}

// Carries reports whether a module carries this very manifest.
func Carries(wasm []byte, m Manifest) bool {
	carried, err := ReadManifest(wasm)
	return err == nil && sameManifest(carried, m)
}

// sameManifest reports whether two manifests say the same, whatever the white space.
func sameManifest(a, b Manifest) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
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

// choose returns a module's manifest: the one given, or the one carried. If there are both,
// they have to say the same.
func choose(given *Manifest, carried []byte) (Manifest, error) {
	switch {
	case given != nil && carried != nil:
		m, err := parseManifest(carried)
		if err == nil && !sameManifest(m, *given) {
			err = errors.New("the manifest next to it is different from the one that it carries: put the first into the module with `wasmgate sandbox manifest --embed`, or remove it")
		}
		return m, err
	case given != nil:
		return *given, given.check()
	case carried != nil:
		return parseManifest(carried)
	}
	return Manifest{}, errNoManifest
}

var errNoManifest = errors.New("it has no manifest: write one next to it, NAME.yaml for NAME.wasm (`wasmgate sandbox manifest NAME.wasm` writes a first one), or put one into it with --embed; a Go program gives it in ModuleConfig.Manifest")
