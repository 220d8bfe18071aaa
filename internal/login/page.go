package login

import (
	"net/http"
	"strings"
)

// Handle serves what authorization servers come for.
func (l *Logins) Handle(mux *http.ServeMux) {
	if strings.HasPrefix(l.o.Public, "https://") {
		mux.HandleFunc("GET "+DocumentPath, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(Document(l.o.Public))
		})
	}
}
