package bridge

import (
	"crypto/x509"
	"net/http"
)

// NewPinnedClient returns the HTTP client of an endpoint that trusts roots, and
// what tells which key it has seen.
func NewPinnedClient(cfg EndpointConfig, roots *x509.CertPool) (client *http.Client, key func() string, err error) {
	if client, err = newHTTPClient(cfg.remote()); err != nil {
		return nil, nil, err
	}
	client.Transport.(*origin).TLSClientConfig.RootCAs = roots
	return client, func() string { return tlsKeyOf(&httpConn{client: client}) }, nil
}
