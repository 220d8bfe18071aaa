package main_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/testing/bombs"
)

// BenchmarkFair measures what calls of a healthy sandboxed tool take, and /healthz, while
// clients have other tools sleep, spin, or do what keeps a gateway from looking at the
// clock for as long as can be: move a thousand values in three instructions. It reports
// the median and p99 of both.
//
//	go test ./cmd/wasmgate -run '^$' -bench 'Fair$' -benchtime 400x
func BenchmarkFair(b *testing.B) {
	linuxOnly(b)
	gw := startProgram(b, os.Args[0], fairPlace(b))
	quick := newHTTPClients(b, gw.url, newer, 1)[0]
	hash := func(c caller) []byte { return exchange(b, b.Context(), c, "local__hash", `{"text":"a"}`) }
	mark := func(c caller) []byte { return exchange(b, b.Context(), c, "local__mark", `{"mark":"m"}`) }
	for until := time.Now().Add(2 * time.Minute); !strings.Contains(string(hash(quick)), "ca978112") || !strings.Contains(string(mark(quick)), `"text":"\"\""`); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatalf("the tools answer %s, %s", hash(quick), mark(quick))
		}
	}
	for _, others := range []struct {
		tool, args string
		clients    int
	}{
		{"none", "", 0}, {"mark", `{"mark":"m","sleep":true}`, 16}, {"mark", `{"mark":"m","spin":true}`, 4}, {"mark", `{"mark":"m","spin":true}`, 16},
		{"rot", `{}`, 4}, {"rot", `{}`, 16},
	} {
		b.Run(fmt.Sprintf("%s%s/clients=%d", others.tool, others.args, others.clients), func(b *testing.B) {
			ctx, end := context.WithCancel(b.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			for _, c := range newHTTPClients(b, gw.url, newer, others.clients) {
				all.Go(func() {
					for ctx.Err() == nil {
						exchange(b, ctx, c, "local__"+others.tool, others.args)
					}
				})
			}
			time.Sleep(300 * time.Millisecond) // they are under way
			var calls, health []time.Duration
			for b.Loop() {
				begun := time.Now()
				if answer := hash(quick); !strings.Contains(string(answer), "ca978112") {
					b.Fatalf("%s", answer)
				}
				between := time.Now()
				healthz(b, gw.url)
				calls, health = append(calls, between.Sub(begun)), append(health, time.Since(between))
			}
			for name, all := range map[string][]time.Duration{"call": calls, "healthz": health} {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
			}
		})
	}
}

// fairPlace is a folder with a configuration and its modules.
func fairPlace(b *testing.B) string {
	dir := b.TempDir()
	var values []byte
	for i := range 1000 {
		values = binary.AppendUvarint(append(values, 0x20), uint64(i))
	}
	rot := bombs.Shape{Types: [][2]int{{1000, 1000}}, Locals: 1000, Body: slices.Concat(values, []byte{0x03, 2, 0x20, 0, 0x0c, 0, 0x0b}, slices.Repeat([]byte{0x1a}, 1000))}
	tool := "tools: [{name: %s, inputSchema: {type: object}}]\n"
	for name, text := range map[string]string{
		"wasmgate.yaml": "version: 1\ntools:\n  rot: {module: rot.wasm}\n  marks: {module: marks.wasm}\n" +
			"policy: {data: {grants: grants.yaml}, timeout: 5s}\nlimits: {concurrent: 256}\naudit: {path: audit.jsonl}\nstate: state/\n",
		"grants.yaml": "- {to: [local], tools: [\"local__*\"]}\n",
		"rot.wasm":    string(rot.WASM()), "rot.yaml": fmt.Sprintf(tool, "rot"), "marks.yaml": fmt.Sprintf(tool, "mark"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	c := exec.CommandContext(b.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", filepath.Join(dir, "marks.wasm"), ".")
	c.Dir = "../../sandbox/testdata/marks"
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// exchange makes a call; nil if it had no answer before ctx ended.
func exchange(b *testing.B, ctx context.Context, c caller, tool, args string) []byte {
	answer, err := c.exchange(ctx, tool, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`, metaNewer, tool, args))
	if err != nil && ctx.Err() == nil {
		b.Errorf("%s: %v", tool, err)
	}
	return answer
}

func healthz(b *testing.B, url string) {
	resp, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/healthz")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
}
