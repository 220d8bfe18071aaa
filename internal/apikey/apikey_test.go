package apikey_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/apikey"
)

func TestID(t *testing.T) {
	key := apikey.Compose(strings.Repeat("i", 12), strings.Repeat("s", 43))
	if id, ok := apikey.ID(key); !ok || id != "iiiiiiiiiiii" || len(key) != apikey.Size {
		t.Errorf("ID = %q, %v", id, ok)
	}
	for i := range key {
		changed := []byte(key)
		changed[i] ^= 1
		if _, ok := apikey.ID(string(changed)); ok {
			t.Errorf("a key with byte %d changed is taken for a key", i)
		}
	}
	for _, text := range []string{"", apikey.Prefix, key[1:], key[:len(key)-1], key + "0"} {
		if _, ok := apikey.ID(text); ok {
			t.Errorf("%d bytes of %d are taken for a key", len(text), len(key))
		}
	}
}
