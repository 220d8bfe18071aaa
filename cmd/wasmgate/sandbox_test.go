package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/cmd/internal/granted"
	"github.com/wasmgate/wasmgate/cmd/internal/starter"
	"github.com/wasmgate/wasmgate/sandbox"
)

// guest returns a reactor with one tool. It imports one function of a type that
// is named by its parameters and results (i is an i32), has data at address 16,
// where its answer is to be, and the given body of tool_call.
func guest(module, function, params, results, data, toolCall, manifest string) []byte {
	sized := func(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }
	section := func(id byte, content string) string { return string(id) + sized(content) }
	types := func(s string) string { return sized(strings.ReplaceAll(s, "i", "\x7f")) }
	const realloc = "\x00\x23\x00\x23\x00\x20\x03\x6a\x24\x00\x0b" // what lies beyond a mark, which is moved on
	return []byte("\x00asm\x01\x00\x00\x00" +
		section(1, "\x02"+"\x60"+types(params)+types(results)+"\x60"+types("iiii")+types("i")) +
		section(2, "\x01"+sized(module)+sized(function)+"\x00\x00") +
		section(3, "\x02\x01\x01") + // two functions
		section(5, "\x01\x00\x01") + // one page of memory
		section(6, "\x01\x7f\x01\x41\x80\x08\x0b") + // the mark, at 1024
		section(7, "\x03"+sized("memory")+"\x02\x00"+sized("cabi_realloc")+"\x00\x01"+sized("tool_call")+"\x00\x02") +
		section(10, "\x02"+sized(realloc)+sized("\x00"+toolCall+"\x0b")) +
		section(11, "\x01\x00\x41\x10\x0b"+sized(data)) +
		section(0, sized("wasmgate")+manifest))
}

const oneTool = `{"tools":[{"name":"t","description":"Does it.","inputSchema":{"type":"object"}}]}`

// relay returns a guest that hands its arguments to a function of wasmgate, and
// answers what it is answered.
func relay(function string) []byte {
	return guest("wasmgate", function, "iii", "", "", "\x20\x02\x20\x03\x41\x10\x10\x00\x41\x10", oneTool)
}

// bare returns a guest without its manifest.
func bare(guest []byte) []byte {
	return guest[:bytes.LastIndex(guest, []byte("\x08wasmgate{"))-2] // the section's id and size
}

// program runs the program with a home of its own, in a folder that holds a
// module m.wasm.
func program(t *testing.T, wasm []byte) func(stdin string, args ...string) (code int, out, err string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	if err := os.WriteFile("m.wasm", wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(stdin string, args ...string) (int, string, string) {
		var out, err bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(stdin), &out, &err)
		return code, out.String(), err.String()
	}
}

func TestSandboxHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	defer server.Close()
	wasmgate := program(t, relay("http"))
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	tests := map[string]struct {
		request string
		origin  string
		code    int
		want    string
	}{
		"an origin that is granted answers":    {`{"method":"GET","url":"@/"}`, server.URL, 0, `"body":"GET "`},
		"a body arrives":                       {`{"method":"POST","url":"@/","body":"hello"}`, server.URL, 0, `"body":"POST hello"`},
		"localhost may be this machine":        {`{"method":"GET","url":"` + byName + `/"}`, byName, 0, `"status":200`},
		"another method is refused":            {`{"method":"DELETE","url":"@/"}`, server.URL, 1, "denied: "},
		"another origin is refused":            {`{"method":"GET","url":"@/"}`, "https://example.com", 1, "denied: "},
		"a redirect to elsewhere is refused":   {`{"method":"GET","url":"@/away"}`, server.URL, 1, "denied: "},
		"there are no secrets to be sent":      {`{"method":"GET","url":"@/","headers":{"X-Key":["{{secret:API}}"]}}`, server.URL, 1, "denied: "},
		"a request that is none is told apart": {`{"method":1}`, server.URL, 1, "request of the module is malformed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			request := strings.ReplaceAll(tt.request, "@", server.URL)
			code, out, err := wasmgate(request, "sandbox", "run", "m.wasm", "--http", tt.origin)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, output %s, want %d and %s\n%s", code, out, tt.code, tt.want, err)
			}
			if !strings.Contains(err, "host calls 1") && tt.want != "request of the module is malformed" {
				t.Errorf("the call of the host is not told: %s", err)
			}
		})
	}
	code, _, err := wasmgate("{}", "sandbox", "run", "m.wasm", "--kv")
	if code != 1 || !strings.Contains(err, `"wasmgate.http"`) || !strings.HasSuffix(err, "; here: --http ORIGIN\n") {
		t.Errorf("without the grant: exit code %d: %s", code, err)
	}
}

