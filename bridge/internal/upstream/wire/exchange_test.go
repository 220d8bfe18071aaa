package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// odd are what servers answer, byte by byte; HOST stands for the server's own address.
var odd = map[string]string{
	"a plain answer":                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
	"parts":                                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
	"the end of the connection":            "HTTP/1.1 200 OK\r\n\r\n{}",
	"a body that is cut off":               "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
	"a length that is none":                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
	"two lengths":                          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
	"an earlier answer":                    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"nothing":                              "",
	"half a head":                          "HTTP/1.1 200 OK\r\nContent-Le",
	"another protocol":                     "SSH-2.0-x\r\n",
	"a head without end":                   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n",
	"no content":                           "HTTP/1.1 204 No Content\r\n\r\n",
	"not modified":                         "HTTP/1.1 304 Not Modified\r\n\r\n",
	"an error":                             "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
	"a redirect":                           "HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect for good":                  "HTTP/1.1 308 Permanent Redirect\r\nLocation: http://HOST/other\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect in a circle":               "HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect that drops the body":       "HTTP/1.1 302 Found\r\nLocation: /other\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect to see":                    "HTTP/1.1 303 See Other\r\nLocation: /other\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect to another origin":         "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect without a place":           "HTTP/1.1 307 Temporary Redirect\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"a redirect to what is not an address": "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://[::1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
}

// serveOdd answers each request with an answer, but for /other, which echoes how it was
// asked. It returns its address.
func serveOdd(t *testing.T, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	host := l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path != "/other" {
					_, _ = io.WriteString(c, strings.ReplaceAll(answer, "HOST", host))
					return
				}
				echo := fmt.Sprintf("%s %s %s %v", r.Method, r.Host, body, r.Header)
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(echo), echo)
			}()
		}
	}()
	return host
}

// outcomeOf returns what came of a request, in words.
func outcomeOf(resp *http.Response, err error, host string) string {
	if err != nil {
		return strings.ReplaceAll(fmt.Sprintf("%T %v", err, err), host, "HOST")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return strings.ReplaceAll(fmt.Sprintf("%s %v %q %v", resp.Status, resp.Header, body, err), host, "HOST")
}

// What goes past http.Client comes out as it does by it: answers, errors and their words,
// and what a redirect leads to.
func TestExchangeIsThatOfTheClient(t *testing.T) {
	for name, answer := range odd {
		for _, path := range []string{"/", "/other"} {
			t.Run(name+path, func(t *testing.T) {
				host := serveOdd(t, answer)
				run := func(send func(*http.Client, *http.Request) (*http.Response, error)) string {
					client, err := NewHTTPClient(Remote{URL: "http://" + host + path, Headers: http.Header{"X-Configured": {"yes"}, "Host": {"name.example"}}, MaxMessage: 1 << 20})
					if err != nil {
						t.Fatal(err)
					}
					defer client.CloseIdleConnections()
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+path, bytes.NewReader([]byte(`{"a":1}`)))
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", "application/json")
					resp, err := send(client, r)
					return outcomeOf(resp, err, host)
				}
				want := run((*http.Client).Do)
				if got := run(exchange); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// A request to elsewhere is not sent, nor is one with a password in its URL past the client.
func TestExchangeKeepsToItsOrigin(t *testing.T) {
	host := serveOdd(t, odd["a plain answer"])
	client, err := NewHTTPClient(Remote{URL: "http://" + host})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://127.0.0.1:1/", "https://" + host + "/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := exchange(client, r)
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "another origin") {
			t.Errorf("%s: %v", url, err)
		}
	}
	client, err = NewHTTPClient(Remote{URL: "http://ann:secret@" + host + "/other"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://ann:secret@"+host+"/other", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := exchange(client, r)
	if got := outcomeOf(resp, err, host); !strings.Contains(got, "Basic ") {
		t.Errorf("the password of the URL is not sent: %s", got)
	}
}

// A body is read whole, up to the bound, whether its length is announced or not.
func TestBodiesAreReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 70_000, maxAnnounced + 10} {
		for _, announced := range []bool{true, false} {
			for _, max := range []int64{10, 1 << 20, 16 << 20} {
				body := strings.Repeat("x", size)
				resp := &http.Response{ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}
				if announced {
					resp.ContentLength = int64(size)
				}
				want := body[:min(size, int(max))]
				if got, err := readBody(resp, max); err != nil || string(got) != want {
					t.Errorf("size %d, announced %t, max %d: %d bytes, %v", size, announced, max, len(got), err)
				}
			}
		}
	}
	cut := &http.Response{ContentLength: 10, Body: io.NopCloser(strings.NewReader("x"))}
	if _, err := readBody(cut, 100); err == nil {
		t.Error("a body that is cut off is taken")
	}
}
