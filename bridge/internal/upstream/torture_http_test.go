package upstream_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/gate"
)

// A webDeed is a way in which the torture upstream answers a call over HTTP, and what is
// to come of it: the code of the call, and words of the error that say what was wrong.
type webDeed struct {
	code, says string
	do         func(s *tortureWeb, w http.ResponseWriter, r *http.Request, id string)
}

// tortureMost is what the endpoints of the torture take for one message, in bytes.
const tortureMost = 1 << 20

var (
	right = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"fine"}]}}`
	told  = `{"jsonrpc":"2.0","method":"notifications/never/heard/of","params":{"x":[1,2,{}]}}`
	asked = `{"jsonrpc":"2.0","id":%s,"method":"system/exec","params":{"command":"id"}}`
)

var webDeeds = map[string]webDeed{
	"answers":            {"ok", "", document("application/json", right)},
	"a stream":           {"ok", "", events("data: " + right + "\n\n")},
	"CRLF":               {"ok", "", events("event: message\r\ndata: " + right + "\r\n\r\n")},
	"CR":                 {"ok", "", events("event: message\rdata: " + right + "\r\r")},
	"a BOM":              {"ok", "", events("\xef\xbb\xbfdata: " + right + "\n\n")},
	"comments":           {"ok", "", events(strings.Repeat(": \n\n:x\n", 1000) + "data: " + right + "\n\n")},
	"several data lines": {"ok", "", events("data: " + strings.ReplaceAll(right, ",", ",\ndata:") + "\n\n")},
	"split at each byte": {"ok", "", split("data: " + right + "\r\n\r\n")},
	"answers twice":      {"ok", "", events("data: " + right + "\n\ndata: " + right + "\n\n")},
	"talks on":           {"ok", "", events("data: " + right + "\n\ndata: " + told + "\n\ndata: nonsense\n\n")},
	"talks before":       {"ok", "", events("data: " + told + "\n\ndata: " + told + "\n\ndata: " + right + "\n\n")},
	"asks what it must not": {"ok", "", events("data: " + asked + "\n\ndata: " +
		`{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}` + "\n\ndata: " + right + "\n\n")},
	"a JSON-RPC error in a 400": {"tool_error", "", answering(400, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`)},
	"a session that has ended":  {"ok", "", forget(404, "text/plain", "who are you")},
	"no session, with a 404":    {"ok", "", forget(404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)},
	"no session, by its id":     {"ok", "", forget(404, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`)},
	"no session, with a 400":    {"ok", "", forget(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)},
	"no session, with a 401":    {"ok", "", forget(401, "text/plain", "Invalid session ID")},
	"no session, with a 410":    {"ok", "", forget(410, "text/plain", "session expired")},
	"no session, with a 500":    {"ok", "", forget(500, "text/plain", "Error: unknown session")},
	"no session, with a 503":    {"ok", "", forget(503, "application/json", `{"error":"the session does not exist"}`)},
	"an answer with a 404":      {"tool_error", "", answering(404, "application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"data missing"}}`)},
	"a BOM before JSON":         {"ok", "", document("application/json", "\ufeff"+right)},
	"error: null":               {"ok", "", document("application/json", strings.Replace(right, "{", `{"error":null,`, 1))},
	"an id that is text":        {"ok", "", document("application/json", strings.Replace(right, "%s", `"%s"`, 1))},
	"an id with a fraction":     {"ok", "", document("application/json", strings.Replace(right, "%s", "%s.0", 1))},
	"events of other types":     {"ok", "", events("event: ping\ndata: ping\n\nevent:ping\ndata: {}\n\nevent: message\ndata: " + right + "\n\n")},

	"the answer to another":     {"protocol", "another request", document("application/json", strings.Replace(right, "%s", "4711", 1))},
	"a null error, no result":   {"tool_error", "", document("application/json", `{"jsonrpc":"2.0","id":%s,"result":null,"error":null}`)},
	"another's answer, and end": {"transport", "ended before the answer", events("data: " + strings.Replace(right, "%s", "4711", 1) + "\n\n")},
	"a batch":                   {"protocol", "not JSON-RPC 2.0", document("application/json", "["+right+"]")},
	"a batch as an event":       {"protocol", "not JSON-RPC 2.0", events("data: [" + right + "]\n\n")},
	"garbage":                   {"protocol", "a JSON value cannot begin", document("application/json", "\x00\xff\xfe\x80PNG")},
	"garbage as an event":       {"protocol", "a JSON value cannot begin", events("data: \x00\xff\xfe\x80PNG\n\n")},
	"deep nesting":              {"protocol", "levels deep", document("application/json", strings.Repeat("[", 100_000))},
	"a giant line":              {"refused_limit", "limits.result is", events("data: " + strings.Repeat("x", 2*tortureMost) + "\n\n")},
	"a giant event":             {"refused_limit", "limits.result is", events(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000) + "\n")},
	"a giant document":          {"refused_limit", "limits.result is", document("application/json", `{"x":"`+strings.Repeat("x", 2*tortureMost)+`"}`)},
	"a gzip bomb":               {"refused_limit", "limits.result is", bomb("application/json", `{"x":"`)},
	"a gzip bomb of events":     {"refused_limit", "limits.result is", bomb("text/event-stream", "data: ")},
	"a bomb that says no":       {"transport", "HTTP 500", bomb("text/plain", "")},
	"a web page":                {"protocol", `Content-Type "text/html"`, answering(200, "text/html", "<p>hello")},
	"nothing":                   {"protocol", "no answer to the request", answering(202, "", "")},
	"400":                       {"transport", `HTTP 400 Bad Request: "no such thing"`, answering(400, "text/plain", "no such thing")},
	"401":                       {"transport", "HTTP 401", answering(401, "text/plain", "who are you")},
	"405":                       {"transport", "HTTP 405", answering(405, "text/plain", "")},
	"429":                       {"transport", "HTTP 429", answering(429, "text/plain", "slower")},
	"500":                       {"transport", `HTTP 500 Internal Server Error: "\x1b[2Joops"`, answering(500, "text/plain", "\x1b[2Joops")},
	"503":                       {"transport", "HTTP 503", answering(503, "text/html", "<h1>later</h1>")},
	"elsewhere":                 {"transport", "another origin", redirect(307, "http://192.0.2.1/mcp")},
	"elsewhere with GET":        {"transport", "drops the message", redirect(302, "/mcp")},
	"round and round":           {"transport", "too many redirects", redirect(307, "")},
	"the stream ends":           {"transport", "ended before the answer", events("")},
	"half an event":             {"transport", "ended before the answer", events("data: " + right)},
	"half a body":               {"transport", "EOF", halfBody},
	"hangs up":                  {"transport", "EOF", func(*tortureWeb, http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }},
	"half-closes":               {"transport", "ended before the answer", halfClose},
	"no HTTP":                   {"transport", "malformed HTTP", raw("SSH-2.0-OpenSSH_9.9\r\n")},
	"endless headers":           {"transport", "headers exceeded", raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 200))},
	"restarts":                  {"transport", "EOF", (*tortureWeb).restart},
	"answers who has left":      {"cancelled", "", tooLate},
	"a byte at a time":          {"timeout", "no answer within", slowly("application/json", " ")},
	"comments without end":      {"timeout", "no answer within", slowly("text/event-stream", ":\n")},
	"talks without end":         {"timeout", "no answer within", slowly("text/event-stream", "data: "+told+"\n\n")},
}

