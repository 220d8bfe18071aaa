package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/bridge/clean"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

// A maker makes JSON. MCP knows only a part of it.
type maker struct {
	*rand.Rand
	hidden bool // with characters that a person would not see
	deep   bool // with objects in a hundred others
}

func pick[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

// text makes no "</" before something else than a name, which starts a comment and is not left alone.
func (m maker) text() string {
	s, parts := "", []string{"word", " ", `\n\t`, `<b>&amp;</b>`, `\u003c `, `\/`, `\\\"`, "é", `e\u0301`, "\u2028", "\U0001f600", `\ud83d\ude00`, "مرحبا", "\ufffd"}
	if m.hidden {
		parts = append(parts, `\u0000`, "\u200b\u202e", "\U000e0041", "\ufeff", `\u007f`)
	}
	for range m.IntN(4) {
		s += pick(m, parts...)
	}
	return `"` + s + `"`
}

func (m maker) number() string {
	return pick(m, "0", "-0", "1.0", "1E5", "-1.50e-7", "0.1", "9007199254740993", "12345678901234567890", "1e300", "-"+strings.Repeat("9", 40), strconv.Itoa(m.IntN(1000)))
}

func (m maker) value(depth int) string {
	switch n := m.IntN(8); {
	case n == 0 && m.deep && m.IntN(10) == 0:
		return nested(100)
	case n < 2 && depth > 0:
		var all []string
		for range m.IntN(4) {
			all = append(all, m.value(depth-1))
		}
		return "[" + strings.Join(all, ",") + "]"
	case n < 4 && depth > 0:
		return "{" + strings.Join(m.members(depth-1), ",") + "}"
	case n == 4:
		return m.number()
	case n == 5:
		return pick(m, "null", "true", "false", "{}", "[]", `""`)
	default:
		return m.text()
	}
}

// members are members that MCP does not know.
func (m maker) members(depth int) []string {
	var all []string
	for _, i := range m.Perm(6)[:m.IntN(4)] {
		name := []string{`"x"`, `"X-Big Name"`, `"é\u0301\n"`, `"a/b~c"`, `"$ref2"`, `"ttl"`}[i]
		all = append(all, name+":"+m.value(depth))
	}
	return all
}

// object is an object with what is known, what is not, and _meta, in some order.
func (m maker) object(known ...string) string {
	all := append(known, m.members(3)...)
	if m.IntN(2) == 0 {
		all = append(all, `"_meta":{"example.com/k":`+m.value(2)+`,"example.com/l":`+m.value(1)+`}`)
	}
	m.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "{" + strings.Join(all, ",") + "}"
}

// several is a list of up to 4 of them.
func (m maker) several(make func() string) string {
	var all []string
	for range m.IntN(5) {
		all = append(all, make())
	}
	return "[" + strings.Join(all, ",") + "]"
}

// content is a block of content, of a type that MCP has or not.
func (m maker) content() string {
	switch m.IntN(5) {
	case 0:
		return m.object(`"type":"image"`, `"mimeType":"image/png"`, `"data":"AAAA"`)
	case 1:
		return m.object(`"type":"resource_link"`, `"uri":"doc://a"`, `"name":`+m.text())
	case 2:
		return m.object(`"type":"resource"`, `"resource":`+m.object(`"uri":"doc://a"`, `"text":`+m.text()))
	case 3:
		return m.object(`"type":"x-` + strconv.Itoa(m.IntN(9)) + `"`)
	}
	return m.object(`"type":"text"`, `"text":`+m.text(), `"annotations":`+m.object(`"priority":0.5`))
}

func (m maker) result() string {
	more := []string{`"content":` + m.several(m.content)}
	if m.IntN(2) == 0 {
		more = append(more, `"structuredContent":`+m.object())
	}
	if m.IntN(4) == 0 {
		more = append(more, `"isError":`+pick(m, "true", "false"))
	}
	return m.object(more...)
}

// A told server is one of MCP of a protocol revision, over HTTP, with given answers.
type told struct {
	era string
	url string

	mu       sync.Mutex
	pages    map[string][]string // of lists, by method
	results  map[string]string   // by method
	notes    []string            // methods and params, without their last brace, of notifications before the result of a call
	asks     string              // method and params of what a call asks its client
	tasks    bool                // whether calls are carried out as tasks
	got      map[string]gate.Doc // params, by method
	answered chan gate.Doc       // with what a call has asked for
	over     chan struct{}       // closed with the server
}

func tellServer(t *testing.T, era string) *told {
	s := &told{era: era, pages: map[string][]string{}, results: map[string]string{}, got: map[string]gate.Doc{}, answered: make(chan gate.Doc, 1), over: make(chan struct{})}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(s.over) })
	s.url = web.URL
	return s
}

const offersAll = `"capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func (s *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	msg, err := gate.ParseDoc(body)
	if err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	method, params := msg.Get("method").Text(), msg.Get("params")
	if method == "" {
		s.keep(msg)
	}
	if method == "" || msg.Get("id").IsZero() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[method] = params
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(what string) {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",%s}\n\n", what)
		w.(http.Flusher).Flush()
	}
	result, known := s.results[method]
	switch {
	case s.era == older && method == "initialize":
		w.Header().Set("Mcp-Session-Id", "s")
		result = `{"protocolVersion":"2025-11-25","serverInfo":{"name":"told","version":"1"},` + offersAll + `}`
	case s.era == newer && method == "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],` + offersAll + `}`
	case s.pages[method] != nil:
		page, _ := strconv.Atoi(params.Get("cursor").Text())
		result = s.pages[method][page]
		if page+1 < len(s.pages[method]) {
			result = strings.TrimSuffix(result, "}") + fmt.Sprintf(`,"nextCursor":"%d"}`, page+1)
		}
	case method == "tasks/get":
		result = taskOf("complete", "completed", `,"result":`+s.results["tools/call"])
	case !known:
		say(`"id":` + msg.Get("id").String() + `,"error":{"code":-32601,"message":"no such method"}`)
		return
	case method == "tools/call":
		result = s.call(msg, say)
	}
	say(`"id":` + msg.Get("id").String() + `,"result":` + result)
}

