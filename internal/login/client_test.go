package login

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
)

// The gateway is at an authorization server, in this order: the client of the configuration, the client
// of its own document, or a client that it registers. The document is used if the server takes such
// documents, and can reach the gateway.
func TestWhoTheClientIs(t *testing.T) {
	const public = "https://gw.example.com"
	documents := func(m map[string]any) { m["client_id_metadata_document_supported"] = true }
	both := func(m map[string]any) { documents(m); delete(m, "registration_endpoint") }
	none := func(m map[string]any) { delete(m, "registration_endpoint") }
	for name, tt := range map[string]struct {
		configured, public string
		change             func(map[string]any)
		want               string // "registered", or the id; "": an error
	}{
		"by the configuration":           {"by-hand", public, documents, "by-hand"},
		"by its document":                {"", public, documents, public + DocumentPath},
		"which is all there is":          {"", public, both, public + DocumentPath},
		"that nobody reaches over https": {"", "http://127.0.0.1:7420", documents, "registered"},
		"that nobody reaches":            {"", "", documents, "registered"},
		"that they do not take":          {"", public, nil, "registered"},
		"by none":                        {"", "", both, ""},
		"by none that they take":         {"", public, none, ""},
	} {
		as := authtest.NewOAuth(t)
		as.Change = tt.change
		r := newRig(t, as, "", func(s *Server) { s.ClientID = tt.configured })
		r.restart(t, tt.public)
		begun, err := r.Begin(t.Context(), Start{Server: "jira", Owner: alice, Redirect: redirect})
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "servers.jira.auth.client_id") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at, err := url.Parse(begun.URL)
		if err != nil {
			t.Fatal(err)
		}
		id := at.Query().Get("client_id")
		if own := id == tt.configured || strings.HasPrefix(id, "http"); own == (tt.want == "registered") || own && id != tt.want {
			t.Errorf("%s: the client is %q, want %q", name, id, tt.want)
		}
	}
}

// The document is what an authorization server looks for at its very address, and only there where that is https.
func TestClientDocument(t *testing.T) {
	r := newRig(t, authtest.NewOAuth(t), "", nil)
	for public, want := range map[string]int{"https://gw.example.com": 200, "http://gw.example.com": 404, "": 404} {
		r.restart(t, public)
		mux := http.NewServeMux()
		r.Handle(mux)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, DocumentPath, nil))
		if w.Code != want {
			t.Errorf("%s: %d", public, w.Code)
		}
		if want != 200 {
			continue
		}
		var said struct {
			ID        string   `json:"client_id"`
			Name      string   `json:"client_name"`
			Redirects []string `json:"redirect_uris"`
			Method    string   `json:"token_endpoint_auth_method"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.ID != public+DocumentPath || said.Name == "" || said.Method != "none" ||
			!slices.Contains(said.Redirects, public+ConnectPath) || !slices.Contains(said.Redirects, public+SignInPath) {
			t.Errorf("%s, %v", w.Body, err)
		}
		for _, to := range said.Redirects {
			if !strings.HasPrefix(to, public+"/") && !strings.HasPrefix(to, "http://127.0.0.1") {
				t.Errorf("it leads to %s", to)
			}
		}
	}
}
