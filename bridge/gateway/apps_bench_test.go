package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// BenchmarkLargePage reads a page of 4.3 MB with one client: from its server, and through a gateway,
// in turns. "store" is a read of what the gateway holds, "first" the first read of a gateway that has
// just started, without what starting takes with a page of a few bytes. Both are medians, as
// multiples of the read from the server.
func BenchmarkLargePage(b *testing.B) {
	url := func(html string) string {
		s := newAppServer("ui://pdf/app.html", html).serve()
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, nil))
		b.Cleanup(web.Close)
		return web.URL
	}
	large, small := url(strings.Repeat("<script>let \u202e\x01 = \"\\n\"</script>\n", 4_300_000/37)), url("<p>small</p>")
	client := func(endpoint string) *mcp.ClientSession {
		c := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
			Extensions: map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}}},
		}})
		s, err := c.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	read := func(s *mcp.ClientSession, uri string) time.Duration {
		began := time.Now()
		if _, err := s.ReadResource(b.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	through := func(server string) (*gateway.Gateway, time.Duration) {
		g, err := gateway.New(b.Context(), gateway.Config{
			Recorder: nowhere{}, Policy: grantingServers("pdf"),
			Servers: []options.Endpoint{{Server: "pdf", URL: server, ConnectTimeout: time.Hour, Tools: options.Tools{Apps: options.Apps{On: true}}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := g.Connect(b.Context()); err != nil {
			b.Fatal(err)
		}
		return g, time.Since(began)
	}
	const offered = "ui://pdf/pdf/app.html"
	direct := client(large)
	g, _ := through(large)
	defer g.Close(b.Context())
	web := httptest.NewServer(g)
	defer web.Close()
	stored := client(web.URL + "/mcp")
	var plain, store, first []time.Duration
	for b.Loop() {
		plain = append(plain, read(direct, "ui://pdf/app.html"))
		store = append(store, read(stored, offered))
		fresh, took := through(large)
		front := httptest.NewServer(fresh)
		took += read(client(front.URL+"/mcp"), offered)
		front.CloseClientConnections()
		_ = fresh.Close(b.Context())
		other, base := through(small)
		_ = other.Close(b.Context())
		first = append(first, took-base)
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(plain)/1e6, "direct-ms")
	b.ReportMetric(median(store)/median(plain), "store/direct")
	b.ReportMetric(median(first)/median(plain), "first/direct")
}