func taskOf(kind, status, more string) string {
	return fmt.Sprintf(`{"resultType":%q,"taskId":"t","status":%q,"createdAt":"2026-07-28T10:00:00Z","lastUpdatedAt":"2026-07-28T10:00:00Z","ttlMs":null,"pollIntervalMs":1%s}`, kind, status, more)
}

// call says what a call says before its result, and returns the result.
func (s *told) call(msg gate.Doc, say func(string)) string {
	params := msg.Get("params")
	for _, n := range s.notes {
		say(strings.Replace(n, `"$"`, params.Get("_meta").Get("progressToken").String(), 1))
	}
	switch answers := params.Get("inputResponses"); {
	case s.asks == "" && s.tasks:
		return taskOf("task", "working", "")
	case s.asks == "":
	case s.era == older:
		say(`"id":"q",` + s.asks) // and somebody takes the answer
		s.mu.Unlock()
		answer := s.answer()
		s.mu.Lock()
		s.keep(answer)
	case answers.IsZero():
		return `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{` + s.asks + `}}}`
	default:
		s.keep(gate.MustDoc(`{"result":` + answers.Get("q").String() + `}`))
	}
	return s.results["tools/call"]
}

// keep keeps what a client has answered until somebody takes it.
func (s *told) keep(answer gate.Doc) {
	select {
	case s.answered <- answer:
	case <-s.over:
	}
}

// answer waits for what a client answers; absent if it does not.
func (s *told) answer() gate.Doc {
	select {
	case a := <-s.answered:
		return a
	case <-s.over:
	case <-time.After(time.Minute):
	}
	return gate.Doc{}
}

// A direct client is one of MCP of a protocol revision, over HTTP, that shows what it is sent.
type direct struct {
	t            *testing.T
	url, session string // without a session if that is ""
	last         int
	answer       string // to whatever it is asked

	notes, asked []gate.Doc // since the last request
}

const canAll = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

func direct25(t *testing.T, url string) *direct {
	c := &direct{t: t, url: url}
	c.session = c.post(req("0", "initialize", `"protocolVersion":"2025-11-25","capabilities":`+canAll+`,"clientInfo":{"name":"c","version":"9"}`), older).Header.Get("Mcp-Session-Id")
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, older)
	c.request("logging/setLevel", `"level":"debug"`, "")
	return c
}

func (c *direct) post(msg, revision string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(msg))
	if err != nil {
		c.t.Fatal(err)
	}
	doc := gate.MustDoc(msg)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": c.session,
		"Mcp-Protocol-Version": revision, "Mcp-Method": doc.Get("method").Text(), "Mcp-Name": doc.At("/params/name").Text() + doc.At("/params/uri").Text(),
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// request sends a request, answers what it is asked meanwhile, and returns the message
// that ends it. params are the inside of an object, and meta that of its _meta.
func (c *direct) request(method, params, meta string) gate.Doc {
	c.t.Helper()
	c.notes, c.asked = nil, nil
	for more := ""; ; {
		c.last++
		revision, all := older, meta
		if c.session == "" {
			revision = newer
			all = strings.TrimSuffix(fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"9"},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientCapabilities":%s,%s`, newer, canAll, meta), ",")
		}
		inside := strings.TrimPrefix(fmt.Sprintf(`%s,"_meta":{%s}%s`, params, all, more), ",")
		end := c.read(c.post(req(strconv.Itoa(c.last), method, inside), revision))
		res := end.Get("result")
		if c.session != "" || res.Get("resultType").Text() != "input_required" {
			return end
		}
		for key, request := range res.Get("inputRequests").Members() {
			c.asked = append(c.asked, request)
			more = fmt.Sprintf(`,"inputResponses":{%q:%s},"requestState":%s`, key, c.answer, res.Get("requestState"))
		}
	}
}

// read reads until the message that ends a request.
func (c *direct) read(resp *http.Response) gate.Doc {
	c.t.Helper()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		data, found := strings.CutPrefix(strings.TrimSpace(line), "data: {")
		if !found && strings.HasPrefix(line, "{") {
			data, found = line[1:], true
		}
		if found {
			switch msg := gate.MustDoc("{" + data); {
			case msg.Get("method").IsZero():
				return msg
			case msg.Get("id").IsZero():
				c.notes = append(c.notes, msg)
			default:
				c.asked = append(c.asked, msg)
				c.post(`{"jsonrpc":"2.0","id":`+msg.Get("id").String()+`,"result":`+c.answer+`}`, older)
			}
		} else if err != nil {
			c.t.Fatalf("HTTP %d without an answer: %v", resp.StatusCode, err)
		}
	}
}

// open starts a gateway that grants all that a told server has, and changes nothing.
func open(t *testing.T, s *told) string {
	g := start(t, gateway.Config{
		Recorder: new(records), Sanitize: clean.Sanitize{Profile: "off", Links: []string{"*"}},
		Servers: []options.Endpoint{{Server: "s", URL: s.url, Methods: []string{"acme/x"}, Tools: options.Tools{OutputWarn: true}}},
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{
			{To: []string{"*"}, Servers: []string{"s"}, Asks: []string{"roots", "sampling", "secrets"}},
		}}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	return web.URL + "/mcp"
}
