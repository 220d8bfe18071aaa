package calls

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
	"syscall"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/compiled"
	"github.com/wasmgate/wasmgate/internal/testing/scripts"
)

// A client is an MCP client whose gateway is a process of its own.
type client struct {
	t    *testing.T
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Reader

	stdout io.Closer
	log    *strings.Builder // what the process wrote to standard error; read once it has ended
	id     int
}

func connect(t *testing.T, config string) *client {
	t.Helper()
	scripts.Programs(t)
	cmd := exec.Command("wasmgate", "serve", "--stdio", "--config", config)
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, cmd: cmd, to: to, from: bufio.NewReader(from), stdout: from, log: new(strings.Builder)}
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
	for !strings.Contains(c.ask("tools/list", "{}"), "stub__echo") { // a server that starts is waited for 1 s; connect bounds this
		time.Sleep(10 * time.Millisecond)
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

// owner returns the process that owns the gateway.
func owner(t *testing.T, file string) *os.Process {
	t.Helper()
	out, err := exec.Command("wasmgate", "status", "--json", "--config", file).Output()
	var status struct{ PID int }
	if err == nil {
		err = json.Unmarshal(out, &status)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(status.PID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stubbed makes a configuration of one server.
func stubbed(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "wasmgate.yaml")
	for name, text := range map[string]string{
		file:                              "version: 1\nservers: {stub: {command: mcp-stub}}\nstate: state/\n",
		filepath.Join(dir, "grants.yaml"): "- {to: [local], servers: [stub]}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compiled.Link(t, filepath.Join(dir, "state"))
	return dir, file
}

// A client ends, however it is ended, and fails no call of the others, the first client included.
// Its own calls end with it. The gateway ends with the last client.
func TestClientsEndAlone(t *testing.T) {
	dir, file := stubbed(t)
	clients := make([]*client, 5)
	for i := range clients {
		clients[i] = connect(t, file)
		clients[i].works()
		clients[i].send("tools/call", `{"name":"stub__hang","arguments":{}}`)
		clients[i].works() // so that it has arrived
	}
	gateway := owner(t, file)
	signals := func(c *client, all ...os.Signal) {
		if c.cmd.Process.Pid == gateway.Pid {
			t.Error("a client's process owns the gateway")
		}
		for _, s := range all {
			_ = c.cmd.Process.Signal(s) // it may have ended by the one before
		}
		_ = c.cmd.Wait()
	}
	signals(clients[0], os.Kill)
	signals(clients[1], os.Interrupt, syscall.SIGTERM, os.Kill)
	ended := make(chan struct{})
	go func() { defer close(ended); signals(clients[2]) }()
	for running := true; running; { // the second signal ends it at once, and two that are sent together can arrive as one
		_ = clients[2].cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			running = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	clients[3].stdout.Close() // and its input ends, as when an agent is killed
	clients[3].leave()
	last := clients[4]
	last.works()
	if now := owner(t, file); now.Pid != gateway.Pid {
		t.Errorf("the gateway was process %d and is %d", gateway.Pid, now.Pid)
	}
	signals(last, os.Kill)
	for gateway.Signal(syscall.Signal(0)) == nil { // the limit of the test bounds it
		time.Sleep(10 * time.Millisecond)
	}
	log, err := os.ReadFile(filepath.Join(dir, "state", "audit.jsonl"))
	if n := strings.Count(string(log), `"code":"cancelled"`); err != nil || n != len(clients) {
		t.Errorf("%d calls cancelled, want %d; %v", n, len(clients), err)
	}
}

// The process that owns the gateway is killed: another takes its place, and both clients go on
// with the handshake that they made once. What was under way is answered. It happens again to the
// next owner.
func TestOwnerIsKilled(t *testing.T) {
	dir, file := stubbed(t)
	clients := []*client{connect(t, file), connect(t, file)}
	for range 2 {
		var hanging []int
		for _, c := range clients {
			c.works()
			hanging = append(hanging, c.send("tools/call", `{"name":"stub__hang","arguments":{}}`))
			c.works() // so that it has arrived
		}
		if err := owner(t, file).Kill(); err != nil {
			t.Fatal(err)
		}
		for i, c := range clients {
			if answer := c.receive(hanging[i]); !strings.Contains(answer, `"code":-32603`) || !strings.Contains(answer, "may or may not have been carried out") {
				t.Errorf("what was under way: %s", answer)
			}
			c.works()
		}
	}
	for _, c := range clients {
		c.leave()
	}
	if out, err := exec.Command("wasmgate", "audit", "verify", filepath.Join(dir, "state", "audit.jsonl")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
