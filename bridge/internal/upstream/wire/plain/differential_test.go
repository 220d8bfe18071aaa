package plain_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire/plain"
)

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// answers are what servers send, most of them to have it taken for something else.
var answers = map[string]string{
	"a plain answer":                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	"no body":                       "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
	"no content":                    "HTTP/1.1 204 No Content\r\n\r\n",
	"no content, with some":         "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
	"not modified":                  "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
	"chunks":                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
	"chunks with extensions":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\n{\r\n1 \r\n}\r\n0\r\n\r\n",
	"trailers":                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
	"chunks that end in the middle": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
	"a chunk of no length":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n{}\r\n0\r\n\r\n",
	"a chunk too long":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
	"a chunk below nothing":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}",
	"length and chunks":             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"chunks twice":                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"chunks, and unknown":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"chunks of an older protocol":   "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"two lengths":                   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
	"two equal lengths":             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
	"two lengths in a line":         "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}",
	"a length with a sign":          "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
	"a length below nothing":        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
	"a length in sixteens":          "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\n{}",
	"a length beyond all numbers":   "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
	"a length of spaces":            "HTTP/1.1 200 OK\r\nContent-Length:  \r\n\r\n{}",
	"a space before the colon":      "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
	"a folded line":                 "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
	"a folded first line":           "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 2\r\n\r\n{}",
	"bare line feeds":               "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
	"a bare carriage return":        "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 9\r\nContent-Length: 2\r\n\r\n{}",
	"a header without a colon":      "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}",
	"a header without a name":       "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\n{}",
	"a zero in a header":            "HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 2\r\n\r\n{}",
	"more than was announced":       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
	"less than was announced":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
	"until the end":                 "HTTP/1.1 200 OK\r\n\r\n{}",
	"the last":                      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	"an older protocol":             "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"an older one that is kept":     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
	"a newer protocol":              "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"another protocol":              "SSH-2.0-x\r\n",
	"a status that is none":         "HTTP/1.1 20x OK\r\nContent-Length: 2\r\n\r\n{}",
	"a status of two digits":        "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
	"a status of zeros":             "HTTP/1.1 000 \r\nContent-Length: 2\r\n\r\n{}",
	"a status without a reason":     "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}",
	"an error":                      "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
	"an early hint":                 "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"go on":                         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"an early hint with a body":     "HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"nothing but hints":             strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000),
	"nothing":                       "",
	"half a head":                   "HTTP/1.1 200 OK\r\nContent-Le",
	"half an end of a head":         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
	"a large head":                  "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead-1000) + "\r\nContent-Length: 2\r\n\r\n{}",
	"a head that is too large":      "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead) + "\r\nContent-Length: 2\r\n\r\n{}",
	"a head of too many lines":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: x\r\n", maxHead) + "Content-Length: 2\r\n\r\n{}",
	"compressed":                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n" + zipped("{}") + "\r\n0\r\n\r\n",
	"compressed, to its end":        "HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\n\r\n" + zipped(`{"a":1}`),
	"compressed to nothing":         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
	"compressed, and cut off":       "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + zipped(`{"a":1}`)[:15],
	"not compressed, it says":       "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
	"compressed in another way":     "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
	"events":                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\n",
	"a redirect":                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
}

// judge compares what comes of an answer with net/http and with the plain client.
func judge(t *testing.T, answer string, piece int) {
	t.Helper()
	const url, body = "http://server.example/mcp", `{"a":1}`
	var outcomes [2]string
	for i := range outcomes {
		c := newCanned(answer, piece, body)
		theirs, ours := transports("server.example", c)
		outcomes[i] = outcome([]http.RoundTripper{theirs, ours}[i], post(t, url, body))
		_ = c.Close() // which ends the goroutines of net/http
	}
	if outcomes[0] != outcomes[1] {
		t.Errorf("in pieces of %d:\nnet/http: %s\nplain:    %s", piece, outcomes[0], outcomes[1])
	}
}

// Whatever a server answers, it comes out as it does of net/http.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 1 << 20} {
				judge(t, answer, piece)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for _, answer := range answers {
		f.Add(answer, uint8(0))
		f.Add(answer, uint8(3))
	}
	f.Fuzz(func(t *testing.T, answer string, piece uint8) {
		if strings.Contains(answer, " 101") { // net/http hands the connection over to the caller
			return
		}
		size := int(piece)
		if size == 0 {
			size = 1 << 20
		}
		judge(t, answer, size)
	})
}

