package main_test

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// A growth is how the gateway is measured at a size.
type growth struct {
	name  string
	sizes []int
	// at measures it at one size: the figures of a row for each, by the name of the row.
	at func(b *testing.B, n int) []figure
}

type figure struct {
	name  string
	value float64
}

var growths = []growth{
	{"tools", []int{2500, 5000, 10_000}, growTools},
	{"grants", []int{12_500, 25_000, 50_000}, growGrants},
	{"sessions", []int{512, 1024, 2048}, growSessions},
	{"streams", []int{128, 256, 512}, growStreams},
	{"clients", []int{16, 128, 512}, growClients},
}

// BenchmarkGrowth measures what a gateway takes as there is more of something, and prints a
// table. Its last column is the exponent: 0 stays, 1 is linear, 2 a square. CPU and memory
// are the gateway's own, whatever else runs.
//
//	go test ./cmd/wasmgate -run '^$' -bench 'Growth$' -benchtime 1x
func BenchmarkGrowth(b *testing.B) {
	linuxOnly(b)
	rows := [][]string{{"of", "at", "what", "figures", "exponent"}}
	for _, g := range growths {
		b.Run(g.name, func(b *testing.B) {
			var all [][]figure
			for _, n := range g.sizes {
				all = append(all, g.at(b, n))
			}
			for i, first := range all[0] {
				var sizes, figures []string
				for j := range all {
					sizes, figures = append(sizes, fmt.Sprint(g.sizes[j])), append(figures, fmt.Sprintf("%.3g", all[j][i].value))
				}
				last, exponent := len(all)-1, "-"
				if first.value > 0 && all[last][i].value > 0 {
					exponent = fmt.Sprintf("%.2f", math.Log(all[last][i].value/first.value)/math.Log(float64(g.sizes[last])/float64(g.sizes[0])))
				}
				rows = append(rows, []string{g.name, strings.Join(sizes, " / "), first.name, strings.Join(figures, " / "), exponent})
			}
		})
	}
	printTable(rows)
}

// growCalls is how many calls a figure a call is taken of.
const growCalls = 2000

// cpuCall returns the microseconds of CPU that a call of a load takes.
func (g gatewayProcess) cpuCall(b *testing.B, l *load) float64 {
	l.run(b, growCalls/4)
	before := g.runTime(b)
	l.run(b, growCalls)
	return (g.runTime(b) - before) / growCalls
}

// cpuOf returns the milliseconds of CPU that something takes the gateway.
func (g gatewayProcess) cpuOf(b *testing.B, do func()) float64 {
	before := g.quiet(b)
	do()
	return g.quiet(b) - before
}

// quiet waits until the gateway has nothing to do, and returns the milliseconds of CPU that it
// has taken until then.
func (g gatewayProcess) quiet(b *testing.B) float64 {
	for before := g.runTime(b); ; {
		time.Sleep(300 * time.Millisecond)
		now := g.runTime(b)
		if now-before < 5000 || b.Context().Err() != nil {
			return now / 1e3
		}
		before = now
	}
}

