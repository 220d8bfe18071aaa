package host

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

const (
	// maxState bounds the state that a client brings back, in bytes: the longest hold
	// what a server has given, in base64, with what seals it.
	maxState = gate.MaxRoundState*4/3 + 256
	// minSeal is how long a secret for states must be, in bytes.
	minSeal = 32
	// What begins each state tells one form of it from the next: those of approvals, of
	// parked calls, and of what a server has given the client to bring back.
	stateForm  = "w1."
	parkedForm = "p1."
	roundForm  = "r1."
)

// states seals what clients without a session keep for the host between an
// answer that asks for more and the call that brings it: the id of an approval
// and its end. A state opens for the same call alone, of the same principal in
// the same session; who holds it can neither read nor change it.
type states struct{ aead cipher.AEAD }

// newStates returns states under a secret. Without one they end with the
// process.
func newStates(secret []byte) (states, error) {
	if secret == nil {
		secret = make([]byte, minSeal)
		rand.Read(secret) // never fails
	}
	if len(secret) < minSeal {
		return states{}, fmt.Errorf("a secret of %d bytes is too short to seal with; it needs %d", len(secret), minSeal)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "wasmgate requestState 1", 32)
	if err != nil {
		return states{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return states{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return states{aead}, err
}

// seal returns the state of an approval for a call: visible ASCII.
func (s states) seal(c *gate.Call, approval string, expires time.Time) string {
	inside := append(binary.BigEndian.AppendUint64(nil, uint64(expires.UnixMilli())), approval...)
	return stateForm + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, inside, boundTo(c)))
}

var (
	errState        = errors.New("the requestState is none that this gateway gave for this call")
	errStateExpired = errors.New("the requestState has expired; call again without it")
)

// open returns the approval that a state is of. What was altered and what is
// another call's are one: nothing in them can be read.
func (s states) open(c *gate.Call, state string) (approval string, err error) {
	if len(state) > maxState || len(state) < len(stateForm) || state[:len(stateForm)] != stateForm {
		return "", errState
	}
	inside, err := s.unseal(state[len(stateForm):], boundTo(c))
	return string(inside), err
}

// unseal opens what stands in a state behind its form. What has expired is returned with
// the error that says so.
func (s states) unseal(text string, bound []byte) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != text { // decoding passes over line ends
		return nil, errState
	}
	inside, err := s.aead.Open(nil, nil, sealed, bound)
	if err != nil || len(inside) < 8 {
		return nil, errState
	}
	if expires := time.UnixMilli(int64(binary.BigEndian.Uint64(inside))); !time.Now().Before(expires) {
		return inside[8:], errStateExpired
	}
	return inside[8:], nil
}

// sealAs returns the state of another form for a call, and openAs what is inside of it.
// One of one form does not open as another.
func (s states) sealAs(form string, c *gate.Call, inside []byte, expires time.Time) string {
	inside = append(binary.BigEndian.AppendUint64(nil, uint64(expires.UnixMilli())), inside...)
	return form + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, inside, append([]byte(form), boundTo(c)...)))
}

func (s states) openAs(form string, c *gate.Call, state string) ([]byte, error) {
	text, ok := strings.CutPrefix(state, form)
	if !ok || len(state) > maxState {
		return nil, errState
	}
	return s.unseal(text, append([]byte(form), boundTo(c)...))
}

// boundTo is what a call must be again for its state to open.
func boundTo(c *gate.Call) []byte {
	return mcp.MustJSON([]string{string(c.Action), c.Who.Tenant, c.Who.ID, c.Session.ID, c.Groups.String(), c.Name, c.Args.Digest()})
}
