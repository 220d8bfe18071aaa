package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
)

// share lets pages of the origins that the configuration names read answers (Fetch, "CORS
// protocol"): not those of this machine, which are only let in, and never with cookies. It
// reports whether it has answered the request, which asked for just that.
func (f *Front) share(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(f.terms.Load().Origins, origin) {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", mcp.HeaderSession+", WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Max-Age", "600")
	var allowed []string
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); slices.Contains(sharedHeaders, name) || strings.HasPrefix(name, "mcp-") {
			allowed = append(allowed, name)
		}
	}
	h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// sharedHeaders are those that a page may send in addition to MCP's own.
var sharedHeaders = []string{"accept", "authorization", "content-type", "last-event-id", "traceparent"}
