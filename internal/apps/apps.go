package apps

import (
	"mime"
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// Extension is the name by which clients and servers declare that they know of apps.
	Extension = "io.modelcontextprotocol/ui"
	// MIME is the media type of a page.
	MIME = "text/html;profile=mcp-app"
	// Scheme begins the URI of a page.
	Scheme = "ui://"
	// LegacyURI is the member of a tool's _meta that named the page before "ui" did.
	LegacyURI = "ui/resourceUri"
)

// Declared is what a client with the extension declares, as the member "extensions" of its
// capabilities.
var Declared = doc.Must(`{"` + Extension + `":{"mimeTypes":["` + MIME + `"]}}`)

// Renders reports whether a client with such capabilities shows pages.
func Renders(capabilities doc.Doc) bool {
	for m := range capabilities.Get("extensions").Get(Extension).Get("mimeTypes").Elements() {
		if IsPage(m.Text()) {
			return true
		}
	}
	return false
}

// IsPage reports whether a media type is that of a page, in any spelling.
func IsPage(mediaType string) bool {
	kind, params, err := mime.ParseMediaType(mediaType)
	return err == nil && kind == "text/html" && strings.EqualFold(params["profile"], "mcp-app")
}

// IsURI reports whether a URI can be that of a page.
func IsURI(uri string) bool {
	rest, ok := strings.CutPrefix(uri, Scheme)
	return ok && rest != ""
}

// OfferedURI returns the URI by which clients that show pages know a page of a server: the
// server comes first, so that no server chooses which of two pages a URI names.
func OfferedURI(server, uri string) string {
	return Scheme + server + "/" + strings.TrimPrefix(uri, Scheme)
}

// A Use is what the definition of a tool says of the app of its server.
type Use struct {
	Page  string // the URI of the page that shows its results, as its server has it; "" for none
	Model bool   // models call it
	App   bool   // the pages of its server call it
}

// UseOf reads the definition of a tool. A visibility of another form than a list names
// neither models nor pages.
func UseOf(definition doc.Doc) Use {
	meta := definition.Get("_meta")
	ui := meta.Get("ui")
	u := Use{Page: ui.Get("resourceUri").Text(), Model: true, App: true}
	if u.Page == "" {
		u.Page = meta.Get(LegacyURI).Text()
	}
	if !IsURI(u.Page) {
		u.Page = ""
	}
	visibility := ui.Get("visibility")
	if visibility.IsZero() || visibility.Kind() == doc.Null {
		return u
	}
	u.Model, u.App = false, false
	for v := range visibility.Elements() {
		u.Model, u.App = u.Model || v.Text() == "model", u.App || v.Text() == "app"
	}
	return u
}