// listTools lists all tools, and returns how many there are.
func listTools(b *testing.B, c caller) (n int) {
	cursor := ""
	for more := true; more; {
		answer, err := c.exchange(b.Context(), "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+cursor+`}}`)
		if err != nil {
			b.Fatal(err)
		}
		text := string(answer)
		n += strings.Count(text, `"inputSchema"`)
		_, next, found := strings.Cut(text, `"nextCursor":"`)
		next, _, _ = strings.Cut(next, `"`)
		cursor, more = fmt.Sprintf(`"cursor":%q`, next), found
	}
	return n
}

func growTools(b *testing.B, n int) []figure {
	up := startUpstream(b, "http", older, n)
	gw := startGateway(b, os.Args[0], b.TempDir(), up)
	clients := newHTTPClients(b, gw.url, older, 16)
	l := newLoad(b, older, fmt.Sprintf("%s__echo_%d", up.id, n-1), clients...)
	for began := time.Now(); listTools(b, clients[0]) < n; {
		if time.Since(began) > 5*time.Minute {
			b.Fatal("the server is not ready")
		}
	}
	start := gw.quiet(b)
	return []figure{
		{"start and first lists, CPU ms", start},
		{"another list, CPU ms", gw.cpuOf(b, func() {
			for range 5 {
				listTools(b, clients[0])
			}
		}) / 5},
		{"a call, CPU us", gw.cpuCall(b, l)},
		{"heap, MB", gw.holds(b).Heap / 1e6},
	}
}

func growGrants(b *testing.B, n int) []figure {
	up := startUpstream(b, "http", older, 100)
	var grants strings.Builder
	fmt.Fprintf(&grants, "- {to: [local], tools: [%q]}\n", up.id+"__echo_1*")
	for i := range n {
		fmt.Fprintf(&grants, "- {to: [\"role:r%d\"], tools: [\"server%d__tool_%d\"]}\n", i%500, i%50, i)
	}
	dir := b.TempDir()
	writeGateway(b, dir, grants.String(), up)
	gw := startProgram(b, os.Args[0], dir)
	start := gw.quiet(b)
	clients := newHTTPClients(b, gw.url, older, 16)
	l := newLoad(b, older, up.id+"__echo_1", clients...)
	list := gw.cpuOf(b, func() { listTools(b, clients[0]) })
	carriedOut := gw.cpuCall(b, l)
	l.tool, l.refused = up.id+"__echo_2", true
	return []figure{
		{"start, CPU ms", start},
		{"first list, CPU ms", list},
		{"a call, CPU us", carriedOut},
		{"a refused call, CPU us", gw.cpuCall(b, l)},
		{"heap, MB", gw.holds(b).Heap / 1e6},
	}
}

func growSessions(b *testing.B, n int) []figure {
	up := startUpstream(b, "http", older, 1)
	gw := startGateway(b, os.Args[0], b.TempDir(), up)
	clients := newHTTPClients(b, gw.url, older, n)
	newLoad(b, older, up.id+"__echo_0", clients[0]).run(b, growCalls)
	before := gw.holds(b)
	cpu := gw.cpuOf(b, func() { newLoad(b, older, "", clients[1:]...) })
	after := gw.holds(b)
	l := &load{revision: older, tool: up.id + "__echo_0", text: words, clients: clients[max(0, n-16):]}
	return []figure{
		{"beginning a session, CPU us", cpu * 1e3 / float64(n-1)},
		{"a session, KB", (after.Heap - before.Heap) / 1e3 / float64(n-1)},
		{"a session, goroutines", float64(after.Goroutines-before.Goroutines) / float64(n-1)},
		{"a call, CPU us", gw.cpuCall(b, l)},
	}
}

// growStreams opens streams of notifications, and reads nothing from them: they cost a client
// nothing but a connection.
func growStreams(b *testing.B, n int) []figure {
	up := startUpstream(b, "http", older, 1)
	gw := startGateway(b, os.Args[0], b.TempDir(), up)
	clients := newHTTPClients(b, gw.url, older, n)
	l := newLoad(b, older, up.id+"__echo_0", clients...)
	l.run(b, growCalls)
	before := gw.holds(b)
	for _, c := range clients {
		conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(gw.url, "http://"), "/mcp"))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nMcp-Protocol-Version: %s\r\nMcp-Session-Id: %s\r\n\r\n",
			older, c.(*httpClient).session); err != nil {
			b.Fatal(err)
		}
		head := make([]byte, 12)
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 200" {
			b.Fatalf("%s, %v", head, err)
		}
	}
	after := gw.holds(b)
	return []figure{
		{"a stream, KB", (after.Heap - before.Heap) / 1e3 / float64(n)},
		{"a stream, goroutines", float64(after.Goroutines-before.Goroutines) / float64(n)},
		{"a call, CPU us", gw.cpuCall(b, l)},
	}
}

func growClients(b *testing.B, n int) []figure {
	up := startUpstream(b, "http", older, 1)
	gw := startGateway(b, os.Args[0], b.TempDir(), up)
	l := newLoad(b, older, up.id+"__echo_0", newHTTPClients(b, gw.url, older, n)...)
	cpu := gw.cpuCall(b, l)
	began := time.Now()
	l.run(b, growCalls)
	return []figure{{"a call, CPU us", cpu}, {"calls a second", growCalls / time.Since(began).Seconds()}}
}
