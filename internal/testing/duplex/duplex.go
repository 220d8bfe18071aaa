// Package duplex keeps the reverse proxies of tests from breaking off answers.
//
// A server of net/http closes a request's body when an answer begins that does not fit into its buffer. The
// transport of a [httputil.ReverseProxy] may look for the end of that body only then, does not find it, and
// closes the connection on which the answer comes.
package duplex

import (
	"net/http"
	"net/http/httputil"
)

// Handler is a proxy that leaves a request's body open until the answer has ended.
func Handler(p *httputil.ReverseProxy) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 needs none
		p.ServeHTTP(w, r)
	})
}
