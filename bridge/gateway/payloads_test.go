package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/testing/judges"
	"github.com/wasmgate/wasmgate/internal/testing/toolchain"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

// A server puts active texts wherever MCP lets it put a text: into blocks, halves of them,
// leaves, names of members, files, blobs, errors, definitions, schemas, prompts, listings,
// icons and its instructions. What reaches a client has nothing active for other parsers
// and a browser.
func TestPayloadsWhereverTheyStand(t *testing.T) {
	unraced.Long(t)
	looks := map[string]judges.Judge{"parsers": judges.Parsers(t)}
	if !testing.Short() && toolchain.Works(t, "chromium") {
		looks["browser"] = judges.Browser(t)
	}
	payloads := judges.Payloads(t)
	got := received(t, payloads)
	places := make(map[string]string) // of each text, one
	for place, texts := range got {
		for _, text := range texts {
			places[text] = place
		}
	}
	texts := slices.Sorted(maps.Keys(places))
	for by, judge := range looks {
		for i, found := range judge(texts) {
			if found != "" {
				t.Errorf("%s: %s: %s: %q", by, places[texts[i]], found, texts[i])
			}
		}
	}
	t.Logf("%d payloads, %d different texts", len(payloads), len(texts))
	for _, place := range []string{"blocks", "structured", "blobs", "error", "refused", "tools", "prompts", "resources", "contents", "messages"} {
		if len(got[place]) < len(payloads) {
			t.Errorf("only %d texts of %s have reached the client, of %d payloads", len(got[place]), place, len(payloads))
		}
	}
	if len(got["instructions"]) == 0 {
		t.Error("no instructions have reached the client")
	}
}

// received is what a client reads of a server of payloads, by place.
func received(t *testing.T, payloads []judges.Payload) map[string][]string {
	t.Helper()
	g := start(t, gateway.Config{
		Recorder: new(records), Servers: []options.Endpoint{{Server: "s", Dial: gateway.InProcess(hostile(t, payloads))}},
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Servers: []string{"s"}}}}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	got := &leaves{t: t, at: make(map[string][]string)}
	got.take("instructions", c.InitializeResult().Instructions)
	for tool, err := range c.Tools(t.Context(), nil) {
		got.must(err)
		got.take("tools", tool)
		refused, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{"kind": "n"}})
		if err != nil {
			got.take("refused", err.Error())
		} else {
			got.take("refused", refused)
		}
		for _, name := range []string{"results", "fails"} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{"which": name}})
			got.must(err)
			if name == "fails" {
				got.take("error", res)
				continue
			}
			got.take("structured", res.StructuredContent)
			got.blocks(res.Content)
		}
	}
	for p, err := range c.Prompts(t.Context(), nil) {
		got.must(err)
		got.take("prompts", p)
		res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.Name})
		got.must(err)
		got.take("messages", res)
	}
	for r, err := range c.Resources(t.Context(), nil) {
		got.must(err)
		got.take("resources", r)
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		got.must(err)
		got.take("contents", res)
	}
	return got.at
}

