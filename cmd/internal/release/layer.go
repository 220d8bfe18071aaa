package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the image's user and group: not root, and none that a machine gives
// to anybody.
const user = 65532

// files are what an image holds of its own: the program, what it trusts, its list of materials, and folders that it
// may write in.
func (r release) files(p program, sbom []byte) *tree {
	t := newTree(r.created)
	t.file("etc/group", 0o644, []byte("wasmgate:x:65532:\n"))
	t.file("etc/passwd", 0o644, []byte("wasmgate:x:65532:65532::/var/lib/wasmgate:/sbin/nologin\n"))
	t.file("etc/ssl/certs/ca-certificates.crt", 0o644, roots())
	t.folder("etc/wasmgate", 0o755, 0)
	t.folder("tmp", 0o1777, 0)
	t.file("usr/local/bin/wasmgate", 0o755, p.data)
	t.file("usr/local/share/wasmgate/sbom.cdx.json", 0o644, sbom)
	t.folder("var/lib/wasmgate", 0o700, user)
	return t
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
