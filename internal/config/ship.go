package config

import "time"

// A Ship is where the audit log is sent.
type Ship struct {
	Name   string // of its own, under which it is kept how far the log was sent
	To     string // http | otlp | opa
	Format string // audit | ocsf
	Target
}

// DefaultShip is how long a request with records may take.
const DefaultShip = 30 * time.Second

func (d *decoder) ships(to *[]Ship, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		s := Ship{Name: f.key, Format: "audit", Target: Target{Timeout: DefaultShip, Gzip: true}}
		if !bundlePattern.MatchString(f.key) {
			d.fail(&node{line: f.line}, path, "a target is named by small letters, digits and . _ -")
		}
		compression := "gzip"
		d.table(f.value, path, map[string]reader{
			"to":          d.one(&s.To, "http", "otlp", "opa"),
			"url":         d.text(&s.URL, checkURL),
			"format":      d.one(&s.Format, "audit", "ocsf"),
			"headers":     d.secrets(&s.Headers, checkHeader, checkHeaderValue),
			"private":     d.flag(&s.Private),
			"timeout":     d.duration(&s.Timeout, 100*time.Millisecond, 5*time.Minute),
			"compression": d.one(&compression, "gzip", "none"),
		})
		s.Gzip = compression == "gzip"
		at := &node{line: f.line}
		for _, k := range []struct{ name, value string }{{"to", s.To}, {"url", s.URL}} {
			if k.value == "" && f.value.get(k.name) == nil {
				d.fail(at, path, "has no %s", k.name)
			}
		}
		if s.To == "opa" && f.value.get("format") != nil {
			d.fail(f.value.get("format"), join(path, "format"), "means nothing to opa, which takes decisions")
		}
		if u := f.value.get("url"); u != nil && insecure(s.URL) {
			d.warn(u.line, join(path, "url"), "plain http to another machine: the records, and headers, can be read on the way")
		}
		*to = append(*to, s)
	})
}
