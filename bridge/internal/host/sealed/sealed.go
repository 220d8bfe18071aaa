package sealed

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
	// Max bounds the state that a client brings back, in bytes: the longest hold
	// what a server has given, in base64, with what seals it.
	Max = gate.RoundState*4/3 + 256
	// minSeal is how long a secret for states must be, in bytes.
	minSeal = 32
	// The beginning of each state distinguishes its form: those of approvals, of parked calls, of
	// what a server has given the client to bring back, of calls whose caller was asked to log in,
	// and of sessions.
	approvalForm = "w1."
	Parked       = "p1."
	Round        = "r1."
	Connect      = "c1."
	Session      = "s1-" // an id of a session, in which a point ends the name of a group
)

// A Sealer seals states and opens them. A state opens for the same call alone, of the same
// principal in the same session, until its end. Use it from several goroutines.
type Sealer struct{ aead cipher.AEAD }

// New returns a sealer under a secret of at least 32 random bytes. Without one states end
// with the process.
func New(secret []byte) (Sealer, error) {
	if secret == nil {
		secret = make([]byte, minSeal)
		rand.Read(secret) // never fails
	}
	if len(secret) < minSeal {
		return Sealer{}, fmt.Errorf("a secret of %d bytes is too short to seal with; it needs %d", len(secret), minSeal)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "wasmgate requestState 1", 32)
	if err != nil {
		return Sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Sealer{aead}, err
}

// Seal returns the state of an approval for a call: visible ASCII.
func (s Sealer) Seal(c *gate.Call, approval string, expires time.Time) string {
	inside := append(binary.BigEndian.AppendUint64(nil, uint64(expires.UnixMilli())), approval...)
	return approvalForm + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, inside, boundTo(c)))
}

// Why a state is not opened.
var (
	ErrForeign = errors.New("the gateway did not give this requestState for this call")
	ErrExpired = errors.New("the requestState has expired; call again without it")
)

// Open returns the approval in a state. It gives the same error for a state that was altered and
// for one of another call, because neither can be read.
func (s Sealer) Open(c *gate.Call, state string) (approval string, err error) {
	if len(state) > Max || len(state) < len(approvalForm) || state[:len(approvalForm)] != approvalForm {
		return "", ErrForeign
	}
	inside, err := s.unseal(state[len(approvalForm):], boundTo(c))
	return string(inside), err
}

// unseal opens the part of a state that follows its form. If the state has expired, unseal returns
// its content together with the error that says so.
func (s Sealer) unseal(text string, bound []byte) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != text { // decoding passes over line ends
		return nil, ErrForeign
	}
	inside, err := s.aead.Open(nil, nil, sealed, bound)
	if err != nil || len(inside) < 8 {
		return nil, ErrForeign
	}
	if expires := time.UnixMilli(int64(binary.BigEndian.Uint64(inside))); !time.Now().Before(expires) {
		return inside[8:], ErrExpired
	}
	return inside[8:], nil
}

// SealAs returns the state of another form for a call, and OpenAs what is inside of it.
// One of one form does not open as another.
func (s Sealer) SealAs(form string, c *gate.Call, inside []byte, expires time.Time) string {
	inside = append(binary.BigEndian.AppendUint64(nil, uint64(expires.UnixMilli())), inside...)
	return form + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, inside, append([]byte(form), boundTo(c)...)))
}

func (s Sealer) OpenAs(form string, c *gate.Call, state string) ([]byte, error) {
	text, ok := strings.CutPrefix(state, form)
	if !ok || len(state) > Max {
		return nil, ErrForeign
	}
	return s.unseal(text, append([]byte(form), boundTo(c)...))
}

// boundTo is what a call must be again for its state to open.
func boundTo(c *gate.Call) []byte {
	return mcp.MustJSON([]string{string(c.Action), c.Who.Tenant, c.Who.ID, c.Session.ID, gate.GroupsText(c.Groups), c.Name, c.Args.Digest()})
}
