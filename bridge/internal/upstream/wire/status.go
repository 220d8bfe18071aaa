package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// maxStatusBody bounds what is kept of a refusal's body, in bytes.
const maxStatusBody = 200

// StatusError is an answer of a server that is no success.
type StatusError struct {
	Status int
	body   string // its start
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
	if e.body != "" {
		s += ": " + mcp.Quote([]byte(e.body))
	}
	return s
}

// BeforeStreams reports whether the answer to the first POST may be that of a server of the
// time before streamable HTTP (MCP 2025-11-25, basic/transports, "Backwards Compatibility").
func BeforeStreams(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, s.Status)
}

func statusOf(resp *http.Response) error { return &StatusError{resp.StatusCode, startOf(resp)} }

// startOf returns the start of a body.
func startOf(resp *http.Response) string {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatusBody))
	return strings.TrimSpace(string(b))
}
