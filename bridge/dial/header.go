package dial

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	// maxFields and maxHeaderBytes bound the header of a request; servers accept
	// 100 fields and 8 to 32 KiB.
	maxFields      = 100
	maxHeaderBytes = 16 << 10
	// maxPlaceholders bounds what a header may grow to when secrets are filled in.
	maxPlaceholders = 16
	// maxResponseHeader bounds the header of an answer, in bytes.
	maxResponseHeader = 64 << 10
)

// ours are the fields that a tool may not set: those that frame the message or belong to the
// connection (RFC 9110, 7.6.1; RFC 9112, 6), those that ask for a body which we could not read, and
// those that give some servers a method or path different from the one that was judged. Names with
// Proxy- count too.
var ours = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Te": true,
	"Connection": true, "Keep-Alive": true, "Upgrade": true, "Http2-Settings": true, "Expect": true,
	"Accept-Encoding":        true,
	"X-Http-Method-Override": true, "X-Http-Method": true, "X-Method-Override": true,
	"X-Original-Url": true, "X-Rewrite-Url": true,
}

// portable are the fields that follow a redirect to another origin. All others stay behind: any of
// them may be a credential.
var portable = []string{"Accept", "Accept-Language", "User-Agent", "Content-Type", "Content-Language", "Content-Encoding"}

// newHeader returns fields as a header, placeholders of secrets still in place.
func newHeader(fields map[string][]string) (http.Header, error) {
	header := http.Header{}
	count, size, placeholders := 0, 0, 0
	for name, values := range fields {
		if err := checkName(name); err != nil {
			return nil, err
		}
		for _, v := range values {
			if err := checkValue(v); err != nil {
				return nil, fmt.Errorf("header %s: %w", name, err)
			}
			header.Add(name, strings.Trim(v, " \t"))
			count, size = count+1, size+len(name)+len(v)
			placeholders += strings.Count(v, placeholderStart)
		}
	}
	switch {
	case count > maxFields || size > maxHeaderBytes:
		return nil, fmt.Errorf("its header has more than %d fields or %d bytes", maxFields, maxHeaderBytes)
	case placeholders > maxPlaceholders:
		return nil, fmt.Errorf("its header has more than %d placeholders of secrets", maxPlaceholders)
	case placeholders > 0 && header.Get("Range") != "":
		// An origin that echoes the secret would return it in pieces.
		return nil, errors.New("header Range: not allowed in a request with a secret")
	}
	return header, nil
}

// checkName refuses what is not a token (RFC 9110, 5.6.2) and what is ours. Some
// servers take an underscore for a hyphen.
func checkName(name string) error {
	const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if name == "" || strings.Trim(name, token) != "" {
		return fmt.Errorf("header %q: not a name", short(name))
	}
	meant := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	if ours[meant] || strings.HasPrefix(meant, "Proxy-") {
		return fmt.Errorf("header %s: the gateway sets it, a tool cannot", name)
	}
	return nil
}

// checkValue refuses control characters (RFC 9110, 5.5): they end a field and
// begin the next one.
func checkValue(v string) error {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("its value holds the control character %#02x", c)
		}
	}
	return nil
}

// abroad returns the fields of a header that go to another origin.
func abroad(header http.Header) http.Header {
	kept := http.Header{}
	for _, name := range portable {
		for _, v := range header[name] {
			if !strings.Contains(v, placeholderStart) {
				kept.Add(name, v)
			}
		}
	}
	return kept
}

// bodiless removes the fields that describe a body which is not sent any more.
func bodiless(header http.Header) http.Header {
	kept := header.Clone()
	for name := range kept {
		if strings.HasPrefix(name, "Content-") {
			kept.Del(name)
		}
	}
	return kept
}
