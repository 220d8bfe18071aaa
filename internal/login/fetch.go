package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// maxDocument bounds what is read of an answer, in bytes.
const maxDocument = 256 << 10

// get reads a JSON document.
func (s *Server) get(ctx context.Context, at string, to any) error {
	if err := checkEndpoint(at); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	return s.read(r, to)
}

// read does a request and reads its JSON answer. What the other side says goes into no error.
func (s *Server) read(r *http.Request, to any) error {
	where := r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
	resp, err := s.Client.Do(r)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return plain(err)
	case len(raw) > maxDocument:
		return fmt.Errorf("%s: more than %d bytes", where, maxDocument)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		var said struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(raw, &said)
		return &statusError{where, resp.StatusCode, word(said.Error)}
	case to == nil:
		return nil
	case json.NewDecoder(bytes.NewReader(raw)).Decode(to) != nil:
		return fmt.Errorf("%s: the answer is not the expected JSON", where)
	}
	return nil
}

// checkEndpoint takes https, and http on the machine itself.
func checkEndpoint(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%q is not a URL of a host", raw)
	case u.Scheme == "https" || u.Scheme == "http" && loopback.Address(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is not https", raw)
}

// A statusError is an answer that is none.
type statusError struct {
	url    string
	status int
	code   string // OAuth's error (RFC 6749, 5.2), if it gave one
}

func (e *statusError) Error() string {
	if e.code == "invalid_client" {
		return fmt.Sprintf("%s answers %d, %s: it knows no such client, or not by this secret or key", e.url, e.status, e.code)
	}
	if e.code != "" {
		return fmt.Sprintf("%s answers %d, %s", e.url, e.status, e.code)
	}
	return fmt.Sprintf("%s answers %d", e.url, e.status)
}

func missing(err error) bool {
	s, ok := errors.AsType[*statusError](err)
	return ok && s.status >= 400 && s.status < 500
}

// word returns an error code of OAuth, or "" for anything else.
func word(s string) string {
	if len(s) > 40 || strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return s
}

// plain takes the URL out of an error of HTTP: its query may hold what is secret.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
