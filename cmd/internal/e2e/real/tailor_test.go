//go:build unix

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveTailor makes this program an MCP server that asks its client, if it was
// started as one: over stdio, or over HTTP with sessions or without, in which case
// it prints its URL.
func serveTailor() {
	kind, ok := os.LookupEnv("WASMGATE_TEST_TAILOR")
	if !ok {
		return
	}
	if kind == "stdio" {
		if err := newTailor().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	server := newTailor()
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: kind == "stateless"}))
	fmt.Println(h.URL)
	select {} // until it is killed
}

// newTailor returns a server whose tool asks its client for two measures, one
// after the other: with requests to clients that have sessions, with results
// that require input to the others. It has two methods that MCP does not have.
func newTailor() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tailor", Version: "1"}, nil)
	for _, method := range []string{"tailor/price", "tailor/secret"} {
		err := mcp.AddReceivingCustomMethod(s, method, func(_ context.Context, _ *mcp.ServerSession, p *priceParams) (*price, error) {
			return &price{Of: p.Of, Cents: 4200}, nil
		})
		if err != nil {
			panic(err)
		}
	}
	s.AddTool(&mcp.Tool{Name: "measure", InputSchema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args struct{ What string }
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			measures := strings.Fields(r.Params.RequestState) // the client keeps them for a server without sessions
			if len(r.Params.InputResponses) > 0 {
				measures = append(measures, measure(r.Params.InputResponses["measure"].(*mcp.ElicitResult)))
			}
			for len(measures) < 2 {
				ask := &mcp.ElicitParams{
					Message:         fmt.Sprintf("the %s of the %s", []string{"sleeve", "collar"}[len(measures)], args.What),
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{"cm":{"type":"integer"}},"required":["cm"]}`),
				}
				if v, _ := r.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string); v >= "2026" {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"measure": ask}, RequestState: strings.Join(measures, " ")}, nil
				}
				res, err := r.Session.Elicit(ctx, ask)
				if err != nil {
					return nil, err
				}
				measures = append(measures, measure(res))
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.What + ": " + strings.Join(measures, ", ")}}}, nil
		})
	return s
}

type priceParams struct {
	mcp.ParamsBase
	Of string `json:"of"`
}

type price struct {
	mcp.ResultBase
	Of    string `json:"of"`
	Cents int    `json:"cents"`
}

func measure(r *mcp.ElicitResult) string { return fmt.Sprint(r.Content["cm"]) }
