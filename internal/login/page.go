package login

import (
	"net/http"
	"strings"
)

// Handle serves what authorization servers come for.
func (l *Logins) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET "+DocumentPath, func(w http.ResponseWriter, r *http.Request) {
		public := l.o.Public()
		if !strings.HasPrefix(public, "https://") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(Document(public))
	})
}
