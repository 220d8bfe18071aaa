package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstCall measures the first call of an embedded tool at a gateway that has just
// begun to listen: at its first start, which compiles the tools, and at further ones.
func BenchmarkFirstCall(b *testing.B) {
	linuxOnly(b)
	dir := b.TempDir()
	for name, text := range map[string]string{
		"wasmgate.yaml": "version: 1\npolicy: {data: {grants: grants.yaml}}\naudit: {path: audit.jsonl}\nstate: state/\ntools: {embedded: {module: embedded}}\n",
		"grants.yaml":   "- {to: [local], tools: [\"local__*\"]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for start := range 11 {
		b.Run(fmt.Sprintf("start=%d", start), func(b *testing.B) {
			_ = os.Remove(filepath.Join(dir, "measured")) // the socket of the one before
			gw := startProgram(b, os.Args[0], dir)
			c := newHTTPClients(b, gw.url, newer, 1)[0]
			for _, call := range []string{"first", "second"} {
				begun := time.Now()
				if answer := exchange(b, b.Context(), c, "local__hash", `{"text":"a"}`); !strings.Contains(string(answer), "ca978112") {
					b.Fatalf("%s", answer)
				}
				b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, call+"-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