// tortureWeb is a server over HTTP whose misbehaviour each call chooses by its argument
// do.
type tortureWeb struct {
	mu       sync.Mutex
	sessions map[string]bool
	forgot   bool   // the call of this session is to be answered
	lists    int    // listings so far
	list     string // how the first listing misbehaves
}

func (s *tortureWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	msg, _ := gate.ParseDoc(body)
	id, method := msg.Get("id").String(), msg.Get("method").Text()
	s.mu.Lock()
	known := s.sessions[r.Header.Get("Mcp-Session-Id")]
	s.mu.Unlock()
	switch {
	case method == "initialize":
		w.Header().Set("Mcp-Session-Id", s.begin())
		document("application/json", `{"jsonrpc":"2.0","id":%s,"result":`+rig.Initialized+`}`)(s, w, r, id)
	case method == "server/discover":
		document("application/json", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`)(s, w, r, id)
	case !known:
		http.Error(w, "Session not found", http.StatusNotFound)
	case method == "tools/list":
		document("application/json", `{"jsonrpc":"2.0","id":%s,"result":`+tortureTools(s.list, s.listed(), msg.At("/params/cursor").Text())+`}`)(s, w, r, id)
	case method == "tools/call":
		webDeeds[msg.At("/params/arguments/do").Text()].do(s, w, r, id)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *tortureWeb) begin() (session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session = rand.Text()
	s.sessions = map[string]bool{session: true}
	return session
}

func (s *tortureWeb) listed() (before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return s.lists - 1
}

// forget ends the session once, and says so: the call that comes again in another one is answered.
func forget(code int, kind, format string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(s *tortureWeb, w http.ResponseWriter, r *http.Request, id string) {
		s.mu.Lock()
		s.forgot = !s.forgot
		forgot := s.forgot
		if forgot {
			clear(s.sessions)
		}
		s.mu.Unlock()
		if forgot {
			answering(code, kind, format)(s, w, r, id)
			return
		}
		document("application/json", right)(s, w, r, id)
	}
}

func (s *tortureWeb) restart(http.ResponseWriter, *http.Request, string) {
	s.mu.Lock()
	clear(s.sessions)
	s.mu.Unlock()
	panic(http.ErrAbortHandler)
}

func withID(format, id string) string { return strings.ReplaceAll(format, "%s", id) }

func document(kind, format string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return answering(http.StatusOK, kind, format)
}

func events(format string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return answering(http.StatusOK, "text/event-stream", format)
}

func answering(code int, kind, format string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		io.WriteString(w, withID(format, id))
	}
}

func split(format string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, b := range []byte(withID(format, id)) {
			w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	}
}

// slowly writes something again and again until the client has gone.
func slowly(kind, what string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(_ *tortureWeb, w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", kind)
		for r.Context().Err() == nil {
			io.WriteString(w, what)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func tooLate(_ *tortureWeb, w http.ResponseWriter, r *http.Request, id string) {
	<-r.Context().Done()
	io.WriteString(w, withID(right, id))
}

func redirect(code int, to string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(_ *tortureWeb, w http.ResponseWriter, r *http.Request, _ string) {
		if to == "" {
			to = r.URL.String()
		}
		http.Redirect(w, r, to, code)
	}
}

// bomb is a body that is small on the wire, and 64 MiB after that.
func bomb(kind, begin string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	body := sync.OnceValue(func() []byte {
		return append(zipped(begin), bytes.Repeat(zipped(strings.Repeat("x", 1<<20)), 64)...)
	})
	return func(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		if kind == "text/plain" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Write(body())
	}
}

// zipped is one member of a gzip file: several after one another are a file, too
// (RFC 1952, section 2.2).
func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

func halfBody(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, id string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "100000")
	io.WriteString(w, withID(right, id))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// raw writes what is no answer of HTTP, and hangs up.
func raw(what string) func(*tortureWeb, http.ResponseWriter, *http.Request, string) {
	return func(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, _ string) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		io.WriteString(c, what)
	}
}

// halfClose ends its side of the connection in the middle of a stream, and goes on
// listening until the client ends the other.
func halfClose(_ *tortureWeb, w http.ResponseWriter, _ *http.Request, _ string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n")
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, c)
}

// tortureTools is an answer to tools/list: the tools that can be called, after a first
// listing that misbehaves in the given way.
func tortureTools(how string, before int, cursor string) string {
	tools := `{"name":"echo","inputSchema":{"type":"object"}},{"name":"late","inputSchema":{"type":"object"}}`
	if how == "10,000 tools" || how == "10,001 tools" {
		page := 0
		fmt.Sscan(cursor, &page)
		if page++; page > 100 && how == "10,001 tools" {
			return `{"tools":[{"name":"one more","inputSchema":{"type":"object"}}]}`
		} else if page > 100 {
			return `{"tools":[]}`
		}
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `{"name":"t%d_%d","inputSchema":{"type":"object"}},`, page, i)
		}
		return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.TrimSuffix(b.String(), ","), page)
	}
	if before > 4 && how != "a cursor without end" || before > 1000 || before > 0 && how == "no array of tools" {
		return `{"tools":[` + tools + `]}`
	}
	switch how {
	case "a cursor that goes round":
		return fmt.Sprintf(`{"tools":[{"name":"a%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, before, before%2)
	case "a cursor without end":
		return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, before)
	case "a cursor that is a number":
		return `{"tools":[` + tools + `],"nextCursor":7}`
	case "no array of tools":
		return `{"tools":{"echo":{}}}`
	case "tools that are not tools":
		return `{"tools":[1,null,"x",{},{"name":7},` + tools + `]}`
	default:
		return `{"tools":[` + tools + `]}`
	}
}
