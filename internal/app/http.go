package app

import (
	"net/http"
	"slices"

	"github.com/wasmgate/wasmgate/internal/app/callers"
	"github.com/wasmgate/wasmgate/internal/app/translation"
	"github.com/wasmgate/wasmgate/internal/login/connect"
	"github.com/wasmgate/wasmgate/internal/web"
	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// handler serves MCP and what clients have to know beforehand.
func (a *App) handler() http.Handler {
	pages := http.NewServeMux()
	for _, path := range []string{callers.WellKnown, callers.WellKnown + "/mcp", callers.WellKnown + "/mcp/{" + callers.GroupParam + "}"} {
		pages.HandleFunc("GET "+path, a.Callers.ServeMetadata)
	}
	a.Logins.Kept.Handle(pages)
	pages.HandleFunc("/connect/", func(w http.ResponseWriter, r *http.Request) {
		if !a.Callers.ThroughProxy(r) {
			http.Error(w, "this address serves the proxy that speaks TLS", http.StatusForbidden)
			return
		}
		if !a.shared.peers.Page(w, r, connect.Node(r)) {
			a.Logins.Connect.ServeHTTP(w, r)
		}
	})
	bounded, calls := web.Bounded(a.bodyTime, pages), a.Callers.Ending(a.gateway) // which bounds bodies itself
	// All that is no page has a pattern, too: a mux that finds none looks for other methods of the path.
	const noPage = "/"
	pages.Handle(noPage, calls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, page := pages.Handler(r); page != noPage {
			if !loopback.Host(r.Host) && !slices.Contains(translation.Hosts(a.Settings.Config()), r.Host) {
				http.Error(w, "this Host is not allowed; add it to http.hosts in the configuration if it is meant", http.StatusForbidden)
				return
			}
			bounded.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
}
