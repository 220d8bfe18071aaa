package config

import "github.com/wasmgate/wasmgate/internal/config/tree"

// A Ship is where the audit log is sent.
type Ship struct {
	Name   string `key:"*"` // of its own, under which it is kept how far the log was sent
	To     string `key:"to http|otlp|opa"`
	Format string `key:"format audit|ocsf" default:"audit"`
	Target
}

func (s *Ship) named(d *decoder, f tree.Field, path string) {
	s.Gzip = true
	if !bundlePattern.MatchString(f.Key) {
		d.fail(&tree.Node{Line: f.Line}, path, "the name of a target has lower-case letters, digits and . _ -")
	}
}

func (s *Ship) readers(d *decoder) map[string]reader {
	return map[string]reader{"compression": d.either(&s.Gzip, []string{"none", "gzip"})}
}

func (s *Ship) check(d *decoder, n *tree.Node, path string) {
	for _, k := range []struct{ name, value string }{{"to", s.To}, {"url", s.URL}} {
		if k.value == "" && n.Get(k.name) == nil {
			d.fail(n, path, "has no %s", k.name)
		}
	}
	if s.To == "opa" && n.Get("format") != nil {
		d.fail(n.Get("format"), tree.Join(path, "format"), "has no effect on a target opa, which receives decisions")
	}
	if u := n.Get("url"); u != nil && insecure(s.URL) {
		d.warn(u.Line, tree.Join(path, "url"), "plain http to another machine: the records, and headers, can be read on the way")
	}
}
