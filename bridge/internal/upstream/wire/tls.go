package wire

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
)

// seeKey keeps the key of the certificate of the first connection, and refuses
// connections with another.
func (o *origin) seeKey(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server has shown no certificate")
	}
	sum := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
	key := hex.EncodeToString(sum[:])
	if o.key.CompareAndSwap(nil, &key) || *o.key.Load() == key {
		return nil
	}
	return errors.New("the key of the server's certificate has changed since the gateway connected")
}

// TLSKeyOf returns the key that a connection has seen; "" if none was asked for.
func TLSKeyOf(c Conn) string {
	var client *http.Client
	switch c := c.(type) {
	case *HTTPConn:
		client = c.client
	case *SDKConn:
		client = c.Client
	}
	if client == nil {
		return ""
	}
	if o, ok := client.Transport.(*origin); ok && o.key.Load() != nil {
		return *o.key.Load()
	}
	return ""
}
