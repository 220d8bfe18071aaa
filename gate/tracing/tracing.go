// Package tracing reads and writes the places of calls in traces over several programs (W3C Trace
// Context).
package tracing

import (
	"crypto/rand"
	"encoding/hex"
)

// A Context is the place of a call in a trace. The zero Context is in none.
type Context struct {
	// Header is the traceparent of the HTTP request that brought the call, "" without one.
	Header string
	ID     [16]byte // of the trace
	Parent [8]byte  // the span of the caller; zero if the trace begins here
	// Server and Client are the gateway's own spans: of the call as it came, and as it was
	// sent on. They are there if Sampled is.
	Server, Client [8]byte
	Sampled        bool // the spans are to be exported
}

// Mint gives the gateway's own spans new IDs.
func Mint(t *Context) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	copy(t.Server[:], b[:8])
	copy(t.Client[:], b[8:])
}

// traceparentLen is the length of a traceparent of version 00, the only one there is.
const traceparentLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// Parse reads a traceparent (W3C Trace Context, section 3.2). False says that it
// is none: then it counts as absent.
func Parse[T string | []byte](s T) (t Context, ok bool) {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Context{}, false
	}
	version := string(s[:2])
	if version == "ff" || version == "00" && len(s) != traceparentLen || len(s) > traceparentLen && s[traceparentLen] != '-' {
		return Context{}, false
	}
	var v, flags [1]byte
	ok = lowerHex(v[:], s[:2]) && lowerHex(t.ID[:], s[3:35]) && lowerHex(t.Parent[:], s[36:52]) && lowerHex(flags[:], s[53:55]) &&
		t.ID != [16]byte{} && t.Parent != [8]byte{}
	if !ok {
		return Context{}, false
	}
	t.Sampled = flags[0]&1 != 0
	return t, true
}

func lowerHex[T string | []byte](to []byte, s T) bool {
	for i := range to {
		high, low := hexDigit(s[2*i]), hexDigit(s[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// Parent is the traceparent for a call's server: the gateway's own span is its parent.
func Parent(t Context) string {
	flags := "-00"
	if t.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(t.ID[:]) + "-" + hex.EncodeToString(t.Client[:]) + flags
}
