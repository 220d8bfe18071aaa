package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
)

// What a client says to prove who it is goes to no server: not a byte of it is
// in anything that a server over HTTP is sent.
func TestCredentialsOfClientsStayHere(t *testing.T) {
	var mu sync.Mutex
	var wire bytes.Buffer
	up := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
	mcp.AddTool(up, &mcp.Tool{Name: "say"}, func(context.Context, *mcp.CallToolRequest, struct{ Text string }) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "said"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return up }, nil)
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		wire.Write(dump)
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(stub.Close) // after the gateway, which keeps a stream open

	g := start(t, gateway.Config{
		Recorder: new(records), Policy: granting("up__say"),
		Servers: []options.Endpoint{{Server: "up", URL: stub.URL, Headers: http.Header{"Authorization": {"Bearer the-gateways-own"}}}},
	})
	g.Start(t.Context())
	web := httptest.NewServer(g)
	defer web.Close()

	secret := rand.Text()
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
		s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: web.URL + "/mcp?access_token=" + secret, HTTPClient: &http.Client{Transport: withHeaders{secret}},
		}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		if err != nil {
			t.Fatal(err)
		}
		params := &mcp.CallToolParams{Name: "up__say", Arguments: map[string]string{"Text": "hello"}, Meta: mcp.Meta{"authorization": secret}}
		params.SetProgressToken(secret)
		res, err := s.CallTool(t.Context(), params)
		if err != nil || res.IsError {
			t.Fatalf("%s: %v %+v", era, err, res)
		}
		s.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	sent := wire.String()
	if !strings.Contains(sent, "the-gateways-own") || !strings.Contains(sent, "hello") {
		t.Errorf("the stub was not reached as it should be:\n%s", sent)
	}
	if strings.Contains(sent, secret) {
		t.Errorf("the server was sent what the client proves itself by:\n%s", sent)
	}
}

// withHeaders sends every header in which clients prove who they are.
type withHeaders struct{ secret string }

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+h.secret)
	r.Header.Set("Proxy-Authorization", "Basic "+h.secret)
	r.Header.Set("Cookie", "session="+h.secret)
	r.Header.Set("X-Api-Key", h.secret)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && res.Body == nil {
		res.Body = io.NopCloser(strings.NewReader(""))
	}
	return res, err
}
