package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkGateway measures the whole: a load client, the gateway as a process
// of its own and an echo upstream over HTTP, with policy, both validations,
// sanitizing and audit on. It reports the gateway's CPU for each call, and the
// latency beside that of a direct connection in the same run. The README states
// its budget: 250 us a call with 16 clients.
//
//	go test ./cmd/wasmgate -run '^$' -bench Gateway -benchtime 3000x
func BenchmarkGateway(b *testing.B) {
	wasmgate := build(b)
	up := httptest.NewServer(echo{tools: 1})
	defer up.Close()
	gw := startGateway(b, wasmgate, b.TempDir(), up.URL)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("revision=%s/clients=%d", revision, clients), func(b *testing.B) {
				direct := newLoad(b, up.URL, "echo_0", revision)
				through := newLoad(b, gw.url, "up__echo_0", revision)
				warm := 20 * clients
				direct.run(b, clients, warm)
				through.run(b, clients, warm)

				alone := direct.run(b, clients, b.N)
				cpu := gw.cpu(b)
				b.ResetTimer()
				took := through.run(b, clients, b.N)
				b.StopTimer()
				b.ReportMetric(float64((gw.cpu(b)-cpu).Microseconds())/float64(b.N), "gw-cpu-us/call")
				b.ReportMetric(quantile(took, 0.50), "p50-us")
				b.ReportMetric(quantile(took, 0.99), "p99-us")
				b.ReportMetric(quantile(alone, 0.50), "direct-p50-us")
				b.ReportMetric(quantile(alone, 0.99), "direct-p99-us")
			})
		}
	}
}

// BenchmarkGatewayMemory measures what a gateway occupies after 10,000 calls
// from 16 clients to the 100 tools of an upstream, whatever b.N is. The README
// states its budget: 100 MB.
//
//	go test ./cmd/wasmgate -run '^$' -bench GatewayMemory -benchtime 1x
func BenchmarkGatewayMemory(b *testing.B) {
	const tools, calls, clients = 100, 10_000, 16
	wasmgate := build(b)
	up := httptest.NewServer(echo{tools: tools})
	defer up.Close()
	dir := b.TempDir()
	b.Run("first", func(b *testing.B) { // what only a first start does is not measured
		startGateway(b, wasmgate, dir, up.URL)
		b.SkipNow()
	})
	b.Run(fmt.Sprintf("tools=%d/calls=%d", tools, calls), func(b *testing.B) {
		gw := startGateway(b, wasmgate, dir, up.URL)
		fresh := gw.memory(b, "VmRSS")
		through := newLoad(b, gw.url, "up__echo_0", "2025-11-25")
		b.ResetTimer()
		for i := range tools {
			through.use(fmt.Sprintf("up__echo_%d", i))
			through.run(b, clients, calls/tools)
		}
		b.StopTimer()
		b.ReportMetric(fresh, "fresh-rss-MB")
		b.ReportMetric(gw.memory(b, "VmRSS"), "rss-MB")
		b.ReportMetric(gw.memory(b, "VmHWM"), "peak-rss-MB")
	})
}

// build builds the program, and skips where the system does not tell what a
// process uses.
func build(b *testing.B) string {
	if runtime.GOOS != "linux" {
		b.Skip("what another process uses is read from /proc, which only Linux has")
	}
	path := filepath.Join(b.TempDir(), "wasmgate")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// gatewayProcess is a gateway that runs.
type gatewayProcess struct {
	url string
	pid int
}

// startGateway starts a gateway with its files in dir, in front of one upstream,
// whose tools are all granted. It ends with the benchmark.
func startGateway(b *testing.B, wasmgate, dir, upstream string) gatewayProcess {
	for name, text := range map[string]string{
		"wasmgate.yaml": "version: 1\nservers:\n  up: {url: " + upstream + ", transport: streamable-http}\n" +
			"policy: {data: {grants: grants.yaml}, timeout: 5s}\naudit: {path: audit.jsonl}\nstate: state/\n",
		"grants.yaml": "- {to: [local], tools: [\"up__*\"]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	// The first interrupt drains; a process that does not end by it is killed.
	ctx, interrupt := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, wasmgate, "serve", "--config", filepath.Join(dir, "wasmgate.yaml"), "--listen", "127.0.0.1:0", "--json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		interrupt()
		if err := cmd.Wait(); !cmd.ProcessState.Success() {
			b.Errorf("gateway: %v\n%s", err, stderr.String())
		}
	})
	var ready struct{ URL string }
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		b.Fatalf("gateway does not say where it listens: %v", err)
	}
	return gatewayProcess{ready.URL, cmd.Process.Pid}
}

