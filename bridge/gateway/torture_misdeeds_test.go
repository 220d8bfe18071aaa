package gateway_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A misdeed is a request that no client should send, and what it must be answered.
type misdeed struct {
	method string            // of HTTP; POST if empty
	header map[string]string // added to the usual ones, or in place of them; "" takes it out
	body   string            // $ is the id of a request that has none of its own
	status int
	code   int    // of the JSON-RPC error; 0 if it is none
	says   string // in the answer
}

const metaNewer = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`

func req(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params)
}

// nested is an object in as many others.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// ofBothEras are misdeeds of clients with and without sessions. $m stands for what the protocol
// revision wants in params.
var ofBothEras = map[string]misdeed{
	"a batch":                        {body: `[` + req("1", "ping", "") + `,` + req("2", "ping", "") + `]`, status: 400, code: -32600, says: "batch"},
	"an empty batch":                 {body: `[]`, status: 400, code: -32600},
	"nothing":                        {body: ``, status: 400, code: -32700},
	"no JSON":                        {body: `hello`, status: 400, code: -32700},
	"half a message":                 {body: `{"jsonrpc":"2.0","id":1,"meth`, status: 400, code: -32700},
	"two messages":                   {body: req("1", "ping", "") + req("2", "ping", ""), status: 400, code: -32602},
	"JSON-RPC 1.0":                   {body: `{"jsonrpc":"1.0","id":1,"method":"ping"}`, status: 400, code: -32600},
	"no version of JSON-RPC":         {body: `{"id":1,"method":"ping"}`, status: 400, code: -32600},
	"a message that is nothing":      {body: `{"jsonrpc":"2.0"}`, status: 400, code: -32600},
	"a method that is a number":      {body: `{"jsonrpc":"2.0","id":1,"method":5}`, status: 400, code: -32600},
	"an id that is null":             {body: req("null", "ping", ""), status: 400, code: -32600},
	"an id that is true":             {body: req("true", "ping", ""), status: 400, code: -32600},
	"an id that is half a number":    {body: req("1.5", "ping", ""), status: 400, code: -32600},
	"an id that is an object":        {body: req("{}", "ping", ""), status: 400, code: -32600},
	"an id that is a list":           {body: req("[1]", "ping", ""), status: 400, code: -32600},
	"an id beyond 64 bits":           {body: req("9223372036854775808", "ping", ""), status: 400, code: -32600},
	"an id of 1 MB":                  {body: req(`"`+strings.Repeat("x", 1<<20)+`"`, "ping", ""), status: 400, code: -32600},
	"a tool's name that is a number": {body: req("$", "tools/call", `"name":5,"arguments":{},$m`), status: 400, code: -32602},
	"a call of nothing":              {body: req("$", "tools/call", `"arguments":{},$m`), status: 400, code: -32602},
	"arguments that are a list":      {body: req("$", "tools/call", `"name":"f__echo","arguments":[1],$m`), status: 400, code: -32602, says: "arguments is not an object"},
	"arguments that are text":        {body: req("$", "tools/call", `"name":"f__echo","arguments":"x",$m`), status: 400, code: -32602},
	"a key twice":                    {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"a","text":"b"},$m`), status: 400, code: -32602, says: "the same name"},
	"bytes that are not UTF-8":       {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"`+"\xff\xfe"+`"},$m`), status: 400, code: -32602},
	"half a surrogate":               {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"\ud800"},$m`), status: 400, code: -32602},
	"a number beyond all":            {body: req("$", "tools/call", `"name":"f__echo","arguments":{"n":1e99999},$m`), status: 400, code: -32602},
	"objects in objects":             {body: req("$", "tools/call", `"name":"f__echo","arguments":`+nested(100_000)+`,$m`), status: 400, code: -32602},
	"lists in lists":                 {body: strings.Repeat("[", 100_000), status: 400, code: -32700},
	"a message that is too large":    {body: req("$", "tools/call", `"name":"f__echo","arguments":{"text":"`+strings.Repeat("x", 5<<20)+`"},$m`), status: 413, says: "limits.body"},
	"a cursor of another list":       {body: req("$", "tools/list", `"cursor":"Mw==",$m`), status: 400, code: -32602, says: "cursor"},
	"a cursor that is garbage":       {body: req("$", "tools/list", `"cursor":"\u0000\u0001",$m`), status: 400, code: -32602, says: "cursor"},
	"a cursor that is a number":      {body: req("$", "tools/list", `"cursor":7,$m`), status: 400, code: -32602, says: "cursor"},
	"another content type":           {header: map[string]string{"Content-Type": "text/plain"}, body: req("$", "tools/list", `$m`), status: 415},
	"no content type":                {header: map[string]string{"Content-Type": ""}, body: req("$", "tools/list", `$m`), status: 415},
	"a host that is not ours":        {header: map[string]string{"Host": "evil.example"}, body: req("$", "tools/list", `$m`), status: 403, says: "http.hosts"},
	"a page of the web":              {header: map[string]string{"Origin": "https://evil.example"}, body: req("$", "tools/list", `$m`), status: 403, says: "http.origins"},
	"a method that HTTP has not":     {method: "BREW", status: 405},
	"a PUT":                          {method: http.MethodPut, body: req("$", "tools/list", `$m`), status: 405},
}

// ofSessions are misdeeds of clients of the older revisions, in a session.
var ofSessions = map[string]misdeed{
	"a method that nobody has":       {body: req("$", "tools/burn", ""), status: 200, code: -32601},
	"a notification that nobody has": {body: `{"jsonrpc":"2.0","method":"notifications/burnt"}`, status: 202},
	"an answer to no question":       {body: `{"jsonrpc":"2.0","id":99,"result":{}}`, status: 202},
	"params that are a list":         {body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, status: 400, code: -32602},
	"params that are text":           {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`, status: 400, code: -32602, says: "params is not an object"},
	"the session of another":         {header: map[string]string{"Mcp-Session-Id": "AAAAAAAAAAAAAAAAAAAAAAAAAA"}, body: req("$", "tools/list", ""), status: 404},
	"a session's id of 16 KB":        {header: map[string]string{"Mcp-Session-Id": strings.Repeat("x", 16<<10)}, body: req("$", "tools/list", ""), status: 404},
	"no session":                     {header: map[string]string{"Mcp-Session-Id": "", "Mcp-Protocol-Version": ""}, body: req("$", "tools/list", ""), status: 400, code: -32600, says: "initialize"},
	"a revision that is none":        {header: map[string]string{"Mcp-Protocol-Version": "1999-12-31"}, body: req("$", "tools/list", ""), status: 400},
	"no stream wanted":               {header: map[string]string{"Accept": "application/json"}, body: req("$", "tools/list", ""), status: 406},
	"a GET of what is not a stream":  {method: http.MethodGet, header: map[string]string{"Accept": "text/html"}, status: 406},
	"a GET without a session":        {method: http.MethodGet, header: map[string]string{"Mcp-Session-Id": "", "Accept": "text/event-stream"}, status: 400},
	"the rest of what was never":     {method: http.MethodGet, header: map[string]string{"Accept": "text/event-stream", "Last-Event-Id": "ABC_7"}, status: 400},
	"the rest of garbage":            {method: http.MethodGet, header: map[string]string{"Accept": "text/event-stream", "Last-Event-Id": "\t_"}, status: 400},
	"the end of no session":          {method: http.MethodDelete, header: map[string]string{"Mcp-Session-Id": "nobody"}, status: 404},
}

