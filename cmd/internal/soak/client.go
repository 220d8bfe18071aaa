//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A told is what a client was told of a call.
type told struct {
	tag, args, tool string
	server          string
	code            string // of the refusal; "ok", "tool_error", or "broken" if there was no answer
	invoked         bool
	text            string
	took            time.Duration
}

// A load makes calls of all kinds until its context ends.
type load struct {
	url   string
	calls atomic.Int64
	found chan told
}

// kinds are what is called, with their weights.
var kinds = []struct {
	tool   string
	weight int
	wait   time.Duration // of the client; 0: it waits for the answer
}{
	{"echo", 60, 0}, {"large", 6, 0}, {"slow", 6, 0}, {"slow", 4, 300 * time.Millisecond}, {"fail", 5, 0}, {"hang", 1, 0}, {"die", 1, 0}, {"secret", 5, 0}, {"moved", 8, 0}, {"absent", 3, 0},
}

func pick(r *rand.Rand) (tool string, wait time.Duration) {
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	n := r.IntN(all)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k.tool, k.wait
		}
	}
	panic("no kind")
}

// run is one client, of one of three sorts: with a session, with a session and something that it
// can be asked, and without. Some end their sessions, others just go away.
func (l *load) run(ctx context.Context, sort int, servers []string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(sort)))
	for n := 0; ctx.Err() == nil; n++ {
		call, end, err := l.connect(ctx, sort)
		if err != nil {
			sleep(ctx, 300*time.Millisecond)
			continue
		}
		for range 5 + r.IntN(30) {
			if ctx.Err() != nil {
				break
			}
			tool, wait := pick(r)
			server := servers[r.IntN(len(servers))]
			tag := fmt.Sprintf("t-%d-%d-%d-%d", seed, sort, l.calls.Add(1), r.Uint32())
			args := fmt.Sprintf(`{"n":%d,"tag":%q}`, r.IntN(1000), tag)
			if r.IntN(25) == 0 {
				args = fmt.Sprintf(`{"n":"no number","tag":%q}`, tag)
			}
			timed, cancel := context.WithTimeout(ctx, 40*time.Second)
			if wait > 0 {
				cancel()
				timed, cancel = context.WithTimeout(ctx, wait)
			}
			began := time.Now()
			t := call(timed, server+"__"+tool, args)
			cancel()
			t.tag, t.args, t.tool, t.server, t.took = tag, args, tool, server, time.Since(began)
			l.found <- t
			if t.code == "broken" && wait == 0 {
				sleep(ctx, 200*time.Millisecond)
				break
			}
			sleep(ctx, time.Duration(r.IntN(120))*time.Millisecond)
		}
		if r.IntN(10) < 6 {
			end()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

type caller func(ctx context.Context, tool, args string) told

func (l *load) connect(ctx context.Context, sort int) (call caller, end func(), err error) {
	if sort == 2 {
		return l.stateless, func() {}, nil
	}
	o := &mcp.ClientOptions{}
	if sort == 1 {
		o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "soak", Version: "1"}, o)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: l.url, MaxRetries: -1, DisableStandaloneSSE: sort == 0}, nil)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, tool, args string) told {
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		if err != nil {
			if strings.Contains(err.Error(), "unknown tool") {
				return told{code: "refused_lookup"}
			}
			return told{code: "broken"}
		}
		var b bytes.Buffer
		for _, c := range res.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				b.WriteString(text.Text)
			}
		}
		refusal, _ := res.Meta["io.github.wasmgate/refusal"].(map[string]any)
		return outcome(res.IsError, b.String(), refusal)
	}, func() { s.Close() }, nil
}

func outcome(failed bool, text string, refusal map[string]any) told {
	t := told{code: "ok", text: text}
	if failed {
		t.code = "tool_error"
	}
	if code, ok := refusal["code"].(string); ok {
		t.code = code
		t.invoked, _ = refusal["invoked"].(bool)
	}
	return t
}

// stateless makes a call as a client of revision 2026-07-28 does.
func (l *load) stateless(ctx context.Context, tool, args string) told {
	const version = "2026-07-28"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args, version)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return told{code: "broken"}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return told{code: "broken"}
	}
	for line := range bytes.Lines(b) { // of a stream of events the last data is the answer
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			b = data
		}
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
			Meta    map[string]any `json:"_meta"`
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return told{code: "broken"}
	}
	if answer.Error != nil {
		if strings.Contains(answer.Error.Message, "unknown tool") {
			return told{code: "refused_lookup"}
		}
		return told{code: "broken"}
	}
	text := ""
	for _, c := range answer.Result.Content {
		text += c.Text
	}
	refusal, _ := answer.Result.Meta["io.github.wasmgate/refusal"].(map[string]any)
	return outcome(answer.Result.IsError, text, refusal)
}
