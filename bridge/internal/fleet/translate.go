package fleet

import (
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// known returns the URI under which clients know a resource, given the server's own URI. Clients
// that show pages know pages by other URIs.
func (f *features) known(server, own string, renders bool) string {
	if uri, ok := f.opaque[server][own]; ok {
		return uri
	}
	if uri, ok := f.paged[server][own]; ok && renders {
		return uri
	}
	yielded := f.yielded[server]
	if len(yielded) == 0 || listing.CheckURI(own) != nil || best(yielded, own) == nil {
		return own
	}
	if t := f.owner(own); t != nil && t.Name.Server == server {
		return own
	}
	return listing.OpaqueScheme + "//" + server + opaqueTemplate + own
}

// translated returns what a server says to clients with the URIs of resources as they know
// them. The structured content of tools is theirs alone.
func (f *features) translated(server string, said gate.Doc, renders bool) (gate.Doc, error) {
	if len(f.opaque[server]) == 0 && len(f.yielded[server]) == 0 && (!renders || len(f.paged[server]) == 0) {
		return said, nil
	}
	return doc.MapStrings(said, func(at doc.Leaf, s string) string {
		if at.Key {
			return s
		}
		if p := at.Pointer(); !strings.HasSuffix(p, "/uri") || strings.HasPrefix(p, "/structuredContent/") {
			return s
		}
		return f.known(server, s, renders)
	})
}
