package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/wasmgate/wasmgate/cmd/internal/shell"
)

// What a gateway under test says ends in an error, which a terminal shows and does not act on.
func TestErrorsAreEscaped(t *testing.T) {
	const said = "no\x1b]0;title\x07\u202e\u009b2J\r\nwasmgate: all is well"
	message, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":%s}}`, message)
	}))
	defer gateway.Close()
	var out, errors strings.Builder
	if code := run(t.Context(), []string{"probe", "run", gateway.URL}, strings.NewReader(""), &out, &errors); code == shell.ExitDone {
		t.Errorf("the probe is content: %s", out.String())
	}
	lines := strings.Split(strings.TrimSuffix(errors.String(), "\n"), "\n")
	for _, line := range lines {
		if strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || line == "wasmgate: all is well" {
			t.Errorf("printed %q", line)
		}
	}
	if !strings.Contains(errors.String(), "all is well") {
		t.Errorf("what the gateway said is not printed: %q", lines)
	}
}

// Whatever error ends a command is printed so.
func TestRootEscapes(t *testing.T) {
	var out, errors strings.Builder
	run(t.Context(), []string{"probe", "run", "x\x1b[2J\u202e\u009b"}, strings.NewReader(""), &out, &errors)
	if got := strings.TrimSuffix(errors.String(), "\n"); got == "" || strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		t.Errorf("printed %q", got)
	}
}

// A credential is taken from standard input, and never from the arguments of a process.
func TestHeaders(t *testing.T) {
	c := probeCommands{&shell.Shell{In: strings.NewReader("Authorization: Bearer x\nX-Team: a\n")}}
	if got, err := c.headers([]string{"X-Plain: b", "-"}); err != nil || got.Get("Authorization") != "Bearer x" || got.Get("X-Team") != "a" || got.Get("X-Plain") != "b" {
		t.Errorf("%v, %v", got, err)
	}
	for _, flag := range []string{"Authorization: Bearer x", "authorization:x", " Cookie : a=b", "x-api-key: k", "Proxy-Authorization: y", "nonsense"} {
		if got, err := c.headers([]string{flag}); err == nil {
			t.Errorf("%q is taken: %v", flag, got)
		}
	}
}
