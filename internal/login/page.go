package login

import (
	"encoding/json"
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

// loopbackRedirect stands for the redirects of commands, whose port differs (RFC 8252, 7.3).
const loopbackRedirect = "http://127.0.0.1" + LoopbackPath

// Document is the gateway's client metadata document (draft-ietf-oauth-client-id-metadata-document).
func Document(public string) []byte {
	raw, _ := json.Marshal(map[string]any{
		"client_id": public + DocumentPath, "client_name": "wasmgate", "client_uri": public,
		"redirect_uris": []string{loopbackRedirect, public + ConnectPath, public + SignInPath}, "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token", jwtBearer}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
	return raw
}
