package session_test

import (
	"context"
	"fmt"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// Two calls are decided at once, in a session that has read nothing. The first
// reads what somebody outside wrote; the second is to be decided again.
func ExampleSessions() {
	ctx := context.Background()
	s := session.New(session.Options{})
	k := gate.SessionKey{Owner: gate.Local().Owner, ID: "s1"}
	first, _ := s.View(ctx, k)
	second, _ := s.View(ctx, k)

	_, err := s.Admit(ctx, first, &gate.Call{ID: "read"}, gate.NewLabels(provenance.Untrusted))
	fmt.Println("first:", err)
	now, err := s.Admit(ctx, second, &gate.Call{ID: "send"}, nil)
	fmt.Println("second:", err, now.Labels)
	// Output:
	// first: <nil>
	// second: the session has changed [untrusted]
}
