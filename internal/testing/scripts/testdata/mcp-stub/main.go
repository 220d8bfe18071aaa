// Command mcp-stub is an MCP server of the older revisions with the tools echo, fail, hang, and one
// that no gateway should offer; or with those in the file that STUB_TOOLS names. By the name xdg-open it opens a page, as a
// browser would.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "xdg-open":
		opener()
		return
	case "npm": // npm view --json ... -- known-PACKAGE name version
		spec := os.Args[slices.Index(os.Args, "--")+1]
		if !strings.HasPrefix(spec, "known-") {
			os.Exit(1)
		}
		fmt.Printf(`{"name": %q, "version": "1.2.3"}`, spec)
		return
	}
	tools := `{"tools":[{"name":"echo","description":"Says it again. And again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},` +
		`{"name":"fail","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}},{"name":"loop","inputSchema":{"type":"object","$ref":"#"}}]}`
	if file := os.Getenv("STUB_TOOLS"); file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		tools = strings.TrimSpace(string(b))
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments struct{ Text string }
			}
		}
		if json.Unmarshal(s.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch {
		case m.Params.Name == "hang":
			continue
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}`
			if os.Getenv("STUB_MORE") != "" {
				result = strings.Replace(result, `"tools":{}`, `"tools":{},"prompts":{},"resources":{}`, 1)
			}
		case m.Method == "prompts/list":
			result = `{"prompts":[{"name":"greet","description":"A greeting."}]}`
		case m.Method == "resources/list":
			result = `{"resources":[{"uri":"memo://today","name":"today"}]}`
		case m.Method == "resources/templates/list":
			result = `{"resourceTemplates":[{"uriTemplate":"memo://day/{date}","name":"day"}]}`
		case m.Method == "tools/list":
			result = tools
		case m.Params.Name == "echo":
			text := m.Params.Arguments.Text
			if file, ok := strings.CutPrefix(text, "read "); ok { // says whether it may
				_, err := os.ReadFile(file)
				text = fmt.Sprint("read: ", err)
			}
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text)
		case m.Method == "tools/call" && os.Getenv("STUB_TOOLS") != "":
			result = `{"content":[]}`
		case m.Params.Name == "fail":
			result = `{"content":[{"type":"text","text":"it cannot"}],"isError":true}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

// opener opens a page as a browser would, and writes its arguments and where it was led to the file
// that OPENED names.
func opener() {
	page, err := os.ReadFile(strings.TrimPrefix(os.Args[1], "file://"))
	if err != nil {
		panic(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(regexp.MustCompile(`url=([^"]+)"`).FindStringSubmatch(string(page))[1])
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	opened := fmt.Sprintf("arguments %q\nled to %s\n", os.Args[1:], resp.Header.Get("Location"))
	if err := os.WriteFile(os.Getenv("OPENED"), []byte(opened), 0o600); err != nil {
		panic(err)
	}
}
