package scripts

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
)

// block is a block of a page: its language, and what it holds.
var block = regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$")

// paste runs the shell's blocks of a page of the documentation, and expects each line of the block that follows one,
// if that has no language, in what is printed.
func paste(ts *testscript.TestScript, _ bool, args []string) {
	page, err := os.ReadFile(filepath.Join(toolchain.Root(), args[0]))
	ts.Check(err)
	printed, ran := "", 0
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		if b[1] == "sh" {
			ts.Check(ts.Exec("sh", "-e", "-c", b[2]))
			printed = ts.ReadFile("stdout") + ts.ReadFile("stderr")
			ran++
		}
		if b[1] != "" {
			continue
		}
		for line := range strings.Lines(b[2]) {
			if line = strings.TrimSpace(line); !strings.Contains(printed, line) {
				ts.Fatalf("%s says that %q is printed", args[0], line)
			}
		}
	}
	if ran == 0 {
		ts.Fatalf("%s has nothing to paste", args[0])
	}
}

// registry serves the answers of a registry, files of a folder by the escaped names of servers, and sets
// $WASMGATE_REGISTRY.
func registry(ts *testscript.TestScript, _ bool, args []string) {
	folder := ts.MkAbs(args[0])
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, version, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/v0.1/servers/"), "/versions/")
		if !ok || version != "latest" {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(folder, filepath.Base(strings.ReplaceAll(name, "%2F", "_"))+".json"))
	}))
	ts.Defer(s.Close)
	ts.Setenv("WASMGATE_REGISTRY", s.URL)
}
