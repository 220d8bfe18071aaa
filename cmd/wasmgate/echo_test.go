package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
)

// serveEcho makes this program an MCP server whose tools answer with their argument, if
// it was started as one: over stdio, or over HTTP (http, or sse, which answers with event
// streams), in which case it prints its URL and ends with its input. Its arguments are the
// one revision that it speaks, how many tools it has, and a file that grows by a byte with
// each handshake, or none. A text of "give:N" is answered with N bytes of prose.
func serveEcho() {
	kind, ok := os.LookupEnv("WASMGATE_TEST_ECHO")
	if !ok {
		return
	}
	tools, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	e := &echoServer{revision: os.Args[1], hellos: os.Args[3], streams: kind == "sse"}
	for i := range tools {
		e.tools = append(e.tools, fmt.Sprintf(echoTool, i))
	}
	if kind != "stdio" {
		fmt.Println(httptest.NewServer(e).URL)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	lines := bufio.NewReader(os.Stdin)
	for line, err := lines.ReadBytes('\n'); err == nil; line, err = lines.ReadBytes('\n') {
		if answer := e.answer(line); answer != "" {
			fmt.Println(answer)
		}
	}
	os.Exit(0)
}

type echoServer struct {
	revision, hellos string
	tools            []string
	streams          bool // answers are event streams
}

// prose is what a server gives that is asked for so many bytes.
const prose = "The quick brown fox jumps over the lazy dog. "

const echoTool = `{"name":"echo_%d","title":"Echo","description":"Answers with what it is given.",` +
	`"inputSchema":{"type":"object","required":["text","n"],"additionalProperties":false,"properties":{` +
	`"text":{"type":"string","minLength":1,"maxLength":10000},"n":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"},"maxItems":10}}},` +
	`"outputSchema":{"type":"object","required":["text","n"],"properties":{"text":{"type":"string"},"n":{"type":"integer","minimum":0}}}}`

// answer returns the answer to a message, "" if it has none.
func (e *echoServer) answer(message []byte) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments struct {
				Text string
				N    int64
			}
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}`
	}
	if m.ID == nil {
		return ""
	}
	hello := map[string]string{"2025-11-25": "initialize", "2026-07-28": "server/discover"}[e.revision]
	result := ""
	switch m.Method {
	case "initialize", "server/discover":
		e.greeted()
		if m.Method != hello {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"this server speaks %s"}}`, m.ID, e.revision)
		}
		result = fmt.Sprintf(`{"protocolVersion":%[1]q,"supportedVersions":[%[1]q],"resultType":"complete","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`, e.revision)
	case "tools/list":
		result = `{"resultType":"complete","tools":[` + strings.Join(e.tools, ",") + `]}`
	case "tools/call":
		content := fmt.Sprintf(`{"text":%q,"n":%d}`, given(m.Params.Arguments.Text), m.Params.Arguments.N)
		result = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}],"structuredContent":%s}`, content, content)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// given returns what a text is answered with.
func given(text string) string {
	if n, ok := strings.CutPrefix(text, "give:"); ok {
		if n, err := strconv.Atoi(n); err == nil {
			return strings.Repeat(prose, n/len(prose)+1)[:n]
		}
	}
	return text
}

// greeted counts a handshake.
func (e *echoServer) greeted() {
	f, err := os.OpenFile(e.hellos, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // there is no file to count in
	}
	defer f.Close()
	if _, err := f.WriteString("."); err != nil {
		panic(err)
	}
}

func (e *echoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := e.answer(message)
	if answer == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if e.streams {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message\ndata: "+answer+"\n\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}
