package dispatch

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/sealed"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// sessionTime is how long after its beginning a session can be taken up by a gateway that was
	// started again.
	sessionTime = 24 * time.Hour
	// maxInitialize bounds what an id of a session holds of its client, in bytes: ids travel in headers.
	maxInitialize = 1 << 10
)

// sessionIDs seals ids of sessions, and opens those of gateways before this one.
type sessionIDs struct {
	states  sealed.Sealer
	started time.Time
	mark    string // tells the dispatcher from those before it
}

// SessionID returns the id of a session of a principal, sealed, with what its client has declared:
// a gateway that is started again takes the session up by it, since there are clients that never
// open another. A client that declares too much for that gets an id that holds nothing.
func (s sessionIDs) SessionID(who *gate.Principal, params gate.Doc) string {
	declared := gate.MustDoc(fmt.Sprintf(`{"began":%d,"by":%q}`, time.Now().UnixMilli(), s.mark))
	for _, name := range []string{"protocolVersion", "clientInfo", "capabilities"} {
		if v := params.Get(name); !v.IsZero() {
			declared = declared.With(name, v.Raw())
		}
	}
	if len(declared.Raw()) > maxInitialize {
		return rand.Text()
	}
	return s.states.SealAs(sealed.Session, ofSession(who), declared.Raw(), time.Now().Add(sessionTime))
}

// TakeUp returns what the client of a session has declared to a gateway that has ended since, for
// the same principal; false if the id is not of such a session.
func (s sessionIDs) TakeUp(who *gate.Principal, id string) (params gate.Doc, ok bool) {
	inside, err := s.states.OpenAs(sealed.Session, ofSession(who), id)
	if err != nil {
		return gate.Doc{}, false
	}
	params, err = gate.ParseDoc(inside)
	if err != nil {
		return gate.Doc{}, false
	}
	began, err := strconv.ParseInt(params.Get("began").String(), 10, 64)
	return params, err == nil && began <= s.started.UnixMilli() && params.Get("by").Text() != s.mark
}

// ofSession is what the id of a session is bound to.
func ofSession(who *gate.Principal) *gate.Call { return &gate.Call{Who: who, Args: noArguments} }