// hostile is a server of payloads: a tool, a prompt and a resource for each.
func hostile(t *testing.T, payloads []judges.Payload) *mcp.Server {
	t.Helper()
	var all []string
	for _, p := range payloads {
		all = append(all, p.Text)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "hostile", Version: "1"}, &mcp.ServerOptions{Instructions: strings.Join(all, "\n\n")})
	for i, p := range payloads {
		text := p.Text
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		icons := []mcp.Icon{{Source: "javascript:alert(1)"}, {Source: "https://evil.example/i.png?q=secret"}, {Source: "data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(text))}}
		file := func(mime string, blob bool) *mcp.ResourceContents {
			c := &mcp.ResourceContents{URI: fmt.Sprintf("mem:///r%d", i), MIMEType: mime, Text: text}
			if blob {
				c.Blob, c.Text = []byte(text), ""
			}
			return c
		}
		s.AddTool(&mcp.Tool{
			Name: fmt.Sprintf("t%d", i), Title: text, Description: text, Icons: icons, Annotations: &mcp.ToolAnnotations{Title: text},
			InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","title":%s,"properties":{"which":{"type":"string","description":%[1]s,"default":%[1]s},"kind":{"enum":["y",%[1]s]}}}`, b)),
		}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if strings.Contains(string(r.Params.Arguments), "fails") {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			}
			res := &mcp.CallToolResult{
				StructuredContent: map[string]any{"whole": text, "halves": []string{half(text, 0), half(text, 1)}, text: "a name"},
				Content: []mcp.Content{
					&mcp.TextContent{Text: text}, &mcp.TextContent{Text: half(text, 0)}, &mcp.TextContent{Text: half(text, 1)}, &mcp.TextContent{Text: fmt.Sprintf(`{"a": %s}`, b)},
					&mcp.EmbeddedResource{Resource: file("text/html", false)},
					&mcp.ResourceLink{URI: "mem:///r0", Name: text, Title: text, Description: text, Icons: icons},
				},
			}
			for _, mime := range []string{"text/html", "text/markdown", "text/plain", "application/json", "application/xhtml+xml", "image/svg+xml", "text/css"} {
				res.Content = append(res.Content, &mcp.EmbeddedResource{Resource: file(mime, true)})
			}
			return res, nil
		})
		s.AddPrompt(&mcp.Prompt{Name: fmt.Sprintf("p%d", i), Title: text, Description: text, Icons: icons, Arguments: []*mcp.PromptArgument{{Name: "a", Description: text}}},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: text, Messages: []*mcp.PromptMessage{
					{Role: "user", Content: &mcp.TextContent{Text: text}}, {Role: "assistant", Content: &mcp.EmbeddedResource{Resource: file("text/html", true)}},
				}}, nil
			})
		s.AddResource(&mcp.Resource{URI: fmt.Sprintf("mem:///r%d", i), Name: text, Title: text, Description: text, Icons: icons},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{file("text/html", false), file("text/html", true), file("text/markdown", true)}}, nil
			})
	}
	return s
}

// half is the first or the second half of a text.
func half(text string, n int) string {
	cut := len(text) / 2
	return strings.ToValidUTF8([2]string{text[:cut], text[cut:]}[n], "")
}

// leaves collects all strings of what a client reads.
type leaves struct {
	t  *testing.T
	at map[string][]string
}

func (l *leaves) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// blocks takes contents one by one, and their texts as a client shows them one after another.
func (l *leaves) blocks(contents []mcp.Content) {
	var texts []string
	for _, c := range contents {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		case *mcp.EmbeddedResource:
			if c.Resource.Blob != nil {
				l.at["blobs"] = append(l.at["blobs"], string(c.Resource.Blob))
			}
		}
		l.take("blocks", c)
	}
	l.at["blocks"] = append(l.at["blocks"], strings.Join(texts, ""), strings.Join(texts, "\n"))
}

// take takes the strings of a value, names of members among them, and looks at its icons.
func (l *leaves) take(place string, value any) {
	b, err := json.Marshal(value)
	l.must(err)
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			switch blob, err := base64.StdEncoding.DecodeString(v); {
			case name == "src":
				l.must(shownAsIcon(v))
			case name == "blob" && err == nil:
				l.at[place] = append(l.at[place], string(blob))
			default:
				l.at[place] = append(l.at[place], v)
			}
		case []any:
			for _, one := range v {
				walk(name, one)
			}
		case map[string]any:
			for name, one := range v {
				l.at[place] = append(l.at[place], name)
				walk(name, one)
			}
		}
	}
	var v any
	l.must(json.Unmarshal(b, &v))
	walk("", v)
}

// shownAsIcon says what is wrong with the address of an icon, which a client loads.
func shownAsIcon(src string) error {
	if strings.HasPrefix(src, "data:image/") && !strings.HasPrefix(src, "data:image/svg") {
		return nil
	}
	return errors.New("a client would load the icon " + src)
}
