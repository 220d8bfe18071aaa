// Program passed prints which parts of the module one plain tools/call passes, on its way through
// the gateway to a server and back, both over HTTP: functions, files, packages, and the lines of
// those files. It has to be built with coverage.
//
//	go run -cover -covermode=atomic -coverpkg=./... ./cmd/internal/arch/passed [FUNCTIONS]
//
// All checks are on, as a configuration file without further settings has them, and the gateway is
// warm. Background work, such as the watchers of files, now and then runs during a call. So only
// what each of several calls passed is counted. A file gets the names of the functions.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/configured"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/cmd/internal/arch"
)

const (
	protocol = "2025-11-25"
	warm     = 50 // calls before those that are counted
	counted  = 5  // calls
	file     = "version: 1\nservers: {one: {url: %q}}\npolicy: {data: {grants: grants.yaml}}\naudit: {path: audit.jsonl}\nstate: state/\n"
	grants   = "- {to: ['*'], servers: [one]}\n"
	call     = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"hello"}}}`
)

func main() {
	gateway.ChildMain()
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "passed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	dir, err := os.MkdirTemp("", "passed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "wasmgate.yaml"), fmt.Appendf(nil, file, server.URL), 0o600),
		os.WriteFile(filepath.Join(dir, "grants.yaml"), []byte(grants), 0o600),
	); err != nil {
		return err
	}
	gw, err := configured.Open(ctx, filepath.Join(dir, "wasmgate.yaml"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gw.Close(ctx)) }()
	front := httptest.NewServer(gw)
	defer front.Close()
	c := &client{url: front.URL + "/mcp"}
	if err := c.begin(); err != nil {
		return err
	}
	functions, err := c.passed(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(show(functions), missed(functions)); err != nil || len(args) == 0 {
		return err
	}
	return os.WriteFile(args[0], []byte(strings.Join(functions, "\n")+"\n"), 0o666)
}

// serve is a server with one tool, which answers with the text that it is given.
func serve(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ Text string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted) // a notification
		return
	}
	text := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{"text"}}
	var result any = struct{}{}
	switch m.Method {
	case "initialize":
		result = map[string]any{"protocolVersion": protocol, "capabilities": map[string]any{"tools": struct{}{}}, "serverInfo": map[string]any{"name": "one", "version": "1"}}
	case "tools/list":
		result = map[string]any{"tools": []any{map[string]any{"name": "echo", "description": "Echoes.", "inputSchema": text, "outputSchema": text}}}
	case "tools/call":
		answer := map[string]string{"text": m.Params.Arguments.Text}
		b, _ := json.Marshal(answer) // strings always marshal
		result = map[string]any{"content": []any{map[string]string{"type": "text", "text": string(b)}}, "structuredContent": answer}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// A client sends messages in one session.
type client struct{ url, session string }

func (c *client) send(message string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": c.session} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if c.session != "" {
		req.Header.Set("Mcp-Protocol-Version", protocol)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	c.session = cmp.Or(res.Header.Get("Mcp-Session-Id"), c.session)
	return io.ReadAll(res.Body)
}

// begin opens the session, and warms up.
func (c *client) begin() error {
	_, err := c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocol + `","capabilities":{},"clientInfo":{"name":"passed","version":"1"}}}`)
	if err != nil {
		return err
	}
	for _, message := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`} {
		if _, err := c.send(message); err != nil {
			return err
		}
	}
	for range warm {
		if err := c.call(); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) call() error {
	b, err := c.send(fmt.Sprintf(call, 3))
	if err == nil && (!bytes.Contains(b, []byte(`"structuredContent"`)) || bytes.Contains(b, []byte(`"isError"`))) {
		err = fmt.Errorf("the call is not answered as it should be: %s", b)
	}
	return err
}

// passed makes calls, and returns the functions that each of them passed, as FILE:LINE NAME.
func (c *client) passed(dir string) (all []string, err error) {
	for i := range counted {
		to := filepath.Join(dir, fmt.Sprint("counters", i))
		if err := os.Mkdir(to, 0o700); err != nil {
			return nil, err
		}
		if err := coverage.ClearCounters(); err != nil {
			return nil, fmt.Errorf("%w: see the comment of this program", err)
		}
		if err := errors.Join(c.call(), coverage.WriteCountersDir(to), coverage.WriteMetaDir(to)); err != nil {
			return nil, err
		}
		out, err := exec.Command("go", "tool", "covdata", "func", "-i="+to).Output()
		if err != nil {
			return nil, fmt.Errorf("go tool covdata: %w", err)
		}
		var one []string
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			place, ok := strings.CutPrefix(f[0], arch.Module)
			if ok && len(f) == 3 && f[2] != "0.0%" && !strings.HasPrefix(place, "cmd/internal/arch/") {
				one = append(one, place+" "+f[1])
			}
		}
		if all == nil {
			all = one
		}
		all = slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(one, name) })
	}
	return all, nil
}

// missed is the error of the stages in docs/internals/development.md that the calls did not pass.
func missed(functions []string) (err error) {
	stages, err := arch.Stages(".")
	if err != nil {
		return err
	}
	for _, s := range stages {
		if !slices.ContainsFunc(functions, func(f string) bool {
			place, name, _ := strings.Cut(f, " ")
			file, _, _ := strings.Cut(place, ":")
			return file == s.File && name[strings.LastIndexByte(name, '.')+1:] == s.Function
		}) {
			err = errors.Join(err, fmt.Errorf("no call passes stage %s %s", s.File, s.Function))
		}
	}
	return err
}

// show prints how many functions there are, and in what.
func show(functions []string) error {
	files := make(map[string]bool)
	packages := make(map[string]int) // functions
	lines := 0
	for _, f := range functions {
		name, _, _ := strings.Cut(f, ":")
		packages[filepath.Dir(name)]++
		if files[name] {
			continue
		}
		files[name] = true
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines += bytes.Count(src, []byte("\n"))
	}
	fmt.Printf("one tools/call passes %d functions in %d files of %d packages; the files have %d lines\n", len(functions), len(files), len(packages), lines)
	names := make([]string, 0, len(packages))
	for name := range packages {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(packages[b], packages[a]), cmp.Compare(a, b)) })
	for _, name := range names {
		fmt.Printf("    %6d  %s\n", packages[name], name)
	}
	return nil
}
