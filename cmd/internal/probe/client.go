package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
)

// client speaks with a gateway in one revision. Use it from several goroutines
// once it is open.
type client struct {
	http     *http.Client
	url      string
	header   http.Header // of every request
	revision string
	session  string
	apps     bool // it shows pages of MCP Apps
	last     *atomic.Int64
}

// reply is what came back to a request.
type reply struct {
	status int
	before []json.RawMessage // notifications on the same stream, in their order
	result json.RawMessage   // as it was sent
	err    *rpcError
}

// failed reports whether a call was refused or failed, in any of the ways there
// are.
func (r reply) failed() bool {
	var res struct{ IsError bool }
	_ = json.Unmarshal(r.result, &res)
	return r.err != nil || r.status >= 400 || res.IsError
}

// open begins a session in the revision that has sessions.
func (c *client) open(ctx context.Context) error {
	c.last = new(atomic.Int64)
	if c.revision == WithoutSessions {
		r, err := c.ask(ctx, "server/discover", map[string]any{})
		if err == nil && r.err != nil {
			err = fmt.Errorf("server/discover: %.200q (%d)", r.err.Message, r.err.Code)
		}
		if err == nil && r.result == nil {
			err = fmt.Errorf("server/discover: status %d", r.status)
		}
		return err
	}
	r, err := c.ask(ctx, "initialize", map[string]any{"protocolVersion": c.revision, "capabilities": c.capabilities(), "clientInfo": info})
	if err != nil {
		return err
	}
	var res struct{ ProtocolVersion string }
	if r.err != nil || json.Unmarshal(r.result, &res) != nil {
		return fmt.Errorf("initialize: no result, status %d", r.status)
	}
	if res.ProtocolVersion != c.revision {
		return fmt.Errorf("initialize: the gateway answered with the protocol revision %q", res.ProtocolVersion)
	}
	_, err = c.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil)
	return err
}

// capabilities are those that the client declares.
func (c *client) capabilities() map[string]any {
	if !c.apps {
		return map[string]any{}
	}
	return map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{pageType}}}}
}

// ask sends a request, with what its revision wants in _meta.
func (c *client) ask(ctx context.Context, method string, params map[string]any) (reply, error) {
	meta, _ := params["_meta"].(map[string]any)
	if c.revision == WithoutSessions {
		if meta == nil {
			meta = make(map[string]any)
		}
		maps.Copy(meta, envelope(c.revision))
		meta["io.modelcontextprotocol/clientCapabilities"] = c.capabilities()
		params["_meta"] = meta
	}
	body := encode(map[string]any{"jsonrpc": "2.0", "id": c.last.Add(1), "method": method, "params": params})
	name, ok := params["name"].(string)
	if !ok {
		name, _ = params["uri"].(string)
	}
	return c.post(ctx, body, map[string]string{"Mcp-Method": method, "Mcp-Name": name})
}

// envelope is what the revision without sessions wants in each _meta.
func envelope(revision string) map[string]any {
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    revision,
		"io.modelcontextprotocol/clientInfo":         info,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}
}

// call calls a tool.
func (c *client) call(ctx context.Context, tool string, args map[string]any) (reply, error) {
	return c.ask(ctx, "tools/call", map[string]any{"name": tool, "arguments": args})
}

// errStatus is the error of an answer that is neither JSON nor a stream.
var errStatus = errors.New("the answer is not MCP")

// post sends a message as it is. Headers are those that the revision without
// sessions wants.
func (c *client) post(ctx context.Context, body []byte, headers map[string]string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" || c.revision == WithoutSessions {
		req.Header.Set("MCP-Protocol-Version", c.revision)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.revision == WithoutSessions {
		for k, v := range headers {
			if v != "" {
				req.Header.Set(k, v)
			}
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" && c.session == "" && c.revision == WithSessions {
		c.session = id
	}
	r := reply{status: res.StatusCode}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	in := io.LimitReader(res.Body, maxMessage)
	if kind == "text/event-stream" {
		return r, r.events(in)
	}
	b, err := io.ReadAll(in)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return r, err
	}
	if err := r.message(b); err != nil && r.status < 400 {
		return r, fmt.Errorf("%w: status %d, %.100q", errStatus, r.status, b)
	}
	return r, nil
}

// events reads a stream up to the answer.
func (r *reply) events(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() && r.result == nil && r.err == nil {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if ok && strings.TrimSpace(data) != "" {
			if err := r.message([]byte(data)); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func (r *reply) message(b []byte) error {
	var m struct {
		Method string
		Result json.RawMessage
		Error  *rpcError
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	if m.Method != "" {
		r.before = append(r.before, bytes.Clone(b))
		return nil
	}
	r.result, r.err = m.Result, m.Error
	return nil
}

// texts returns the texts of a result's contents.
func (r reply) texts() string {
	var res struct{ Content []struct{ Text string } }
	_ = json.Unmarshal(r.result, &res)
	var all []string
	for _, c := range res.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// plain returns a whole result as a text in which nothing is escaped but quotes.
func (r reply) plain() string {
	var plain any
	_ = json.Unmarshal(r.result, &plain)
	return string(encode(plain))
}

// listed returns the names of all tools, and the whole listing as a text in
// which nothing is escaped but quotes.
func (c *client) listed(ctx context.Context) (names []string, whole string, err error) {
	cursor := ""
	for range 100 { // pages, of a gateway that may never end
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		r, err := c.ask(ctx, "tools/list", params)
		if err != nil {
			return nil, "", err
		}
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if r.err != nil || json.Unmarshal(r.result, &page) != nil {
			return nil, "", fmt.Errorf("tools/list: no listing, status %d", r.status)
		}
		for _, t := range page.Tools {
			names = append(names, t.Name)
		}
		var plain any
		_ = json.Unmarshal(r.result, &plain) // it has just been read
		whole += string(encode(plain))
		if cursor = page.NextCursor; cursor == "" {
			return names, whole, nil
		}
	}
	return nil, "", errors.New("tools/list: more than 100 pages")
}
