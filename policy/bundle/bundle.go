package bundle

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/loader/filter"

	"github.com/wasmgate/wasmgate/internal/panicked"
	"github.com/wasmgate/wasmgate/policy/internal/archive"
	"github.com/wasmgate/wasmgate/policy/internal/owned"
)

// MaxBytes is how many bytes an archive may have: policies have kilobytes, and their data
// a few megabytes.
const MaxBytes = archive.MaxBytes

// A Bundle is a bundle in OPA's format (openpolicyagent.org, "Bundles"): policies,
// their tests and data in one archive, with a manifest and signatures. It was
// read whole, and verified if keys were given; it is immutable. Options of package policy
// say which bundles an Engine is made of.
//
// Its rules add, as the packs' and the user's do, to the sets of package
// wasmgate. Its data is data to all rules, under the roots of its manifest. Tests
// are its modules named *_test.rego, which Load of package policy runs.
type Bundle struct {
	name     string
	revision string
	digest   string
	roots    []string
	files    archive.Files
	modules  map[string][]byte // by name in the bundle
	data     map[string]any
}

// Options say how a bundle is read.
type Options struct {
	// Name is what the bundle is called in messages; required.
	Name string
	// Verify, if it is not nil, refuses a bundle that is not signed, whole, with one
	// of its keys. A bundle with signatures is refused without it.
	Verify *Verification
}

// A Verification says by whom a bundle has to be signed. The zero Verification
// knows no key, and refuses every bundle.
type Verification struct {
	// Keys are public keys or certificates in PEM, by id. If there is one it verifies
	// every signature; else the signature names it.
	Keys map[string]string
	// Scope is the scope that the signature has to state; usually "".
	Scope string
	// Algorithm is that of the signatures, such as RS256, PS256, ES256 or EdDSA.
	// Empty means the usual one for the kind of key.
	Algorithm string
}

// Read reads a bundle of at most [MaxBytes] bytes, a tar archive compressed
// by gzip. The error says what is wrong with it.
func Read(packed []byte, o Options) (*Bundle, error) {
	return read(o, func() (archive.Files, error) { return archive.Unpack(packed) })
}

// ReadFolder reads a bundle whose files lie in a tree. Folders whose names
// begin with a dot are left out; links are refused.
func ReadFolder(fsys fs.FS, o Options) (*Bundle, error) {
	return read(o, func() (archive.Files, error) { return archive.Collect(fsys) })
}

// Name returns what the bundle is called in messages.
func (b *Bundle) Name() string { return b.name }

// Revision returns the revision that the bundle's manifest states; "" if it does
// not.
func (b *Bundle) Revision() string { return b.revision }

// Digest is a hash of the names and the content of all files.
func (b *Bundle) Digest() string { return b.digest }

// Roots returns the parts of data that the bundle's manifest claims.
func (b *Bundle) Roots() []string { return slices.Clone(b.roots) }

// Modules returns the Rego files, tests among them, by their names in the bundle. They are not to
// be changed.
func (b *Bundle) Modules() map[string][]byte { return b.modules }

// Data returns the data of the bundle, as JSON is decoded. It is not to be changed.
func (b *Bundle) Data() map[string]any { return b.data }

// Archive returns the bundle as [Read] reads it, the same bytes for the same
// files.
func (b *Bundle) Archive() ([]byte, error) { return b.files.Pack() }

func read(o Options, files func() (archive.Files, error)) (b *Bundle, err error) {
	defer func() { // parsers of foreign bytes
		if v := recover(); v != nil {
			b, err = nil, panicked.Error(v)
		}
		if err != nil {
			err = fmt.Errorf("bundle %s: %w", o.Name, err)
		}
	}()
	all, err := files()
	if err != nil {
		return nil, err
	}
	r := opa.NewCustomReader(&memory{files: all}).
		WithRegoVersion(ast.RegoV1).
		WithSizeLimitBytes(archive.MaxUnpacked + 1)
	if o.Verify != nil {
		config, err := o.Verify.config()
		if err != nil {
			return nil, err
		}
		r = r.WithBundleVerificationConfig(config)
	} else if slices.ContainsFunc(all, func(f archive.File) bool { return opa.IsSignaturesFile(f.Name) }) {
		return nil, errors.New("it is signed, and there is no key to verify it: configure verify.keys")
	}
	found, err := r.Read()
	if err != nil {
		return nil, err
	}
	if err := check(&found, all); err != nil {
		return nil, err
	}
	b = &Bundle{
		name: o.Name, revision: found.Manifest.Revision, digest: all.Digest(), roots: *found.Manifest.Roots,
		files: all, modules: map[string][]byte{}, data: found.Data,
	}
	for _, m := range found.Modules {
		b.modules[strings.TrimPrefix(m.Path, "/")] = m.Raw
	}
	return b, nil
}

