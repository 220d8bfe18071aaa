package wire

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// redacted replaces the credential of the request if the server has repeated it in an answer.
const redacted = "[redacted: credential]"

// leastSecret is the length from which on a credential is looked for: shorter ones would be
// found in words that mean something else.
const leastSecret = 12

// secretHeader matches the names of headers that hold credentials.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// credentials returns those among configured headers.
func credentials(headers http.Header) (values []string) {
	for name := range headers {
		if secretHeader.MatchString(name) {
			values = append(values, headers[name]...)
		}
	}
	return values
}

// withoutEcho takes the credential of a request out of its answer, not including the scheme that
// may precede it: a server that repeats what it was sent would give the credential to the caller.
// If the server encodes it in another way, it is not found.
func withoutEcho(resp *http.Response, value string) {
	secret := value[strings.IndexByte(value, ' ')+1:]
	if len(secret) < leastSecret {
		return
	}
	resp.Body = &echoless{ReadCloser: resp.Body, secret: []byte(secret)}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// echoless reads a body without a secret. It holds back no more than what may be the beginning
// of one, so that events are not late.
type echoless struct {
	io.ReadCloser
	secret []byte
	ready  []byte // to be read
	held   []byte // may be a beginning of the secret
	err    error
}

// Read implements [io.Reader].
func (e *echoless) Read(p []byte) (int, error) {
	for len(e.ready) == 0 && e.err == nil && len(p) > 0 {
		n, err := e.ReadCloser.Read(p)
		text := append(e.held, p[:n]...)
		e.err = err
		e.ready = bytes.ReplaceAll(text, e.secret, []byte(redacted))
		keep := 0
		if err == nil {
			keep = overlap(e.ready, e.secret)
		}
		e.ready, e.held = e.ready[:len(e.ready)-keep], bytes.Clone(e.ready[len(e.ready)-keep:])
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	if len(e.ready) > 0 {
		return n, nil
	}
	return n, e.err
}

// overlap is the length of the longest end of a text that a secret begins with.
func overlap(text, secret []byte) int {
	for n := min(len(text), len(secret)-1); n > 0; n-- {
		if bytes.Equal(text[len(text)-n:], secret[:n]) {
			return n
		}
	}
	return 0
}
