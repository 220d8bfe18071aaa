package sandbox_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

func TestEmbeddedTools(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct{ tool, args, want string }{
		"csv_query":           {"csv_query", `{"csv":"a,b\n1,x\n2,y\n","where":[{"column":"a","op":"gt","value":1}]}`, `{"columns":["a","b"],"rows":[["2","y"]],"total":1}`},
		"hash":                {"hash", `{"text":"abc","algorithm":"md5"}`, `{"algorithm":"md5","hex":"900150983cd24fb0d6963f7d28e17f72","bytes":3}`},
		"html_to_text":        {"html_to_text", `{"html":"<p>a<script>b</script>"}`, `{"title":"","text":"a","links":[],"truncated":false}`},
		"json_query":          {"json_query", `{"query":"[.[] | . * 2]","data":[1,2]}`, `{"results":[[2,4]],"truncated":false}`},
		"text_diff":           {"text_diff", `{"old":"a\n","new":"b\n"}`, `{"equal":false,"added":1,"removed":1,"diff":"--- old\n+++ new\n@@ -1 +1 @@\n-a\n+b\n"}`},
		"an error of a tool":  {"hash", `{"text":"a","algorithm":"x"}`, `error: argument algorithm: "x" is none of sha256, sha512, sha1, md5, crc32`},
		"a query that spins":  {"json_query", `{"query":"[recurse]|length|until(false;.+1)","data":1}`, `trap_deadline`},
		"a query that hoards": {"json_query", `{"query":"reduce range(30) as $i (.; . + .)","data":"a"}`, `trap_memory`},
	}
	r := newRuntime(t, sandbox.Config{CacheDir: cache})
	m := compile(t, r, embedded(t), sandbox.ModuleConfig{Name: "embedded"})
	spinning := compile(t, r, embedded(t), sandbox.ModuleConfig{Limits: sandbox.Limits{Timeout: 300e6}})
	var names []string
	for _, tool := range m.Tools() {
		names = append(names, tool.Name)
	}
	if want := []string{"csv_query", "hash", "html_to_text", "json_query", "text_diff"}; !slices.Equal(names, want) {
		t.Errorf("tools = %v, want %v", names, want)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			called := m
			if tt.want == "trap_deadline" {
				called = spinning
			}
			res, err := called.Call(t.Context(), tt.tool, []byte(tt.args), sandbox.CallConfig{})
			got := string(res.Output)
			switch {
			case err != nil:
				got = code(err)
			case res.IsError:
				got = "error: " + got
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestEmbeddedToolsManifest checks that what is listed is what the module says.
func TestEmbeddedToolsManifest(t *testing.T) {
	quick, err := sandbox.EmbeddedToolsManifest()
	if err != nil {
		t.Fatal(err)
	}
	carried, err := sandbox.ReadManifest(embedded(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(carried, quick); diff != "" {
		t.Errorf("the manifest beside the module differs (-module +beside):\n%s", diff)
	}
}

// TestEmbeddedToolsAreCurrent builds the embedded module anew: what is
// embedded is what its sources say, byte for byte.
func TestEmbeddedToolsAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a WASM module with the Go toolchain")
	}
	version, err := run(t, "go", "env", "GOVERSION")
	if err != nil {
		t.Skipf("no Go toolchain to build with: %v", err)
	}
	if out, err := run(t, "go", "mod", "download"); err != nil {
		t.Skipf("the modules of sandbox/tools cannot be had: %v\n%s", err, out)
	}
	built := t.TempDir()
	for i, file := range []string{"tools.wasm.gz", "files.wasm.gz"} {
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(version); got != z.Comment {
			t.Skipf("%s was built with %s, the toolchain here is %s: nothing to compare", file, z.Comment, got)
		}
		if i == 0 {
			if out, err := run(t, "go", "run", "./cmd/pack", "-o", built); err != nil {
				t.Fatalf("pack: %v\n%s", err, out)
			}
		}
		fresh, err := os.ReadFile(filepath.Join(built, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packed, fresh) {
			t.Errorf("%s (%d bytes) is not what its sources build (%d bytes): run go run ./cmd/pack in sandbox/tools", file, len(packed), len(fresh))
		}
	}
}

// run runs a command in the module of the tools.
func run(t *testing.T, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = filepath.Join("..", "..", "sandbox", "tools")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
