package listing

import (
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/doc"
)

// appOnly reports whether a tool is only for the app of its server, and not for models (MCP
// Apps, "visibility"). A visibility of another form than a list does not name models.
func appOnly(def gate.Doc) bool {
	visibility := def.Get("_meta").Get("ui").Get("visibility")
	if visibility.IsZero() || visibility.Kind() == doc.Null {
		return false
	}
	for v := range visibility.Elements() {
		if v.Text() == "model" {
			return false
		}
	}
	return true
}

// withoutApp returns a definition without what it says of an app: no page of an app has been
// approved that it could name, and none may be another server's.
func withoutApp(def gate.Doc) gate.Doc {
	meta := def.Get("_meta")
	if meta.Get("ui").IsZero() && meta.Get("ui/resourceUri").IsZero() {
		return def
	}
	return def.With("_meta", mcp.Without(meta, "ui", "ui/resourceUri").Raw())
}
