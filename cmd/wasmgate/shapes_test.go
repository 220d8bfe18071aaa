package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A shape is how users make calls: what the client is and declares, what the server
// speaks, how many call at once, and how much comes back.
type shape struct {
	name         string
	server       string // http, sse or stdio
	revision     string // of client and server
	clients      int
	capabilities string // of the client; "sdk": the client of the Go SDK as it comes
	progress     bool   // calls have a token for progress
	bytes        int    // of text, and again as structured content
}

const (
	declaresNothing = `{}`
	canBeAsked      = `{"roots":{"listChanged":true},"elicitation":{},"sampling":{}}`
	sdkClient       = "sdk"
)

var shapes = []shape{
	{"HTTP, client declares nothing", "http", older, 16, declaresNothing, false, 64},
	{"HTTP, client of the Go SDK", "http", older, 16, sdkClient, false, 64},
	{"HTTP, client can be asked", "http", older, 16, canBeAsked, false, 64},
	{"HTTP, progress token", "http", older, 16, declaresNothing, true, 64},
	{"HTTP, " + newer, "http", newer, 16, declaresNothing, false, 64},
	{"HTTP, one client", "http", older, 1, declaresNothing, false, 64},
	{"HTTP, 128 clients", "http", older, 128, declaresNothing, false, 64},
	{"server answers with event streams", "sse", older, 16, declaresNothing, false, 64},
	{"stdio server", "stdio", older, 16, declaresNothing, false, 64},
	{"stdio server, one client", "stdio", older, 1, declaresNothing, false, 64},
	{"HTTP, 4 KB", "http", older, 16, declaresNothing, false, 4 << 10},
	{"HTTP, 64 KB", "http", older, 16, declaresNothing, false, 64 << 10},
	{"HTTP, 1 MB", "http", older, 4, declaresNothing, false, 1 << 20},
}

// rounds is how often each shape goes around its ways. Of nine paired ratios the second
// and the eighth bound the median with 96 % confidence (binomial).
const rounds = 9

// againstEnv names a program that the gateway is compared with: the test binary of
// another commit, or its wasmgate.
const againstEnv = "WASMGATE_AGAINST"

// BenchmarkShapes measures what calls of each shape cost the gateway, compared with a raw reverse
// proxy (httputil.ReverseProxy), a direct connection and, with WASMGATE_AGAINST, another gateway,
// in turn in the same run. All checks are on. It prints a table: CPU as a ratio to the proxy's,
// round by round. In front of a stdio server the proxy has one over HTTP. The benchmark's N is the
// calls of a way in a round, fewer for large results.
//
//	go test ./cmd/wasmgate -run '^$' -bench 'Shapes$' -benchtime 300x
func BenchmarkShapes(b *testing.B) {
	linuxOnly(b)
	rows := [][]string{{"shape", "clients", "proxy CPU, us", "CPU, us", "ratio", "of 96 %", "p50 direct / proxy / gateway, ms", "p99 proxy / gateway, ms", "allocations", "KB"}}
	against := os.Getenv(againstEnv)
	if against != "" {
		rows[0] = append(rows[0], "CPU to the other's", "of 96 %")
	}
	for _, s := range shapes {
		b.Run(strings.NewReplacer(", ", "_", " ", "_").Replace(s.name), func(b *testing.B) {
			if row := s.measure(b, against); b.N > 1 { // 1: the run that only finds out how long a call takes
				rows = append(rows, row)
			}
		})
	}
	printTable(rows)
}

// A way is one that calls take: directly, by a proxy, by a gateway.
type way struct {
	process gatewayProcess // without a pid: nothing is in between
	load    *load
	run     run
	cpu     []float64 // us a call, of each round
}

// measure goes around the ways of a shape, and returns its row.
func (s shape) measure(b *testing.B, against string) []string {
	up := startUpstream(b, s.server, s.revision, 1)
	raw := up
	if up.url == "" {
		raw = startUpstream(b, "http", s.revision, 1)
	}
	ways := []*way{{}, {process: startProxy(b, raw.url)}, {process: startGateway(b, os.Args[0], b.TempDir(), up)}}
	if against != "" {
		ways = append(ways, &way{process: startGateway(b, against, b.TempDir(), up)})
	}
	for i, w := range ways {
		url, tool := w.process.url, up.id+"__echo_0"
		if i < 2 {
			tool = "echo_0"
		}
		if w.process.pid == 0 {
			w.load = &load{clients: up.direct(b, s.clients)}
			if up.url != "" {
				w.load.clients = s.connect(b, up.url)
			}
		} else {
			w.load = &load{clients: s.connect(b, url)}
		}
		if s.capabilities != sdkClient {
			for _, c := range w.load.clients {
				shakeHands(b, c, s.revision, s.capabilities)
			}
		}
		w.load.revision, w.load.tool, w.load.progress = s.revision, tool, s.progress
		w.load.text, w.load.gives = "give:"+strconv.Itoa(s.bytes), s.bytes
		w.load.run(b, 5*s.clients)
	}
	calls := max(b.N*4096/(4096+s.bytes), 2*s.clients)
	before := ways[2].process.holds(b)
	for round := range rounds {
		for i := range ways { // each begins a round in its turn: what came before one leaves its traces
			w := ways[(i+round)%len(ways)]
			cpu := w.process.runTime(b)
			w.run.each = append(w.run.each, w.load.run(b, calls)...)
			w.cpu = append(w.cpu, (w.process.runTime(b)-cpu)/float64(calls))
		}
	}
	after := ways[2].process.holds(b)
	return s.row(ways, rounds*calls, before, after)
}

