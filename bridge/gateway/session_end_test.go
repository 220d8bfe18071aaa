package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/sandbox"
)

// counting is a module whose tool keeps its state for a session: a reactor that answers
// "x".
func counting(t *testing.T) gateway.Module {
	t.Helper()
	section := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	name := func(s string) string { return string([]byte{byte(len(s))}) + s }
	realloc, call := "\x00\x41\x80\x08\x0b", "\x00\x41\x10\x0b"          // i32.const 1024, and 16, where the result is
	result := "\x00\x00\x00\x00\x1c\x00\x00\x00\x03\x00\x00\x00" + `"x"` // no error, from 28 on, 3 bytes
	wasm := "\x00asm\x01\x00\x00\x00" +
		section(1, "\x01\x60\x04\x7f\x7f\x7f\x7f\x01\x7f") + section(3, "\x02\x00\x00") + section(5, "\x01\x00\x01") +
		section(7, "\x03"+name("memory")+"\x02\x00"+name("cabi_realloc")+"\x00\x00"+name("tool_call")+"\x00\x01") +
		section(10, "\x02"+name(realloc)+name(call)) + section(11, "\x01\x00\x41\x10\x0b"+name(result))
	manifest, err := sandbox.ParseManifest([]byte(`{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return gateway.Module{WASM: []byte(wasm), Config: sandbox.ModuleConfig{Name: "counting", Manifest: &manifest, Isolation: sandbox.IsolationSession}}
}

// What a module keeps for a session ends with the session of the client.
func TestSessionEndsItsInstance(t *testing.T) {
	unraced.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("an instance is seen by the mapping of its memory, in /proc")
	}
	images := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(maps), "wasm-image")
	}
	srv := httptest.NewServer(start(t, gateway.Config{
		Recorder: new(records), Policy: granting("*"), CacheDir: filepath.Join(t.TempDir(), "wasm"), Modules: []gateway.Module{counting(t)},
	}))
	t.Cleanup(srv.Close)
	send := func(method, session, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatal(resp.Status, err, string(b))
		}
		return resp, string(b)
	}
	before := images()
	const sessions = 5
	var ids []string
	for i := range sessions {
		resp, _ := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		id := resp.Header.Get("Mcp-Session-Id")
		ids = append(ids, id)
		send(http.MethodPost, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if _, answer := send(http.MethodPost, id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"local__a","arguments":{}}}`, i+2)); !strings.Contains(answer, `\"x\"`) {
			t.Fatal(answer)
		}
	}
	if during := images(); during < before+sessions {
		t.Fatalf("%d instances, before %d", during, before)
	}
	for _, id := range ids {
		send(http.MethodDelete, id, "")
	}
	for until := time.Now().Add(patience); images() > before+1; time.Sleep(10 * time.Millisecond) { // the snapshot stays
		if time.Now().After(until) {
			t.Fatalf("%d instances are left, before the sessions there were %d", images(), before)
		}
	}
}
