package reference_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/reference"
	"github.com/wasmgate/wasmgate/internal/vault"
)

// resolve returns a text of a configuration with its secrets.
func resolve(t *testing.T, s reference.Sources, text string) (string, error) {
	t.Helper()
	expanded, err := variables.Expand(text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return s.Resolve(t.Context(), expanded)
}

func script(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Each source gives the secret that a text refers to, without the line break at its end. No error names a secret.
func TestSources(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are scripts of a shell")
	}
	keyring.MockInit()
	secret, dir := rand.Text(), t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("SHOWN", secret)
	v := vault.New(filepath.Join(dir, "sealed"), func() ([]byte, error) { return []byte(strings.Repeat("k", 32)), nil })
	file := filepath.Join(dir, "token")
	if err := errors.Join(
		keyring.Set("service", "a/b", secret), v.Put(reference.Key("files/TOKEN"), []byte(secret)), os.WriteFile(file, []byte(secret+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20), 0o600), os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	script(t, dir, "op", `[ "$*" = "read --no-newline op://team/item/field" ] && printf %s "$SHOWN"`)
	script(t, dir, "vault", `[ "$*" = "kv get -field=token secret/mcp" ] && printf %s "$SHOWN"`)
	script(t, dir, "fails", `echo "$SHOWN"; echo "$SHOWN" >&2; exit 3`)
	script(t, dir, "words", `[ "$1|$2" = '$(id)|;x' ] && echo "$SHOWN"`)
	s := reference.New(v)
	for _, text := range []string{
		"${file:" + file + "}", "${file:~/token}", "${exec:words $(id) ;x}", "${keyring:service/a/b}", "${vault:files/TOKEN}", "${op://team/item/field}", "${vault://secret/mcp#token}",
	} {
		if got, err := resolve(t, s, "Bearer "+text+"$$"); err != nil || got != "Bearer "+secret+"$" {
			t.Errorf("%s: %d bytes, %v", text, len(got), err)
		}
	}
	for _, text := range []string{
		"${file:token}", "${file:" + dir + "}", "${file:~/none}", "${file:~/large}", "${file:~/empty}", "${file:/dev/zero}", "${exec:fails}", "${exec:no-such-program}", "${exec: }",
		"${keyring:service}", "${keyring:service/none}", "${vault:none}", "${op://team/other}", "${vault://secret/mcp}", "${vault://-x#token}",
	} {
		if got, err := resolve(t, s, text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// What a secret holds is not expanded again.
func TestOnce(t *testing.T) {
	t.Setenv("NESTED", "${exec:touch never}")
	if got, err := resolve(t, reference.Sources{"exec": never{t}}, "$${exec:x} ${NESTED}"); err != nil || got != "${exec:x} ${exec:touch never}" {
		t.Errorf("%q, %v", got, err)
	}
}

type never struct{ t *testing.T }

func (n never) Read(context.Context, string) (string, error) {
	n.t.Error("a text that no configuration has was taken for a reference")
	return "", nil
}
