package wire

import "net/http"

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
