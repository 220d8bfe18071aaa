package fleet

import (
	"encoding/base64"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
)

// opaqueURI is the URI under which clients know a resource whose own URI an earlier
// server has: wasmgate://SERVER/ and its own in base64url (RFC 4648, section 5).
func opaqueURI(server, uri string) string {
	return listing.OpaqueScheme + "//" + server + "/" + base64.RawURLEncoding.EncodeToString([]byte(uri))
}

// opaqueTemplate replaces the encoded URI for templates: SERVER/template/ is followed by the
// template as its server has it, so that a URI that is expanded from it (RFC 6570) begins with the
// same letters.
const opaqueTemplate = "/template/"

// plainURI returns the server's own URI of a resource, given the URI that clients know.
func plainURI(uri string) string {
	if _, own := templated(uri); own != "" {
		return own
	}
	path, made := strings.CutPrefix(uri, listing.OpaqueScheme+"//")
	if !made {
		return uri
	}
	_, encoded, _ := strings.Cut(path, "/")
	own, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return uri
	}
	return string(own)
}

// templated returns the server and the server's own URI, given a URI that was expanded from a
// template that the gateway offers in place of the server's own. Both are "" for any other URI.
func templated(uri string) (server, own string) {
	path, made := strings.CutPrefix(uri, listing.OpaqueScheme+"//")
	server, own, found := strings.Cut(path, opaqueTemplate)
	if !made || !found || strings.Contains(server, "/") {
		return "", ""
	}
	return server, own
}
