package listing

import (
	"regexp"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// variables are those of a template of URIs.
var variables = regexp.MustCompile(`\{[^{}]*\}`)

// refused says why a URL of a definition must not be passed on, if the sanitizer knows
// the rules for links; "" if it may.
func refused(o options.Tools, c gate.Content) string {
	checker, ok := o.Sanitizer.(gate.ContentChecker)
	if !ok {
		return ""
	}
	c.Profile = "text"
	return checker.Check(c).Refused
}

// withIcons returns a definition without the icons that must not be fetched: clients
// show them without a click.
func withIcons(t *gate.Tool, def gate.Doc, o options.Tools) gate.Doc {
	list := def.Get("icons")
	if list.Kind() != doc.Array {
		return def
	}
	out, left := []byte{'['}, false
	for icon := range list.Elements() {
		if why := refused(o, gate.Content{Server: t.Name.Server, URI: icon.Get("src").Text(), Icon: true}); why != "" {
			t.Findings = append(t.Findings, "/icons: left out: "+why)
			left = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, icon.Raw()...)
	}
	if !left {
		return def
	}
	return def.With("icons", append(out, ']'))
}
