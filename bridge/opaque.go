package bridge

import (
	"encoding/base64"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// opaqueScheme begins the URIs that the gateway makes. No server's URI does.
const opaqueScheme = "wasmgate:"

// opaqueURI is the URI under which clients know a resource whose own URI an earlier
// server has: wasmgate://SERVER/ and its own in base64url (RFC 4648, section 5).
func opaqueURI(server, uri string) string {
	return opaqueScheme + "//" + server + "/" + base64.RawURLEncoding.EncodeToString([]byte(uri))
}

// plainURI returns the URI that a server knows a resource by whose URI clients know.
func plainURI(uri string) string {
	path, made := strings.CutPrefix(uri, opaqueScheme+"//")
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

// uriAt returns the URI of a call's resource as its server knows it.
func uriAt(c *gate.Call, t *gate.Tool) string {
	if t.Feature == gate.FeatureResource {
		return t.Local
	}
	return c.Name
}

// yield offers what an earlier server has the URI of: a resource by an opaque one. Of a
// template nobody could make URIs then: nil.
func (f *features) yield(m member, t *gate.Tool, owner string, notes map[string][]Note) *gate.Tool {
	var its *gate.Tool
	offered := ""
	if t.Feature == gate.FeatureResource {
		its = f.opaquely(t)
		offered = its.Offered
	}
	conflict, note := newConflict(t, owner, t.Local, offered)
	f.conflicts, notes[m.id] = append(f.conflicts, conflict), append(notes[m.id], note)
	return its
}

func (f *features) opaquely(t *gate.Tool) *gate.Tool {
	its := *t
	its.Offered = opaqueURI(t.Name.Server, t.Local)
	its.Definition = t.Definition.With("uri", mustJSON(its.Offered))
	of := f.opaque[t.Name.Server]
	if of == nil {
		of = make(map[string]string)
		f.opaque[t.Name.Server] = of
	}
	of[t.Local] = its.Offered
	return &its
}

// translated returns what a server says to clients with the URIs of resources as they know
// them. The structured content of tools is theirs alone.
func (f *features) translated(server string, said gate.Doc) (gate.Doc, error) {
	known := f.opaque[server]
	if len(known) == 0 {
		return said, nil
	}
	return said.MapStrings(func(at gate.Leaf, s string) string {
		own, ok := known[s]
		if !ok || at.Key {
			return s
		}
		if p := at.Pointer(); !strings.HasSuffix(p, "/uri") || strings.HasPrefix(p, "/structuredContent/") {
			return s
		}
		return own
	})
}