// cpu returns the time that the process has spent on a CPU (proc_pid_stat(5),
// utime and stime, in ticks of 10 ms).
func (g gatewayProcess) cpu(b *testing.B) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // from field 3 on: the name before it is anybody's
	fields := strings.Fields(rest)
	var ticks int
	for _, field := range fields[14-3 : 16-3] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory returns a line of proc_pid_status(5) in MB, such as VmRSS.
func (g gatewayProcess) memory(b *testing.B, name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	fields := strings.Fields(rest)
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) * 1024 / 1e6
}

// words is what a call carries: about half a kilobyte of prose.
var words = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 11)

// load makes calls of one tool at one MCP endpoint. It writes its requests by
// hand, and of the answers reads only what tells that they are right.
type load struct {
	url    string
	client *http.Client
	header http.Header
	meta   string // what each call of a revision without sessions carries
	params string // of a call, up to its number
	next   atomic.Int64
}

func newLoad(b *testing.B, url, tool, revision string) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	l := &load{url: url, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
	}}
	if revision >= "2026-07-28" {
		l.header["Mcp-Protocol-Version"] = []string{revision}
		l.header["Mcp-Method"] = []string{"tools/call"}
		l.meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision + `",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`
	} else {
		l.openSession(b, revision)
	}
	l.use(tool)
	return l
}

// use makes it the tool of the next run.
func (l *load) use(tool string) {
	if l.meta != "" {
		l.header["Mcp-Name"] = []string{tool}
	}
	l.params = fmt.Sprintf(`{%s"name":%q,"arguments":{"text":%q,"tags":["a","b"],"n":`, l.meta, tool, words)
}

// openSession shakes hands as clients of the revisions with sessions do.
func (l *load) openSession(b *testing.B, revision string) {
	hello := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"load","version":"1"}}`, revision)
	header, answer, err := l.post(b.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+hello+`}`)
	if err != nil || !bytes.Contains(answer, []byte(`"protocolVersion":"`+revision+`"`)) {
		b.Fatalf("initialize: %s, %v", answer, err)
	}
	l.header["Mcp-Protocol-Version"] = []string{revision}
	if id := header.Get("Mcp-Session-Id"); id != "" {
		l.header["Mcp-Session-Id"] = []string{id}
	}
	if _, _, err := l.post(b.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		b.Fatal(err)
	}
}

func (l *load) post(ctx context.Context, message string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(message))
	if err != nil {
		return nil, nil, err
	}
	r.Header = l.header
	resp, err := l.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("HTTP %s", resp.Status)
	}
	return resp.Header, answer, err
}

// run makes calls from so many clients at once, and returns how long each took,
// sorted.
func (l *load) run(b *testing.B, clients, calls int) []time.Duration {
	took := make([]time.Duration, calls)
	var at atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := at.Add(1); i <= int64(calls); i = at.Add(1) {
				start := time.Now()
				if err := l.call(b.Context()); err != nil {
					b.Errorf("call %d: %v", i, err)
					return
				}
				took[i-1] = time.Since(start)
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	slices.Sort(took)
	return took
}

func (l *load) call(ctx context.Context) error {
	n := l.next.Add(1)
	_, answer, err := l.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s%d}}}`, n, l.params, n))
	if err != nil {
		return fmt.Errorf("%.200s: %w", answer, err)
	}
	if want := fmt.Appendf(nil, `"structuredContent":{"text":%q,"n":%d}`, words, n); !bytes.Contains(answer, want) {
		return fmt.Errorf("the answer has no structured content of call %d: %.300s", n, answer)
	}
	return nil
}

// quantile returns a quantile of sorted durations, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return float64(sorted[int(q*float64(len(sorted)-1))].Nanoseconds()) / 1e3
}

// echo is an MCP server over streamable HTTP whose tools answer with their
// argument, as structured content and as its text.
type echo struct{ tools int }

const echoTool = `{"name":"echo_%d","title":"Echo","description":"Answers with what it is given.",
"inputSchema":{"type":"object","required":["text","n"],"additionalProperties":false,"properties":{
"text":{"type":"string","minLength":1,"maxLength":10000},"n":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"},"maxItems":10}}},
"outputSchema":{"type":"object","required":["text","n"],"properties":{"text":{"type":"string"},"n":{"type":"integer","minimum":0}}}}`

func (e echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Arguments       struct {
				Text string
				N    int64
			}
		}
	}
	if err := json.NewDecoder(bufio.NewReader(r.Body)).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var result string
	switch m.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`, m.Params.ProtocolVersion)
	case "tools/list":
		var tools []string
		for i := range e.tools {
			tools = append(tools, fmt.Sprintf(echoTool, i))
		}
		result = `{"tools":[` + strings.Join(tools, ",") + `]}`
	case "tools/call":
		content := fmt.Sprintf(`{"text":%q,"n":%d}`, m.Params.Arguments.Text, m.Params.Arguments.N)
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":%s}`, content, content)
	default: // notifications
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
