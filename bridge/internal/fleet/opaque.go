package fleet

import (
	"encoding/base64"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/bridge/internal/listing"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
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

// yield offers what an earlier server has the URI, or the template, of by an opaque one.
func (f *features) yield(m member, t *gate.Tool, owner string, notes map[string][]status.Note) *gate.Tool {
	var its *gate.Tool
	if t.Feature == gate.FeatureResource {
		its = f.opaquely(t)
	} else {
		one := *t
		one.Offered = listing.OpaqueScheme + "//" + t.Name.Server + opaqueTemplate + t.Local
		one.Definition = t.Definition.With("uriTemplate", mcp.MustJSON(one.Offered))
		its = &one
	}
	conflict, note := newConflict(t, owner, t.Local, its.Offered)
	f.conflicts, notes[m.id] = append(f.conflicts, conflict), append(notes[m.id], note)
	return its
}

func (f *features) opaquely(t *gate.Tool) *gate.Tool {
	its := *t
	its.Offered = opaqueURI(t.Name.Server, t.Local)
	its.Definition = t.Definition.With("uri", mcp.MustJSON(its.Offered))
	of := f.opaque[t.Name.Server]
	if of == nil {
		of = make(map[string]string)
		f.opaque[t.Name.Server] = of
	}
	of[t.Local] = its.Offered
	return &its
}

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