func TestSandboxKV(t *testing.T) {
	wasmgate := program(t, relay("kv"))
	code, out, err := wasmgate(`{"op":"get","key":"a"}`, "sandbox", "run", "m.wasm", "--kv")
	if code != 0 || !strings.Contains(out, `"found":false`) {
		t.Errorf("get: exit code %d, %s%s", code, out, err)
	}
	code, out, _ = wasmgate(`{"op":"steal","key":"a"}`, "sandbox", "run", "m.wasm", "--kv")
	if code != 1 || !strings.Contains(out, "not one of get, set, delete, list") {
		t.Errorf("an op that is none: exit code %d, %s", code, out)
	}
	if code, _, err = wasmgate("{}", "sandbox", "run", "m.wasm"); code != 1 || !strings.HasSuffix(err, "; here: --kv\n") {
		t.Errorf("without the grant: exit code %d: %s", code, err)
	}

	host, openErr := granted.New("m", dial.Options{}, dial.Rules{}, nil, nil)
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer host.Close()
	for _, step := range []struct {
		r    sandbox.KVRequest
		want string
	}{
		{sandbox.KVRequest{Op: "set", Key: "a/1", Value: []byte("one"), TTL: time.Hour}, `{false  []}`},
		{sandbox.KVRequest{Op: "get", Key: "a/1"}, `{true one []}`},
		{sandbox.KVRequest{Op: "list", Key: "a/"}, `{false  [a/1]}`},
		{sandbox.KVRequest{Op: "delete", Key: "a/1"}, `{true  []}`},
		{sandbox.KVRequest{Op: "get", Key: "a/1"}, `{false  []}`},
	} {
		res, err := host.KV(t.Context(), step.r)
		if got := fmt.Sprintf("{%t %s %v}", res.Found, res.Value, res.Keys); err != nil || got != step.want {
			t.Errorf("%s %s: %s, %v, want %s", step.r.Op, step.r.Key, got, err, step.want)
		}
	}
}

// The guest makes a directory in the first one that it is granted; its answer is
// an error if it cannot.
func TestSandboxDir(t *testing.T) {
	const data = "\x00\x00\x00\x00" + "\x1c\x00\x00\x00" + "\x01\x00\x00\x00" + "1made" // answer: the 1 behind it
	wasmgate := program(t, guest("wasi_snapshot_preview1", "path_create_directory", "iii", "i", data,
		"\x41\x10"+"\x41\x03\x41\x1d\x41\x04\x10\x00"+"\x41\x00\x47"+"\x3a\x00\x00"+"\x41\x10", oneTool))
	made := func() bool {
		_, err := os.Stat(filepath.Join("granted", "made"))
		return err == nil
	}
	if err := os.Mkdir("granted", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--dir", "granted"}} {
		if code, out, err := wasmgate("{}", append([]string{"sandbox", "run", "m.wasm"}, flags...)...); code != 1 || made() {
			t.Errorf("with %q it may write: exit code %d, %s%s", flags, code, out, err)
		}
	}
	if code, out, err := wasmgate("{}", "sandbox", "run", "m.wasm", "--dir", "granted:rw"); code != 0 || !made() {
		t.Errorf("with :rw it may not write: exit code %d, %s%s", code, out, err)
	}
}

// The guest tells its environment, which it takes to be of 14 bytes.
func TestSandboxSet(t *testing.T) {
	const data = "\x01\x00\x00\x00" + "\x00\x02\x00\x00" + "\x0e\x00\x00\x00" // a tool error: what is at 512
	wasmgate := program(t, guest("wasi_snapshot_preview1", "environ_get", "ii", "i", data,
		"\x41\x80\x02\x41\x80\x04\x10\x00\x1a"+"\x41\x10", oneTool))
	if _, out, err := wasmgate("{}", "sandbox", "run", "m.wasm", "--set", "GREETING=hello"); out != "GREETING=hello\n" {
		t.Errorf("it knows %q\n%s", out, err)
	}
}

