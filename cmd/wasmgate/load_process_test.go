package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An upstream is an echo server: over stdio, where each of its clients starts a process, or over
// HTTP.
type upstream struct {
	id, revision string
	url          string // "" over stdio
	hellos       string // a file with a byte for each handshake
	tools        int
}

// startUpstream returns an echo server. Over HTTP it runs, and ends with the test.
func startUpstream(tb testing.TB, kind, revision string, tools int) *upstream {
	tb.Helper()
	u := &upstream{id: kind + "-" + revision[:4], revision: revision, tools: tools}
	u.hellos = filepath.Join(tb.TempDir(), "hellos")
	if err := os.WriteFile(u.hellos, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	if kind != "stdio" {
		_, out := u.start(tb, kind, u.hellos)
		url, err := out.ReadString('\n')
		if err != nil {
			tb.Fatal(err)
		}
		u.url = strings.TrimSpace(url)
	}
	return u
}

// start starts a process of the echo server, which ends with its input.
func (u *upstream) start(tb testing.TB, kind, hellos string) (io.Writer, *bufio.Reader) {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0], u.args(hellos)...)
	cmd.Env = append(os.Environ(), "WASMGATE_TEST_ECHO="+kind)
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("echo server: %v", err)
		}
	})
	return in, bufio.NewReader(out)
}

func (u *upstream) args(hellos string) []string {
	return []string{u.revision, strconv.Itoa(u.tools), hellos}
}

// direct returns clients that speak with the server without a gateway.
func (u *upstream) direct(tb testing.TB, clients int) []caller {
	tb.Helper()
	if u.url != "" {
		return newHTTPClients(tb, u.url, u.revision, clients)
	}
	var all []caller
	for range clients {
		in, out := u.start(tb, "stdio", "")
		all = append(all, &lineClient{in, out})
	}
	return all
}

// config is the server's line in the configuration of a gateway.
func (u *upstream) config() string {
	if u.url != "" {
		return fmt.Sprintf("  %s: {url: %s, transport: streamable-http, start: 10m}\n", u.id, u.url)
	}
	args, _ := json.Marshal(u.args(u.hellos)) // strings only
	return fmt.Sprintf("  %s: {command: %q, args: %s, env: {WASMGATE_TEST_ECHO: stdio}}\n", u.id, os.Args[0], args)
}

// gatewayProcess is a gateway that runs.
type gatewayProcess struct {
	url, dir string
	pid      int
}

// linuxOnly skips where the system does not tell what a process uses.
func linuxOnly(tb testing.TB) {
	if runtime.GOOS != "linux" {
		tb.Skip("what another process uses is read from /proc, which only Linux has")
	}
}

// startGateway starts a program as a gateway with its files in dir, in front of servers
// whose tools are all granted. It ends with the test.
func startGateway(tb testing.TB, program, dir string, ups ...*upstream) gatewayProcess {
	tb.Helper()
	writeGateway(tb, dir, "- {to: [local], tools: [\"http-*\", \"sse-*\", \"stdio-*\"]}\n", ups...)
	return startProgram(tb, program, dir)
}

// writeGateway writes the files of a gateway in front of servers.
func writeGateway(tb testing.TB, dir, grants string, ups ...*upstream) {
	tb.Helper()
	servers := ""
	for _, u := range ups {
		servers += u.config()
	}
	for name, text := range map[string]string{
		"wasmgate.yaml": "version: 1\nservers:\n" + servers +
			"policy: {data: {grants: grants.yaml}, timeout: 5s}\nlimits: {concurrent: 1024}\naudit: {path: audit.jsonl}\nstate: state/\n",
		"grants.yaml": grants,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// startProgram starts a program as a gateway with the configuration in a folder. It ends
// with the test.
func startProgram(tb testing.TB, program, dir string) gatewayProcess {
	tb.Helper()
	// The first interrupt drains; a process that does not end by it is killed.
	ctx, interrupt := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "serve", "--config", filepath.Join(dir, "wasmgate.yaml"), "--listen", "127.0.0.1:0", "--json")
	cmd.Env = append(os.Environ(), "WASMGATE_TEST_MEASURED="+filepath.Join(dir, "measured"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		interrupt()
		if err := cmd.Wait(); !cmd.ProcessState.Success() {
			tb.Errorf("gateway: %v\n%s", err, stderr.String())
		}
	})
	var ready struct{ URL string }
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		tb.Fatalf("gateway does not say where it listens: %v", err)
	}
	return gatewayProcess{ready.URL, dir, cmd.Process.Pid}
}

// cpu returns the time that the process has spent on a CPU (proc_pid_stat(5),
// utime and stime, in ticks of 10 ms).
func (g gatewayProcess) cpu(tb testing.TB) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // from field 3 on: the name before it is anybody's
	fields := strings.Fields(rest)
	var ticks int
	for _, field := range fields[14-3 : 16-3] {
		n, err := strconv.Atoi(field)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory returns a line of proc_pid_status(5) in MB, such as VmRSS.
func (g gatewayProcess) memory(tb testing.TB, name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	fields := strings.Fields(rest)
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		tb.Fatal(err)
	}
	return float64(kib) * 1024 / 1e6
}

// held is what a gateway that is this program holds, and has allocated so far.
type held struct {
	Goroutines, Mallocs, Bytes int64
	Heap                       float64 // bytes in use, stacks included

	files, hellos int64
}

// holds returns what the gateway holds, and how many handshakes its servers have seen.
func (g gatewayProcess) holds(tb testing.TB, ups ...*upstream) (h held) {
	tb.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(g.dir, "measured"))
	}}}
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://gateway/", nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		tb.Fatal(err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.pid))
	if err != nil {
		tb.Fatal(err)
	}
	h.files = int64(len(files))
	for _, u := range ups {
		info, err := os.Stat(u.hellos)
		if err != nil {
			tb.Fatal(err)
		}
		h.hellos += info.Size()
	}
	return h
}

// settles returns what the gateway holds when that is no more than before, or after a
// while: connections are closing.
func (g gatewayProcess) settles(tb testing.TB, before held, ups ...*upstream) (h held) {
	tb.Helper()
	for range 100 {
		if h = g.holds(tb, ups...); h.Goroutines <= before.Goroutines && h.files <= before.files {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return h
}

// kept fails the test if calls have cost a handshake, or have left more than each of so
// many clients may: it can have been given a connection that was not needed before.
func (h held) kept(tb testing.TB, before held, clients int) {
	tb.Helper()
	if h.hellos != before.hellos {
		tb.Errorf("calls have cost %d handshakes with the servers", h.hellos-before.hellos)
	}
	if room := int64(2 * clients); h.files > before.files+room || h.Goroutines > before.Goroutines+2*room {
		tb.Errorf("calls have left something: %d descriptors, then %d; %d goroutines, then %d", before.files, h.files, before.Goroutines, h.Goroutines)
	}
}