// written returns what a request is on the wire of net/http and on ours, if ours takes it.
func written(tb testing.TB, request func() *http.Request, host, body string) (theirs, ours string, takes bool) {
	if !(&plain.Client{Host: host}).Takes(request()) {
		return "", "", false
	}
	var sent [2]string
	for i := range sent {
		c := newCanned("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 100, body)
		theirs, ours := transports(host, c)
		outcome([]http.RoundTripper{theirs, ours}[i], request())
		sent[i] = c.sent()
		_ = c.Close()
	}
	return sent[0], sent[1], true
}

// A request that is plain has the bytes that it has with net/http; others are not taken.
func TestRequestsAreThoseOfNetHTTP(t *testing.T) {
	tests := map[string]struct {
		url, name, value string
		plain            bool
	}{
		"a header":                   {"http://server.example/mcp", "X-A", "b", true},
		"a port":                     {"http://server.example:8080/mcp?x=%20y", "X-A", "b", true},
		"an address":                 {"http://[::1]:8080", "X-A", "b", true},
		"spaces around a value":      {"http://server.example", "X-A", " b ", true},
		"no value":                   {"http://server.example", "X-A", "", true},
		"letters of no alphabet":     {"http://server.example", "X-A", "\xffé", true},
		"an agent":                   {"http://server.example", "User-Agent", "a", true},
		"no agent":                   {"http://server.example", "User-Agent", "", true},
		"a line in a value":          {"http://server.example", "X-A", "b\r\nEvil: 1", false},
		"a line feed in a value":     {"http://server.example", "X-A", "b\nEvil: 1", false},
		"a zero in a value":          {"http://server.example", "X-A", "\x00", false},
		"a line in a name":           {"http://server.example", "X-A: b\r\nEvil", "1", false},
		"a space in a name":          {"http://server.example", "X A", "1", false},
		"no name":                    {"http://server.example", "", "1", false},
		"a name in small letters":    {"http://server.example", "x-a", "1", false},
		"a length":                   {"http://server.example", "Content-Length", "1", false},
		"chunks":                     {"http://server.example", "Transfer-Encoding", "chunked", false},
		"an expectation":             {"http://server.example", "Expect", "100-continue", false},
		"an upgrade":                 {"http://server.example", "Upgrade", "websocket", false},
		"a connection":               {"http://server.example", "Connection", "close", false},
		"a trailer":                  {"http://server.example", "Trailer", "X", false},
		"an encoding":                {"http://server.example", "Accept-Encoding", "identity", false},
		"TLS":                        {"https://server.example", "X-A", "b", false},
		"a name of another alphabet": {"http://exämple.example", "X-A", "b", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			const body = "{}"
			request := func() *http.Request {
				r := post(t, tt.url, body)
				r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"a", "b"}, tt.name: {tt.value}}
				return r
			}
			theirs, ours, takes := written(t, request, request().URL.Host, body)
			if takes != tt.plain || takes && theirs != ours {
				t.Errorf("taken %t, want %t\nnet/http: %q\nplain:    %q", takes, tt.plain, theirs, ours)
			}
		})
	}
}

// Other methods, other servers, bodies of unknown or large size and trailers are not taken.
func TestTakes(t *testing.T) {
	client := plain.Client{Host: "server.example"}
	for name, change := range map[string]func(r *http.Request){
		"GET":              func(r *http.Request) { r.Method = http.MethodGet },
		"another server":   func(r *http.Request) { r.URL.Host = "other.example" },
		"an unknown size":  func(r *http.Request) { r.ContentLength = -1 },
		"no body":          func(r *http.Request) { r.Body, r.ContentLength = nil, 0 },
		"a large body":     func(r *http.Request) { r.ContentLength = 1 << 20 },
		"trailers":         func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
		"chunks":           func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"the last":         func(r *http.Request) { r.Close = true },
		"an opaque URL":    func(r *http.Request) { r.URL.Opaque = "/x y" },
		"a host of lines":  func(r *http.Request) { r.Host = "a\r\nb" },
		"a host of a zone": func(r *http.Request) { r.Host = "[fe80::1%25eth0]" },
	} {
		r := post(t, "http://server.example/mcp", "{}")
		if !client.Takes(r) {
			t.Fatal("a plain request is not taken")
		}
		if change(r); client.Takes(r) {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("server.example", "/mcp", "X-A", "b", "{}")
	f.Add("server.example:80", "/a b?c", "User-Agent", " ", "{}")
	f.Add("a\r\nb", "/%0d%0a", "Content-Length", "7", "GET / HTTP/1.1\r\n\r\n")
	f.Fuzz(func(t *testing.T, host, path, name, value, body string) {
		if body == "" || strings.Contains(body, "\r\n\r\n") || len(body) > 1000 { // by which the canned server knows that it was asked
			return
		}
		request := func() *http.Request {
			r := post(t, "http://server.example", body)
			r.Host, r.URL.Path, r.Header[name] = host, path, []string{value}
			return r
		}
		if theirs, ours, takes := written(t, request, "server.example", body); takes && theirs != ours {
			t.Errorf("net/http: %q\nplain:    %q", theirs, ours)
		}
	})
}