// What a module says of itself cannot move the cursor of who looks at it.
func TestSandboxInspectForeign(t *testing.T) {
	const evil = `e\u001b[2J\u009b1A\u202e\n\tv`
	manifest := `{"tools":[{"name":"a\u202eb","description":"` + evil + `","inputSchema":{},"outputSchema":{"type":"array"}}],"wants":{"http":[{"origin":"` + evil +
		`","methods":["GET"],"path":"` + evil + `"}],"dirs":[{"path":"` + evil + `","write":true},{}],"secrets":["` + evil + `"],"kv":true},` +
		`"limits":{"timeout":"2s","fuel":1000,"memory":"1MiB"},"isolation":"session"}`
	wasmgate := program(t, guest("wasmgate", "http", "iii", "", "", "\x41\x10", manifest))
	code, out, err := wasmgate("", "sandbox", "inspect", "m.wasm")
	if code != 0 || strings.ContainsAny(out+err, "\x1b\u009b\u202e\t") || !strings.Contains(err, "has an outputSchema of another type than object") {
		t.Errorf("exit code %d, %s%q", code, err, out)
	}
	for _, want := range []string{"\nhttp     {origin: ", "\ndirs     {path: ", ", write: true}\n", "{path: PATH, write: false}", "\nsecrets  e", "\nkv       true\n",
		"\nisolation  call: ", "\nnote       its manifest has isolation: session, which is the configuration's to choose", "timeout 2s, fuel 1000, memory 1 MiB", "\nwasmgate      http          http\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	code, out, err = wasmgate("", "sandbox", "run", "m.wasm", "--http", "https://example.com", "--tool", "other")
	if code != 2 || strings.Contains(err, "\u202e") {
		t.Errorf("exit code %d, %s%s", code, out, err)
	}
}

// A module without a manifest is looked at, gets a first one, and then runs.
func TestSandboxManifest(t *testing.T) {
	wasmgate := program(t, bare(relay("kv")))
	code, out, err := wasmgate("", "sandbox", "inspect", "m.wasm")
	if code != 0 || !strings.Contains(out, "\nabi        reactor\n") || !strings.Contains(out, "wasmgate sandbox manifest") {
		t.Errorf("exit code %d: %s%s", code, out, err)
	}
	if code, _, err = wasmgate("{}", "sandbox", "run", "m.wasm", "--kv"); code != 1 || !strings.Contains(err, "`wasmgate sandbox manifest NAME.wasm` writes a first one") {
		t.Errorf("run without a manifest: exit code %d, %s", code, err)
	}
	if code, out, err = wasmgate("", "sandbox", "manifest", "m.wasm"); code != 0 || !strings.Contains(out, "wrote m.yaml") {
		t.Fatalf("exit code %d: %s%s", code, out, err)
	}
	code, out, err = wasmgate("", "sandbox", "inspect", "m.wasm")
	if code != 0 || strings.Contains(out, "problem") || !strings.Contains(out, "\nkv    true\n") || !strings.Contains(out, "\nm     What it does") {
		t.Errorf("exit code %d: %s%s", code, out, err)
	}
	if code, out, err = wasmgate(`{"text":"x"}`, "sandbox", "run", "m.wasm", "--kv"); code != 1 || !strings.Contains(out, "not one of get, set") {
		t.Errorf("run: exit code %d: %s%s", code, out, err)
	}
	before, _ := os.ReadFile("m.yaml")
	if code, _, err = wasmgate("", "sandbox", "manifest", "m.wasm"); code != 1 || !strings.Contains(err, "has a manifest") {
		t.Errorf("again: exit code %d, %s", code, err)
	}
	if after, _ := os.ReadFile("m.yaml"); !bytes.Equal(before, after) {
		t.Error("the manifest that was there is another")
	}
	if e := os.WriteFile("n.wasm", []byte("no"), 0o600); e != nil {
		t.Fatal(e)
	}
	for _, command := range []string{"manifest", "inspect"} {
		if code, _, err = wasmgate("", "sandbox", command, "n.wasm"); code != 1 || !strings.Contains(err, "does not load") {
			t.Errorf("%s of what is not a module: exit code %d, %s", command, code, err)
		}
	}
}

// What is pushed has its manifest inside, and the reference that is printed names it; the file stays as it is.
func TestSandboxPush(t *testing.T) {
	const blobs = "/v2/someone/tool/"
	kept := map[string][]byte{}
	types := map[string]string{}
	var mu sync.Mutex
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("Location", blobs+"blobs/uploads/1")
			w.WriteHeader(http.StatusAccepted)
		case r.Method == http.MethodPut && r.URL.Query().Get("digest") != "":
			kept[blobs+"blobs/"+digest] = body
			w.WriteHeader(http.StatusCreated)
		case r.Method == http.MethodPut:
			kept[blobs+"manifests/"+digest], types[blobs+"manifests/"+digest] = body, r.Header.Get("Content-Type")
			w.WriteHeader(http.StatusCreated)
		case kept[r.URL.Path] == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", types[r.URL.Path])
			_, _ = w.Write(kept[r.URL.Path])
		}
	}))
	defer registry.Close()
	tag := "oci://" + registry.Listener.Addr().String() + "/someone/tool:v1"
	wasmgate := program(t, bare(relay("kv")))
	if code, _, err := wasmgate("", "sandbox", "push", "m.wasm", tag); code != 1 || !strings.Contains(err, "it has no manifest") {
		t.Errorf("without a manifest: exit code %d, %s", code, err)
	}
	if code, _, err := wasmgate("", "sandbox", "manifest", "m.wasm"); code != 0 {
		t.Fatal(err)
	}
	before, _ := os.ReadFile("m.wasm")
	code, out, err := wasmgate("", "sandbox", "push", "m.wasm", tag)
	if code != 0 || !strings.HasPrefix(out, tag+"@sha256:") {
		t.Fatalf("exit code %d: %s%s", code, out, err)
	}
	if after, _ := os.ReadFile("m.wasm"); !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
	if e := os.Remove("m.yaml"); e != nil {
		t.Fatal(e)
	}
	if code, out, err = wasmgate("", "sandbox", "inspect", strings.TrimSpace(out)); code != 0 || strings.Contains(out, "problem") || !strings.Contains(out, "\nm     What it does") {
		t.Errorf("what was pushed: exit code %d: %s%s", code, out, err)
	}
	if code, _, err = wasmgate("", "sandbox", "push", "m.wasm", "ghcr.io/someone/tool:v1"); code != 1 {
		t.Errorf("no reference: exit code %d, %s", code, err)
	}
}

