package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
)

// A client is an MCP client whose gateway is a process of its own.
type client struct {
	t    *testing.T
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Reader
	log  *strings.Builder // what the process wrote to standard error; read once it has ended
	id   int
}

func connect(t *testing.T, config string) *client {
	t.Helper()
	cmd := exec.Command("wasmgate", "serve", "--stdio", "--config", config)
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, cmd: cmd, to: to, from: bufio.NewReader(from), log: new(strings.Builder)}
	cmd.Stderr = c.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { // a process that hangs fails the test, and does not hang it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	watch := time.AfterFunc(time.Minute, end)
	t.Cleanup(func() {
		watch.Stop()
		end()
		if t.Failed() {
			t.Logf("process %d:\n%s", cmd.Process.Pid, c.log)
		}
	})
	c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	fmt.Fprintln(to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *client) send(method, params string) (id int) {
	c.id++
	fmt.Fprintf(c.to, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.id, method, params)
	return c.id
}

func (c *client) receive(id int) string {
	c.t.Helper()
	for {
		line, err := c.from.ReadString('\n')
		if err != nil {
			c.t.Fatalf("answer %d: %v", id, err)
		}
		var m struct{ ID *int }
		if json.Unmarshal([]byte(line), &m) == nil && m.ID != nil && *m.ID == id {
			return line
		}
	}
}

func (c *client) ask(method, params string) string {
	c.t.Helper()
	return c.receive(c.send(method, params))
}

// works lists and calls a tool of the one server.
func (c *client) works() {
	c.t.Helper()
	if answer := c.ask("tools/list", "{}"); !strings.Contains(answer, "stub__echo") {
		c.t.Errorf("list: %.200s", answer)
	}
	if answer := c.ask("tools/call", `{"name":"stub__echo","arguments":{"text":"hi"}}`); !strings.Contains(answer, `"text":"hi"`) {
		c.t.Error("call: " + answer)
	}
}

// leave ends the input of the client's process, which then ends by itself.
func (c *client) leave() {
	c.t.Helper()
	c.to.Close()
	var exit *exec.ExitError
	if err := c.cmd.Wait(); errors.As(err, &exit) {
		c.t.Errorf("process %d: %v", c.cmd.Process.Pid, err)
	}
}

// The process that owns the gateway is killed under two others: one of them
// takes its place, and both clients go on with the handshake that they made
// once. What was under way is answered. It happens again to the next owner.
func TestOwnerIsKilled(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "wasmgate.yaml")
	for name, text := range map[string]string{
		file:                              "version: 1\nservers: {stub: {command: mcp-stub}}\nstate: state/\n",
		filepath.Join(dir, "grants.yaml"): "- {to: [local], servers: [stub]}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiled.Link(t, filepath.Join(dir, "state"))

	owner := connect(t, file)
	owner.works()
	clients := []*client{connect(t, file), connect(t, file)}
	var hanging []int
	for _, c := range clients {
		c.works()
		hanging = append(hanging, c.send("tools/call", `{"name":"stub__hang","arguments":{}}`))
		c.works() // so that it has arrived
	}
	if err := owner.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		if answer := c.receive(hanging[i]); !strings.Contains(answer, `"code":-32603`) || !strings.Contains(answer, "may or may not have been carried out") {
			t.Errorf("what was under way: %s", answer)
		}
		c.works()
	}

	status, err := exec.Command("wasmgate", "status", "--json", "--config", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	heir, other := clients[0], clients[1]
	if !strings.Contains(string(status), fmt.Sprintf(`"pid": %d,`, heir.cmd.Process.Pid)) {
		heir, other = other, heir
	}
	id := other.send("tools/call", `{"name":"stub__hang","arguments":{}}`)
	if err := heir.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other.receive(id)
	other.works()
	other.leave()
	if out, err := exec.Command("wasmgate", "audit", "verify", filepath.Join(dir, "state", "audit.jsonl")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
