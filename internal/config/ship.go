package config

import (
	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// A Ship is where the audit log is sent.
type Ship struct {
	Name   string `key:"*"` // of its own, under which it is kept how far the log was sent
	To     string `key:"to http|otlp|opa"`
	Format string `key:"format audit|ocsf" default:"audit"`
	Target
}

// Named implements [decode.Named].
func (s *Ship) Named(f decode.Field) {
	s.Gzip = true
	if !bundlePattern.MatchString(f.Key) {
		f.At.Fail("the name of a target has lower-case letters, digits and . _ -")
	}
}

// Readers implements [decode.Reading].
func (s *Ship) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"compression": decode.Either(&s.Gzip, []string{"none", "gzip"})}
}

// Check implements [decode.Checker].
func (s *Ship) Check(v decode.Value) {
	for _, k := range []struct{ name, value string }{{"to", s.To}, {"url", s.URL}} {
		if k.value == "" && !v.Has(k.name) {
			v.Fail("has no %s", k.name)
		}
	}
	if s.To == "opa" && v.Has("format") {
		v.Get("format").Fail("has no effect on a target opa, which receives decisions")
	}
	if v.Has("url") && check.Insecure(s.URL) {
		v.Get("url").Warn("plain http to another machine: the records, and headers, can be read on the way")
	}
}
