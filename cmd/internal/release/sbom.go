package main

import (
	"encoding/json"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// source is where the project is.
const source = "https://github.com/wasmgate/wasmgate"

// sbom lists what programs were built from, as CycloneDX 1.6 has it: the modules that the Go linker
// wrote into them, with their checksums.
func (r release) sbom(programs []program) ([]byte, error) {
	type hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	type property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	var all []component
	seen := map[string]bool{}
	library := func(m *debug.Module) {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		if seen[purl] {
			return
		}
		seen[purl] = true
		c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}} // of go.sum: a hash over the files of the module
		}
		all = append(all, c)
	}
	for _, p := range programs {
		name := strings.TrimSuffix(filepath.Base(p.name), ".exe")
		all = append(all, component{
			Type: "application", Ref: name, Name: name, Version: r.version, PURL: "pkg:golang/" + p.info.Main.Path + "@" + r.version,
			Hashes: []hash{{"SHA-256", digestOf(p.data).Encoded()}},
		})
		library(&debug.Module{Path: "std", Version: p.info.GoVersion})
		for _, m := range p.info.Deps {
			library(m)
		}
	}
	doc := map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{
			"timestamp": r.created.Format(time.RFC3339),
			"component": component{Type: "application", Ref: "release", Name: "wasmgate", Version: r.version, PURL: "pkg:golang/github.com/wasmgate/wasmgate@" + r.version},
		},
		"components": all,
	}
	text, err := json.MarshalIndent(doc, "", " ")
	return append(text, '\n'), err
}
