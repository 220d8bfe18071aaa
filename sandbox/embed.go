package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
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
