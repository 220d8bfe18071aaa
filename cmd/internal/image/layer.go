package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"runtime/debug"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the image's user and group: not root, and none that a machine gives
// to anybody.
const user = 65532

// layer returns the one layer of an image, packed and not: the binary, what it trusts, its
// list of materials, and folders that it may write in.
func layer(b binary, sbom []byte, created time.Time) (packed, plain []byte, err error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	dir := func(name string, mode int64, owner int) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: created, Format: tar.FormatPAX}
		if err == nil {
			err = w.WriteHeader(header)
		}
	}
	file := func(name string, mode int64, data []byte) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: created, Format: tar.FormatPAX}
		if err == nil {
			err = w.WriteHeader(header)
		}
		if err == nil {
			_, err = w.Write(data)
		}
	}
	dir("etc/", 0o755, 0)
	file("etc/group", 0o644, []byte("wasmgate:x:65532:\n"))
	file("etc/passwd", 0o644, []byte("wasmgate:x:65532:65532::/var/lib/wasmgate:/sbin/nologin\n"))
	dir("etc/ssl/", 0o755, 0)
	dir("etc/ssl/certs/", 0o755, 0)
	file("etc/ssl/certs/ca-certificates.crt", 0o644, roots())
	dir("etc/wasmgate/", 0o755, 0)
	dir("tmp/", 0o1777, 0)
	dir("usr/", 0o755, 0)
	dir("usr/local/", 0o755, 0)
	dir("usr/local/bin/", 0o755, 0)
	file("usr/local/bin/wasmgate", 0o755, b.data)
	dir("usr/local/share/", 0o755, 0)
	dir("usr/local/share/wasmgate/", 0o755, 0)
	file("usr/local/share/wasmgate/sbom.cdx.json", 0o644, sbom)
	dir("var/", 0o755, 0)
	dir("var/lib/", 0o755, 0)
	dir("var/lib/wasmgate/", 0o700, user)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	var zipped bytes.Buffer
	z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return nil, nil, err
	}
	if _, err = z.Write(text.Bytes()); err != nil {
		return nil, nil, err
	}
	if err := z.Close(); err != nil {
		return nil, nil, err
	}
	return zipped.Bytes(), text.Bytes(), nil
}

// roots are the certificates that Mozilla trusts, as the Go project publishes them. One that
// is trusted within bounds alone is left out: a file of certificates cannot say them.
func roots() []byte {
	var b bytes.Buffer
	for r := range bundle.Roots() {
		if r.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// materials is the list of what a binary was built of, as CycloneDX 1.6 has it: the modules
// that the Go linker wrote into it, with their checksums.
func materials(b binary, version string, created time.Time) ([]byte, error) {
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
	module := func(m *debug.Module) component {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}} // of go.sum: a hash over the files of the module
		}
		return c
	}
	all := []component{{Type: "library", Ref: "pkg:golang/std@" + b.info.GoVersion, Name: "std", Version: b.info.GoVersion, PURL: "pkg:golang/std@" + b.info.GoVersion}}
	for _, m := range b.info.Deps {
		all = append(all, module(m))
	}
	doc := map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{
			"timestamp": created.Format(time.RFC3339),
			"component": component{
				Type: "application", Ref: "wasmgate", Name: "wasmgate", Version: version, PURL: "pkg:golang/" + b.info.Main.Path + "@" + version,
				Hashes: []hash{{"SHA-256", digestOf(b.data).Encoded()}},
			},
		},
		"components": all,
	}
	text, err := json.MarshalIndent(doc, "", " ")
	return append(text, '\n'), err
}