func TestSandboxInspectJSON(t *testing.T) {
	wasmgate := program(t, relay("kv"))
	code, out, err := wasmgate("", "sandbox", "inspect", "m.wasm", "--json")
	var r struct {
		SHA256  string
		ABI     string
		Imports []struct {
			Module string
			Grant  []string
		}
		Limits map[string]any
	}
	if e := json.Unmarshal([]byte(out), &r); code != 0 || e != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, e, out, err)
	}
	got := fmt.Sprintln(len(r.SHA256), r.ABI, r.Imports, r.Limits["timeout"], r.Limits["memory"], r.Limits["host_calls"])
	if want := "64 reactor [{wasmgate [kv]}] 5s 6.7108864e+07 2000\n"; got != want {
		t.Errorf("%s, want %s\n%s", got, want, out)
	}
	if strings.Contains(out, `"Timeout"`) {
		t.Errorf("the limits stand there twice:\n%s", out)
	}
}

// Every starter says what to do with it.
func TestSandboxNewSteps(t *testing.T) {
	wasmgate := program(t, nil)
	for _, language := range starter.Languages() {
		code, out, err := wasmgate("", "sandbox", "new", language, language)
		for _, want := range []string{"# build", "# test", "# run it by itself", "wasmgate sandbox run "} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, no %q in\n%s%s", language, code, want, out, err)
			}
		}
	}
}
