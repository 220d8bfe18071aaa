//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve is a server on standard input and output, which writes each call that it sees to a file
// that all processes of its name append to: the witness.
func serve(name, folder string) error {
	f, err := os.OpenFile(witness(folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	add := func(tool, description string, do func(ctx context.Context, tag string) (string, error)) {
		s.AddTool(&mcp.Tool{Name: tool, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"tag":{"type":"string"},"n":{"type":"integer"}},"required":["tag"]}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if _, err := fmt.Fprintf(f, "%s\n", r.Params.Arguments); err != nil { // one write a line, before anything is done
					return nil, err
				}
				var args struct{ Tag string }
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				text, err := do(ctx, args.Tag)
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			})
	}
	add("echo", "says its tag", func(_ context.Context, tag string) (string, error) { return tag, nil })
	add("large", "says its tag and much more", func(_ context.Context, tag string) (string, error) { return tag + strings.Repeat(" word", 40_000), nil })
	add("slow", "says its tag later", func(ctx context.Context, tag string) (string, error) {
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
		}
		return tag, nil
	})
	add("fail", "fails", func(_ context.Context, tag string) (string, error) { return "", fmt.Errorf("%s failed", tag) })
	add("hang", "does not answer", func(ctx context.Context, tag string) (string, error) {
		<-ctx.Done()
		return tag, nil
	})
	add("die", "ends the server", func(context.Context, string) (string, error) {
		os.Exit(7)
		return "", nil
	})
	add("secret", "nobody is granted it", func(_ context.Context, tag string) (string, error) { return tag, nil })
	go func() { // a tool that is described otherwise while a file is there
		for now, was := false, false; ; was = now {
			time.Sleep(200 * time.Millisecond)
			_, err := os.Stat(changed(folder))
			if now = err == nil; now != was {
				what := "moves"
				if now {
					what = "moves, and more than that"
				}
				add("moved", what, func(_ context.Context, tag string) (string, error) { return tag, nil })
			}
		}
	}()
	add("moved", "moves", func(_ context.Context, tag string) (string, error) { return tag, nil })
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

func witness(folder, name string) string { return folder + "/saw-" + name }

func changed(folder string) string { return folder + "/changed" }
