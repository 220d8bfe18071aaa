package host_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/internal/fleet"
	"github.com/wasmgate/wasmgate/bridge/internal/host"
	"github.com/wasmgate/wasmgate/bridge/internal/host/dispatch"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
)

// A client with a token gets the progress of its call: by its own token, in the server's order,
// before the result, and of no other client's call.
func TestProgressReachesWhoAsked(t *testing.T) {
	const steps = 20
	up := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, nil)
	mcp.AddTool(up, &mcp.Tool{Name: "walk"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct{ Who string }) (*mcp.CallToolResult, any, error) {
		for i := range steps {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: steps, Message: "<" + in.Who + ">",
			}); err != nil {
				return nil, nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "there"}}}, nil, nil
	})
	fleet, err := fleet.New(fleet.Config{Servers: []options.Endpoint{{
		Server: "up", Tools: rig.Options(), Dial: func() (mcp.Transport, error) {
			ours, theirs := mcp.NewInMemoryTransports()
			_, err := up.Connect(t.Context(), theirs, nil)
			return ours, err
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	fleet.Start(t.Context())
	g, err := gate.New(gate.Parts{
		Upstream: fleet, Authorizer: rig.AuthorizerFunc(rig.Allow), Sessions: rig.Sessions{}, Recorder: new(rig.Records),
		Sanitizer: rig.SanitizerFunc(func(s string) (string, []gate.Finding) {
			return strings.NewReplacer("<", "(", ">", ")").Replace(s), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	host, err := host.New(host.Config{Config: dispatch.Config{Do: g.Do, Tools: g.Tools}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(host)
	defer web.Close()

	var wg sync.WaitGroup
	for _, who := range []string{"a", "b"} {
		for _, era := range []string{"2025-11-25", "2026-07-28"} {
			wg.Go(func() {
				var mu sync.Mutex
				var got []string
				client := mcp.NewClient(&mcp.Implementation{Name: who, Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, " ", r.Params.Message))
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				params := &mcp.CallToolParams{Name: "up__walk", Arguments: map[string]string{"Who": who}}
				params.SetProgressToken("same") // of both clients
				res, err := s.CallTool(ctx, params)
				if err != nil || res.IsError {
					t.Errorf("%s, %s: %v %+v", who, era, err, res)
					return
				}
				var want []string
				for i := range steps {
					want = append(want, fmt.Sprintf("same %d (%s)", i+1, who))
				}
				// The SDK's client runs its handlers concurrently with the answer.
				for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
					mu.Lock()
					n := len(got)
					mu.Unlock()
					if n >= steps {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s: got %q", who, era, got)
				}
			})
		}
	}
	wg.Wait()
}
