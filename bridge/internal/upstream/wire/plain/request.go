package plain

import (
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// maxBody bounds the body of a request, in bytes: so much a connection takes at once,
// though the server answers before it reads.
const maxBody = 16 << 10

// Takes reports whether a request is plain: a POST with a body of known and small size, over
// a connection without TLS, whose headers say nothing of how it is sent.
func (c *Client) Takes(r *http.Request) bool {
	u := r.URL
	return supported && r.Method == http.MethodPost && u.Scheme == "http" && u.Host == c.Host && u.Opaque == "" && isText(u.RequestURI()) &&
		r.Body != nil && r.ContentLength > 0 && r.ContentLength <= maxBody &&
		r.TransferEncoding == nil && r.Trailer == nil && !r.Close && plainHost(u.Host) && plainHost(hostOf(r)) && plainHeaders(r.Header)
}

func hostOf(r *http.Request) string {
	if r.Host != "" {
		return r.Host
	}
	return r.URL.Host
}

// plainHost reports whether net/http would send a host as it is written.
func plainHost(host string) bool {
	return isText(host) && !strings.Contains(host, "%") && httpguts.ValidHostHeader(host)
}

// isText reports whether s has printable characters of ASCII alone.
func isText(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// maxHeaders bounds the headers of a plain request.
const maxHeaders = 32

func plainHeaders(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || textproto.CanonicalMIMEHeaderKey(name) != name || ofConnection(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return len(h) <= maxHeaders
}

// ofConnection reports whether a header says how a message is sent, or what else may come
// as its answer.
func ofConnection(name string) bool {
	switch name {
	case "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Connection", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

var messages = sync.Pool{New: func() any { return new([]byte) }}

// appendMessage appends a request as net/http writes it, and closes its body.
func appendMessage(b []byte, r *http.Request) ([]byte, error) {
	defer r.Body.Close()
	b = append(append(append(b, "POST "...), r.URL.RequestURI()...), " HTTP/1.1\r\n"...)
	b = appendHeader(b, "Host", hostOf(r))
	if agent, ok := r.Header["User-Agent"]; !ok {
		b = appendHeader(b, "User-Agent", "Go-http-client/1.1")
	} else if len(agent) > 0 && agent[0] != "" {
		b = appendHeader(b, "User-Agent", agent[0])
	}
	b = append(strconv.AppendInt(append(b, "Content-Length: "...), r.ContentLength, 10), "\r\n"...)
	var room [maxHeaders]string
	names := room[:0]
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "User-Agent" {
			continue
		}
		for _, v := range r.Header[name] {
			b = appendHeader(b, name, v)
		}
	}
	b = append(b, "Accept-Encoding: gzip\r\n\r\n"...)
	head := len(b)
	b = slices.Grow(b, int(r.ContentLength))[:head+int(r.ContentLength)]
	if _, err := io.ReadFull(r.Body, b[head:]); err != nil {
		return b, fmt.Errorf("the body of the request: %w", err)
	}
	return b, nil
}

func appendHeader(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), ": "...), textproto.TrimString(value)...), "\r\n"...)
}
