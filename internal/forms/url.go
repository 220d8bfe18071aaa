package forms

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode"
)

// Visitable reads a URL that a person can be sent to. Its host is in the letters of
// ASCII, as it is looked up: in others it can look like any other host.
func Visitable(s string) (*url.URL, bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, false
	}
	if strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, false
	}
	return u, true
}

// loopback reports whether a URL stays on the machine of who visits it.
func loopback(u *url.URL) bool {
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}
