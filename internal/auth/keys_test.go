package auth

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/internal/files/state"
)

// A key that was revoked stays revoked while the process runs: if the file cannot be written, and if
// an older file takes its place.
func TestRevokedKeysStayRevoked(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, file string, before []byte, k *Keys, id string){
		"the file cannot be written": func(t *testing.T, file string, _ []byte, k *Keys, id string) {
			was := k.doc
			k.doc = state.File(filepath.Join(file, "below", "a-file")) // a file is no folder: nothing can be written below it
			if err := k.Revoke(t.Context(), id); err == nil {
				t.Fatal("no error")
			}
			k.doc = was
		},
		"an older file comes back": func(t *testing.T, file string, before []byte, k *Keys, id string) {
			if err := k.Revoke(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(before, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "keys.json")
			k, err := OpenKeys(t.Context(), state.File(file))
			if err != nil {
				t.Fatal(err)
			}
			secret, key, err := k.Create(t.Context(), Key{Principal: "builder"})
			if err != nil {
				t.Fatal(err)
			}
			if _, refused := k.find(secret); refused != nil {
				t.Fatal(refused)
			}
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spoil(t, file, before, k, key.ID)
			if _, refused := k.find(secret); refused == nil {
				t.Error("a revoked key is taken")
			}
			if _, err := k.Reread(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, refused := k.find(secret); refused == nil {
				t.Error("a revoked key is taken after the file was read again")
			}
			if list := k.List(); len(list) != 1 || list[0].Revoked.IsZero() {
				t.Errorf("the list says that it holds: %+v", list)
			}
			if err := k.Revoke(t.Context(), "another"); !errors.Is(err, ErrNoKey) {
				t.Errorf("err = %v", err)
			}
		})
	}
}
