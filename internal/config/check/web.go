package check

import (
	"errors"
	"net"
	"net/textproto"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/web/loopback"
)

// URL accepts what requests can be sent to, without credentials.
func URL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("does not begin with https:// or http://")
	case u.Hostname() == "":
		return errors.New("names no host")
	case u.User != nil:
		return errors.New("holds a user or password: put it into headers")
	case u.Fragment != "":
		return errors.New("holds a fragment, which is not sent")
	}
	return nil
}

// HTTPS accepts a URL with TLS.
func HTTPS(s string) error {
	if !strings.HasPrefix(s, "https:") {
		return errors.New("does not begin with https://")
	}
	return nil
}

// Endpoint accepts the URL of an issuer, or of its keys.
func Endpoint(s string) error {
	if err := URL(s); err != nil {
		return err
	}
	u, _ := url.Parse(s)
	switch {
	case u.RawQuery != "":
		return errors.New("holds a query")
	case u.Scheme == "http" && !loopback.Host(u.Hostname()):
		return errors.New("must be https: otherwise other machines on the network could sign in as anyone")
	}
	return nil
}

// PublicURL accepts the URL by which clients reach the gateway.
func PublicURL(s string) error {
	if err := Endpoint(s); err != nil {
		return err
	}
	u, _ := url.Parse(s)
	switch {
	case u.Path != "" && u.Path != "/":
		return errors.New("holds a path: the gateway serves /mcp itself")
	case strings.ToLower(s) != s:
		return errors.New("has capital letters: clients compare it byte by byte")
	}
	return nil
}

// Insecure reports whether what goes to the URL can be read on the way.
func Insecure(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "http" && u.Hostname() != "" && !loopback.Host(u.Hostname())
}

// HostPort accepts an address to listen on, wherever it is reached from.
func HostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port, such as 127.0.0.1:9464")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no port from 0 to 65535")
	}
	return nil
}

var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // token of RFC 9110, 5.6.2

// HeaderName accepts the name of any header.
var HeaderName = Matches(headerPattern, "the name of a header")

// transportHeaders are set by HTTP and by MCP's transport themselves.
var transportHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Mcp-Method", "Mcp-Name",
	"Mcp-Protocol-Version", "Mcp-Session-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Header accepts the name of a header that a request can be given.
func Header(s string) error {
	if !headerPattern.MatchString(s) {
		return errors.New("is not a name of a header")
	}
	if slices.Contains(transportHeaders, textproto.CanonicalMIMEHeaderKey(s)) {
		return errors.New("is set by the transport")
	}
	return nil
}

// BundleHeader also leaves the conditions of the request to the gateway.
func BundleHeader(s string) error {
	if strings.HasPrefix(textproto.CanonicalMIMEHeaderKey(s), "If-") {
		return errors.New("is set by the gateway")
	}
	return Header(s)
}

// HeaderValue accepts what a header can hold.
func HeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("the value holds a line break or another control character")
	}
	return nil
}

var originPattern = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:([1-9][0-9]{0,4}))?$`)

// Origin accepts only the one way in which an origin is written: origins are compared as they are.
func Origin(s string) error {
	m := originPattern.FindStringSubmatch(s)
	if m == nil {
		return errors.New("is not an origin in lower case without a path, such as https://api.example.com")
	}
	port := m[3]
	if n, _ := strconv.Atoi(port); n > 65535 {
		return errors.New("has no port from 1 to 65535")
	}
	if strings.HasPrefix(s, "https:") && port == "443" || strings.HasPrefix(s, "http:") && port == "80" {
		return errors.New("has the scheme's own port: remove the port")
	}
	return nil
}

// Prefix accepts the beginning of a path, if it can only mean it in one way.
func Prefix(s string) error {
	clean := path.Clean(s)
	if s[0] != '/' || strings.ContainsAny(s, `?#%\*`) || s != clean && s != clean+"/" {
		return errors.New("is not the beginning of a path, such as /v1/, without .., ?, #, % and *")
	}
	return nil
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Method accepts the methods of RFC 9110 and RFC 5789 that make sense through a gateway.
var Method = Among(methods)