// withoutSessions are misdeeds of clients of revision 2026-07-28.
var withoutSessions = map[string]misdeed{
	"a method that nobody has":         {header: map[string]string{"Mcp-Method": "tools/burn"}, body: req("$", "tools/burn", "$m"), status: 404, code: -32601},
	"a notification that nobody has":   {header: map[string]string{"Mcp-Method": "notifications/burnt"}, body: `{"jsonrpc":"2.0","method":"notifications/burnt","params":{$m}}`, status: 202},
	"another method in the header":     {header: map[string]string{"Mcp-Method": "tools/list"}, body: req("$", "tools/call", `"name":"f__echo","arguments":{},$m`), status: 400, code: -32020},
	"another tool in the header":       {header: map[string]string{"Mcp-Name": "f__waits"}, body: req("$", "tools/call", `"name":"f__echo","arguments":{},$m`), status: 400, code: -32020},
	"no method in the header":          {header: map[string]string{"Mcp-Method": ""}, body: req("$", "tools/list", `$m`), status: 400, code: -32020},
	"another revision in the body":     {body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, "2026-07-29"), status: 400},
	"an older revision in the body":    {body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, older), status: 400},
	"a revision to come":               {header: map[string]string{"Mcp-Protocol-Version": "2999-01-01"}, body: strings.ReplaceAll(req("$", "tools/list", metaNewer), newer, "2999-01-01"), status: 400, code: -32022},
	"no _meta":                         {body: req("$", "tools/call", `"name":"f__echo","arguments":{}`), status: 400},
	"a _meta that is a list":           {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"_meta":[]`), status: 400, code: -32602},
	"a requestState of its own making": {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"requestState":"Zm9yZ2Vk","inputResponses":{"q":{"action":"accept"}},$m`), status: 400, code: -32602, says: "requestState"},
	"inputResponses that are a list":   {body: req("$", "tools/call", `"name":"f__echo","arguments":{},"requestState":"x","inputResponses":[],$m`), status: 400, code: -32602},
	"no stream wanted":                 {header: map[string]string{"Accept": "application/json"}, body: req("$", "tools/list", "$m"), status: 406},
}

func misdeeds(era string) map[string]misdeed {
	own := ofSessions
	if era == newer {
		own = withoutSessions
	}
	all := make(map[string]misdeed)
	for _, some := range []map[string]misdeed{ofBothEras, own} {
		maps.Copy(all, some)
	}
	for name, m := range all {
		if m.code == -32602 && era == older {
			m.status = http.StatusOK // the error answers the request
			all[name] = m
		}
	}
	return all
}

// judge returns what is wrong with the answer to a misdeed.
func (m *misdeed) judge(resp *http.Response, answer string, err error) error {
	if err != nil && m.status == 413 {
		return nil // the rest of the message was not waited for
	}
	if err != nil {
		return err
	}
	code := 0
	if doc, err := gate.ParseDoc([]byte(answer)); err == nil {
		code, _ = strconv.Atoi(doc.At("/error/code").String())
	}
	switch {
	case m.status > 0 && resp.StatusCode != m.status, m.status >= 0 && m.code != 0 && code != m.code, !strings.Contains(answer, m.says), resp.StatusCode >= 500:
		return fmt.Errorf("status %d, code %d: %.300s; want status %d, code %d, %q", resp.StatusCode, code, answer, m.status, m.code, m.says)
	}
	return nil
}
