// Command mcpserver is an MCP server as its author would write it, made to be
// built for WASI. Beside what is useful it has tools that misbehave.
package main

import (
	"context"
	"log"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Text string `json:"text"`
}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "guest", Version: "1"}, nil)
	calls := 0
	add := func(name string, f func(string) string) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Does " + name}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			calls++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: f(in.Text)}}}, nil, nil
		})
	}
	add("upper", strings.ToUpper)
	add("count", func(string) string { return strings.Repeat("x", calls) })
	add("nap", func(string) string { time.Sleep(50 * time.Millisecond); return "rested" })
	add("spin", func(string) string {
		for {
			calls++
		}
	})
	log.Print("ready")
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