// check refuses what OPA knows and the gateway does not, and what only the
// gateway may define. What its modules define is looked at when they are loaded.
func check(b *opa.Bundle, files archive.Files) error {
	switch m := b.Manifest; {
	case b.Type() != opa.SnapshotBundleType:
		return errors.New("it is a delta bundle, which is not supported; publish a complete bundle")
	case len(b.WasmModules)+len(b.PlanModules)+len(m.WasmResolvers) > 0:
		return errors.New("it holds compiled policies (policy.wasm, plan.json); only Rego is evaluated")
	case m.RegoVersion != nil && *m.RegoVersion != 1,
		slices.ContainsFunc(slices.Collect(maps.Values(m.FileRegoVersions)), func(v int) bool { return v != 1 }):
		return errors.New("its manifest says that it is not Rego v1, the only version that is read")
	}
	hasRules := slices.ContainsFunc(b.Modules, func(m opa.ModuleFile) bool {
		return len(m.Parsed.Rules) > 0 && !strings.HasSuffix(m.Path, "_test.rego")
	})
	if !hasRules && isEmpty(b.Data) {
		return fmt.Errorf("it is empty: it has neither rules nor data%s; if it is no longer needed, take it out of policy.bundles", unread(files))
	}
	for _, name := range append([]string{owned.Root}, owned.Data...) {
		if _, ok := b.Data[name]; ok {
			return fmt.Errorf("its data defines data.%s, which belongs to the gateway; choose another name", name)
		}
	}
	return nil
}

// isEmpty reports whether data holds nothing but empty objects.
func isEmpty(data any) bool {
	object, ok := data.(map[string]any)
	if !ok {
		return false
	}
	for _, v := range object {
		if !isEmpty(v) {
			return false
		}
	}
	return true
}

// unread names the files that are neither rules nor data.
func unread(files archive.Files) string {
	const most = 5
	var names []string
	for _, f := range files {
		base := path.Base(f.Name)
		if path.Ext(base) != ".rego" && !slices.Contains([]string{"data.json", "data.yaml", "data.yml", ".manifest", ".signatures.json"}, base) {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf(" (not read: %q)", names)
}

// config returns the verification in the words of OPA.
func (v *Verification) config() (*opa.VerificationConfig, error) {
	if len(v.Keys) == 0 {
		return nil, errors.New("verify.keys is empty; add the publisher's public key")
	}
	keys := map[string]*opa.KeyConfig{}
	only := ""
	for id, text := range v.Keys {
		usual, err := algorithm(text)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", id, err)
		}
		k := &opa.KeyConfig{Key: text, Algorithm: v.Algorithm}
		if k.Algorithm == "" {
			k.Algorithm = usual
		}
		keys[id], only = k, id
	}
	if len(keys) > 1 {
		only = ""
	}
	return opa.NewVerificationConfig(keys, only, v.Scope, nil), nil
}

// algorithm returns the algorithm by which the owner of a public key usually signs
// (RFC 7518, 3.1; RFC 8037).
func algorithm(text string) (string, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return "", errors.New("it is not a key in PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		return "", fmt.Errorf("it is a %s; a public key or a certificate verifies", strings.ToLower(block.Type))
	}
	if err != nil {
		return "", err
	}
	switch k := key.(type) {
	case *rsa.PublicKey:
		return "RS256", nil
	case ed25519.PublicKey:
		return "EdDSA", nil
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return "ES256", nil
		case 384:
			return "ES384", nil
		case 521:
			return "ES512", nil
		}
	}
	return "", fmt.Errorf("a key of type %T cannot verify bundles", key)
}

// memory hands OPA's reader files that were read before. OPA's own loader of an
// fs.FS takes the dot off .signatures.json, and so finds none.
type memory struct {
	files archive.Files
	next  int
}

var _ opa.DirectoryLoader = (*memory)(nil)

// NextFile returns one file after the other, and then [io.EOF].
func (m *memory) NextFile() (*opa.Descriptor, error) {
	if m.next == len(m.files) {
		return nil, io.EOF
	}
	f := m.files[m.next]
	m.next++
	return opa.NewDescriptor("/"+f.Name, "/"+f.Name, bytes.NewBuffer(f.Data)), nil
}

// The rest of the interface says what to leave out, and all is wanted.

func (m *memory) WithFilter(filter.LoaderFilter) opa.DirectoryLoader { return m }
func (m *memory) WithPathFormat(opa.PathFormat) opa.DirectoryLoader  { return m }
func (m *memory) WithSizeLimitBytes(int64) opa.DirectoryLoader       { return m }
func (m *memory) WithFollowSymlinks(bool) opa.DirectoryLoader        { return m }
