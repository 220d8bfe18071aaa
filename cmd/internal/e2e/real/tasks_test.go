//go:build unix

package real

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/e2e"
	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// testTaskAsks has server-everything ask its client in the middle of a task: the question
// comes with the request for the result, and the task goes on with the answer.
func testTaskAsks(t *testing.T, p *e2e.Program) {
	dir := e2e.Node(t)
	pl := p.Place(t, fmt.Sprintf("servers:\n  ev: {command: node, args: [%s, stdio]}\n", filepath.Join(dir, everythingServer)))
	pl.Must("grant", "--yes", "ev__*")
	gw := pl.Serve()
	w := &e2e.Wire{URL: gw.URL}
	h, _, err := w.Post(t.Context(), "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"wire","version":"1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	w.Session = h.Get("Mcp-Session-Id")
	if _, _, err := w.Post(t.Context(), "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		t.Fatal(err)
	}
	id := ask(w, t, "tools/call", `"name":"ev__simulate-research-query","arguments":{"topic":"python","ambiguous":true},"task":{"ttl":60000}`).At("/task/taskId").String()
	timelimit.Wait(t, "the task asks", func() bool {
		return ask(w, t, "tasks/get", `"taskId":`+id).Get("status").Text() == "input_required"
	})
	asked, res := talk(w, t, "tasks/result", `"taskId":`+id, `{"action":"accept","content":{"interpretation":"technical"}}`)
	if asked.Get("method").Text() != "elicitation/create" || asked.At("/params/_meta/io.modelcontextprotocol~1related-task/taskId").String() != id {
		t.Errorf("the client was asked %s", asked)
	}
	if !strings.Contains(res.At("/result/content/0/text").Text(), "Research Report: python") {
		t.Errorf("the result is %s", res)
	}
	pl.Verify()
}

// talk sends a request, answers what the client is asked on its stream, and returns that
// and the answer.
func talk(w *e2e.Wire, t *testing.T, method, params, person string) (asked, answer gate.Doc) {
	t.Helper()
	w.Last++
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, w.Last, method, params)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2025-11-25"}, "Mcp-Session-Id": {w.Session},
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for events := bufio.NewScanner(resp.Body); answer.IsZero() && events.Scan(); {
		data, ok := bytes.CutPrefix(events.Bytes(), []byte("data: {"))
		if !ok {
			continue
		}
		switch m := gate.MustDoc("{" + string(data)); {
		case m.Get("method").IsZero():
			answer = m
		case !m.Get("id").IsZero():
			asked = m
			if _, _, err := w.Post(t.Context(), "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Get("id"), person)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return asked, answer
}
