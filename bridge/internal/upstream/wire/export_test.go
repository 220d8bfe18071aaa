package wire

import (
	"crypto/x509"
	"io"
	"net/http"
)

// What tests and fuzz targets reach of the parsers of foreign bytes.

// ReadEvents is readEvents of a stream that is not taken up again.
func ReadEvents(r io.Reader, max int64, f func([]byte) (bool, error)) error {
	return readEvents(r, max, new(place), f)
}

// ParseMessage is parseMessage.
var ParseMessage = parseMessage

// NewPinnedClient returns the HTTP client of a server that trusts roots, and what tells
// which key it has seen.
func NewPinnedClient(url string, roots *x509.CertPool) (client *http.Client, key func() string, err error) {
	if client, err = NewHTTPClient(Remote{URL: url, PinTLS: true}); err != nil {
		return nil, nil, err
	}
	client.Transport.(*origin).TLSClientConfig.RootCAs = roots
	return client, func() string { return TLSKeyOf(&HTTPConn{client: client}) }, nil
}
