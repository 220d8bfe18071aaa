package app_test

import (
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/wasmgate/wasmgate/internal/app"
)

// TestTakeoverAtTheEndpoint: a session is its principal's at a running gateway, however
// somebody else is verified; with each verb they are told what is told of a session that is
// not there.
func TestTakeoverAtTheEndpoint(t *testing.T) {
	s, p := newTeam(t)
	alice := s.token(p, nil)
	session := s.session(alice)
	key, err := s.CreateKey(t.Context(), app.KeyRequest{Name: "k", As: "builder"})
	if err != nil {
		t.Fatal(err)
	}
	for name, credential := range map[string]string{
		"Bob's token":                 s.token(p, map[string]any{"sub": "bob"}),
		"an API key":                  "Bearer " + key.Secret,
		"a token of ALICE":            s.token(p, map[string]any{"sub": "ALICE"}),
		"no token of a name near by":  s.token(p, map[string]any{"sub": "alice\u200d"}),
		"a token of the same client":  s.token(p, map[string]any{"sub": "carol", "client_id": "agent", "jti": "t1"}),
		"a token of a mapped id only": s.token(p, map[string]any{"sub": "role:dev"}),
	} {
		unknown := ways(rand.Text())
		for i, w := range ways(session) {
			if i < 3 { // without a session
				continue
			}
			got, want := s.status(w, credential), s.status(unknown[i], credential)
			if got != want || got != http.StatusNotFound {
				t.Errorf("%s, %s: %d; of an unknown session %d", name, w.name, got, want)
			}
		}
	}
	if status := s.status(ways(session)[3], alice); status != 200 {
		t.Errorf("Alice's session, after all of them: %d", status)
	}
	if again := s.token(p, map[string]any{"jti": "t2"}); s.status(ways(session)[3], again) != 200 {
		t.Error("her next token is not let into her session")
	}
	if n := s.calls(); n != 2 {
		t.Errorf("%d calls were granted", n)
	}
}
