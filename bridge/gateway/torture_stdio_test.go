package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// onLines are the misdeeds of a client on stdio, and the code of their answer; 0 for
// none.
var onLines = map[string]struct {
	line string
	code int
}{
	"nothing":                        {"", 0},
	"blanks":                         {" \t ", 0},
	"no JSON":                        {"hello", -32700},
	"half a message":                 {`{"jsonrpc":"2.0","id":1,"meth`, -32700},
	"a batch":                        {`[` + req("1", "ping", "") + `]`, -32600},
	"JSON-RPC 1.0":                   {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
	"an id that is null":             {req("null", "ping", ""), -32600},
	"an id that is an object":        {req("{}", "ping", ""), -32600},
	"an id of 1 MB":                  {req(`"`+strings.Repeat("x", 1<<20)+`"`, "ping", ""), -32600},
	"a method that nobody has":       {req("7", "tools/burn", ""), -32601},
	"a notification that nobody has": {`{"jsonrpc":"2.0","method":"notifications/burnt"}`, 0},
	"an answer to no question":       {`{"jsonrpc":"2.0","id":99,"result":{}}`, 0},
	"arguments that are a list":      {req("8", "tools/call", `"name":"f__echo","arguments":[]`), -32602},
	"params that are text":           {`{"jsonrpc":"2.0","id":9,"method":"tools/list","params":"x"}`, -32602},
	"bytes that are not UTF-8":       {req("10", "tools/call", `"name":"f__echo","arguments":{"text":"`+"\xff"+`"}`), -32602},
	"objects in objects":             {req("11", "tools/call", `"name":"f__echo","arguments":`+nested(100_000)), -32602},
	"a cursor of another list":       {req("12", "tools/list", `"cursor":"x"`), -32602},
	"a line that is too long":        {req("13", "tools/call", `"name":"f__echo","arguments":{"text":"`+strings.Repeat("x", 5<<20)+`"}`), -32602},
}

// A line client speaks with a gateway in lines.
type lineClient struct {
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

func (tt *tortured) lines(t testing.TB) *lineClient {
	t.Helper()
	return lines(t, tt.Gateway, "{}")
}

// lines returns a client with capabilities.
func lines(t testing.TB, g *gateway.Gateway, capabilities string) *lineClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &lineClient{in: inW, out: bufio.NewReader(outR), ended: make(chan error, 1)}
	go func() {
		err := g.Serve(context.Background(), gate.Local(), inR, outW)
		outW.Close()
		inR.Close()
		c.ended <- err
	}()
	if _, err := c.ask(req("0", "initialize", `"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"9"},"capabilities":`+capabilities)); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a line and returns the next answer.
func (c *lineClient) ask(line string) (gate.Doc, error) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return gate.Doc{}, err
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return gate.Doc{}, err
	}
	return gate.ParseDoc(answer)
}

// tries does a misdeed, and a call that is as it should be.
func (c *lineClient) tries(line string, code int) error {
	if code != 0 {
		answer, err := c.ask(line)
		if got := answer.At("/error/code").String(); err != nil || got != strconv.Itoa(code) {
			return fmt.Errorf("%.300s, %v; want code %d", answer, err, code)
		}
	} else if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return err
	}
	answer, err := c.ask(req("77", "tools/call", `"name":"f__echo","arguments":{"text":"well"}`))
	if err != nil || answer.At("/result/content/0/text").Text() != "well" || answer.Get("id").String() != "77" {
		return fmt.Errorf("a call that is as it should be: %.300s, %v", answer, err)
	}
	return nil
}

func (c *lineClient) close(t testing.TB) {
	c.in.Close()
	if err := <-c.ended; err != nil {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestTortureStdio(t *testing.T) {
	unraced.Long(t)
	tt := torture(t)
	c := tt.lines(t)
	for name, m := range onLines {
		if err := c.tries(m.line, m.code); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.close(t)
}