func (s shape) row(ways []*way, calls int, before, after held) []string {
	ratio := ratios(ways[2].cpu, ways[1].cpu)
	row := []string{
		s.name, strconv.Itoa(s.clients), fmt.Sprintf("%.0f", median(ways[1].cpu)), fmt.Sprintf("%.0f", median(ways[2].cpu)),
		fmt.Sprintf("%.2f", median(ratio)), interval(ratio),
		fmt.Sprintf("%.2f / %.2f / %.2f", ways[0].run.quantile(0.5)/1e3, ways[1].run.quantile(0.5)/1e3, ways[2].run.quantile(0.5)/1e3),
		fmt.Sprintf("%.2f / %.2f", ways[1].run.quantile(0.99)/1e3, ways[2].run.quantile(0.99)/1e3),
		strconv.FormatInt((after.Mallocs-before.Mallocs)/int64(calls), 10), fmt.Sprintf("%.1f", float64(after.Bytes-before.Bytes)/float64(calls)/1e3),
	}
	if len(ways) > 3 {
		other := ratios(ways[2].cpu, ways[3].cpu)
		row = append(row, fmt.Sprintf("%.3f", median(other)), interval(other))
	}
	return row
}

// ratios returns a to b, round by round.
func ratios(a, b []float64) (all []float64) {
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return all
}

func median(of []float64) float64 {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

// interval is from the second to the last but one.
func interval(of []float64) string {
	sorted := slices.Sorted(slices.Values(of))
	return fmt.Sprintf("%.2f to %.2f", sorted[1], sorted[len(sorted)-2])
}

func printTable(rows [][]string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	for i, row := range rows {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" ---\t|", len(row)))
		}
	}
	_ = w.Flush()
}

// runTime returns the microseconds that the process has spent on a CPU, of all threads
// that it has (schedstat, the first number: nanoseconds). Go ends no thread that calls use.
func (g gatewayProcess) runTime(tb testing.TB) (us float64) {
	if g.pid == 0 {
		return 0
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", g.pid))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no schedstat of process %d: %v", g.pid, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		if err != nil {
			tb.Fatal(err)
		}
		us += ns / 1e3
	}
	return us
}

// startProxy starts a raw reverse proxy in front of a URL. It ends with the test.
func startProxy(tb testing.TB, url string) gatewayProcess {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), "WASMGATE_TEST_PROXY="+url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			tb.Errorf("proxy: %v\n%s", err, stderr.String())
		}
	})
	var listens string
	if _, err := fmt.Fscanln(out, &listens); err != nil {
		tb.Fatal(err)
	}
	return gatewayProcess{url: listens, pid: cmd.Process.Pid}
}

// connect returns the shape's clients of an MCP server over HTTP. Those of the Go SDK
// have shaken hands.
func (s shape) connect(tb testing.TB, url string) (all []caller) {
	if s.capabilities != sdkClient {
		return newHTTPClients(tb, url, s.revision, s.clients)
	}
	for range s.clients {
		client := mcp.NewClient(&mcp.Implementation{Name: "load", Version: "1"}, nil)
		session, err := client.Connect(tb.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: s.revision})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { session.Close() })
		all = append(all, sdkCaller{session})
	}
	return all
}

// An sdkCaller makes calls as programs do that use the Go SDK.
type sdkCaller struct{ session *mcp.ClientSession }

func (c sdkCaller) exchange(ctx context.Context, _, message string) ([]byte, error) {
	var m struct {
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return nil, err
	}
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: m.Params.Name, Arguments: m.Params.Arguments})
	if err != nil {
		return nil, err
	}
	if len(result.Content) != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || result.StructuredContent == nil {
		return nil, fmt.Errorf("%T and %v", result.Content[0], result.StructuredContent)
	}
	return []byte(`"text":` + text.Text + `,"structuredContent":` + text.Text), nil // its decoder has lost the order of members
}
