package sandbox_test

import (
	"bytes"
	"testing"

	"github.com/wasmgate/wasmgate/sandbox"
)

// A manifest that is put into a module takes the place of the one that was there, and
// changes nothing else.
func TestEmbed(t *testing.T) {
	wasm := []byte("\x00asm\x01\x00\x00\x00\x00\x02\x01a\x01\x04\x01\x60\x00\x00")
	manifest := func(text string) sandbox.Manifest {
		m, err := sandbox.ParseManifest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one := manifest(`{"tools":[{"name":"a","inputSchema":{"type": "object"}}],"args":["-c","1"]}`)
	two := manifest(`{"tools":[{"name":"b","inputSchema":{"type": "object"}}]}`)
	with := func(wasm []byte, m sandbox.Manifest) []byte {
		out, err := sandbox.Embed(wasm, m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := with(wasm, one)
	if !sandbox.Carries(first, one) || sandbox.Carries(first, two) || sandbox.Carries(wasm, one) || !bytes.HasPrefix(first, wasm) {
		t.Errorf("%q", first)
	}
	if again := with(first, two); !sandbox.Carries(again, two) || !bytes.Equal(again, with(wasm, two)) {
		t.Errorf("%q", again)
	}
	for _, bad := range []string{"", "\x00asm", "\x00asm\x01\x00\x00\x00\x00", "\x00asm\x01\x00\x00\x00\x00\x05a"} {
		if out, err := sandbox.Embed([]byte(bad), one); err == nil {
			t.Errorf("%q became %q", bad, out)
		}
	}
}
