package config

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// A Module is a WASM module whose tools are offered under Server. Exactly one of
// Path and Ref is set.
type Module struct {
	ID        string
	Path      string
	Ref       string            // oci://registry/repository@sha256:digest, EmbeddedTools or EmbeddedFiles; Path is empty then
	SHA256    string            `key:"sha256 digest"` // empty: not checked
	Declared  string            // a digest of its entry in the file
	Server    string            `key:"server moduleserver" default:"local"`
	Groups    []string          `key:"groups group"`               // that its tools are in
	Replay    string            `key:"replay must_stub|live|pure"` // empty: pure if it is granted nothing, else must_stub
	Grant     ModuleGrant       `key:"grant"`
	Config    map[string]Secret `key:"config config"`                   // given to the module as it is
	Args      []string          `key:"args args"`                       // of a WASI program; nil: as the module's manifest says
	Isolation string            `key:"isolation call|instance|session"` // empty: as the module's manifest says
	Verify    *SignedBy         `key:"verify"`                          // who has to have signed it; nil: no one
	MustSign  bool              // it is refused without Verify
	Fault     string            // why it cannot be used as written; empty if it can
	Dev       bool              // its author works on it: see [Config.Develop]

	ModuleLimits `key:"limits"`
}

// SignedBy says by which key a module has to be signed.
type SignedBy struct {
	Key string `key:"key path exists"` // a public key in PEM
	// Bundle is the path of a bundle of cosign for the module's file. If it is empty, a file has its
	// bundle at its own name with .sigstore.json appended, and an artifact has it in the registry.
	Bundle   string `key:"bundle path"`
	SignedAs string `key:"signed_as repository"` // registry/repository under which an artifact was signed; empty: where it is
}

// Check implements [decode.Checker].
func (s *SignedBy) Check(v decode.Value) {
	v.Needs("key", "a key, the path of a public key in PEM, such as cosign.pub")
}

// ModuleLimits bound a call of a module's tool. Zero fields leave the sandbox's
// defaults.
type ModuleLimits struct {
	Timeout    time.Duration `key:"timeout 1ms..1h"`
	Memory     int64         `key:"memory 64KiB..4GiB"`       // a page, and all pages, of WebAssembly
	Fuel       int           `key:"fuel 1..1000000000000000"` // instructions; as many take days
	Output     int64         `key:"output 1KiB..1GiB"`        // of a result
	Log        int64         `key:"log 1KiB..1GiB"`
	HostCalls  int           `key:"host_calls 1..1000000"`     // each is decided and recorded
	Concurrent int           `key:"concurrent 1..65536"`       // calls at once, of all callers
	FilesBytes int64         `key:"files_bytes 1KiB..1024GiB"` // written to files
}

// A ModuleGrant is what a module may use in addition to its arguments. The zero value is nothing.
type ModuleGrant struct {
	HTTP    []HTTPGrant `key:"http"`
	Dirs    []DirGrant  `key:"dirs"`
	Secrets []string    `key:"secrets secretname"` // all of them in Config.Secrets
	KV      bool        `key:"kv"`
}

// An HTTPGrant lets a module send requests to an origin.
type HTTPGrant struct {
	Origin  string   `key:"origin web"` // as RFC 6454, section 6.2, writes it: in lower case, without the scheme's own port
	Methods []string `key:"methods GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS" default:"GET HEAD"`
	// Path is what the path of requests begins with, in whole segments: /v1 and
	// /v1/ both stand for /v1 and what is below it.
	Path    string `key:"path prefix" default:"/"`
	Private bool   `key:"private"` // the origin may have a loopback, private or link-local address
}

// A DirGrant lets a module read the files in a folder, which need not exist yet.
type DirGrant struct {
	Path  string `key:"path path"` // absolute and clean
	Write bool   `key:"write"`     // change them, too
	As    string `key:"as guest"`  // what the module calls it, such as /data; "" is Path
}

// A BoundSecret is a secret that modules use without seeing it: it is put only into requests to its
// origin.
type BoundSecret struct {
	Name   string
	Value  Secret `key:"value"`
	Origin string `key:"origin web"` // as that of an HTTPGrant
	Fault  string // why it cannot be used as written; empty if it can
}

var (
	digestPattern     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	refPattern        = regexp.MustCompile(`^oci://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
)

func modules(to *[]Module) decode.Reader {
	return func(v decode.Value) {
		for f := range v.Entries() {
			*to = append(*to, oneModule(f))
		}
	}
}

func oneModule(f decode.Field) Module {
	m := Module{ID: f.Key}
	f.Value.File().Fill(&m)
	if !serverPattern.MatchString(f.Key) {
		f.At.Fail("a module is named with lower-case letters, digits and -, such as %q", serverID(f.Key))
	}
	of, fault := f.Value.Faulting()
	of.Object(&m)
	m.Fault, m.Declared = fault(), declared(f.Value.Node, nil, nil)
	f.Value.Needs("module", "a module, the path of a WASM file")
	m.checkSignedBy(f.Value)
	if m.Ref == EmbeddedTools && len(f.Value.Fields) > 1 {
		f.Value.Fail("the embedded tools take no key but module: they reach nothing, and have limits of their own")
	}
	return m
}

// Readers implements [decode.Reading].
func (m *Module) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"module": module(m)}
}

// checkSignedBy reports the keys under verify that have no effect for the module.
func (m *Module) checkSignedBy(v decode.Value) {
	switch by := m.Verify; {
	case by == nil:
	case m.Embedded():
		v.Get("verify").Fail("has no effect: the module is part of wasmgate")
	case by.SignedAs != "" && m.Ref == "":
		v.Get("verify").Fail("signed_as is for modules in a registry")
	}
}

// module reads where the module is: in a file, in a registry, in the program.
func module(to *Module) decode.Reader {
	return func(v decode.Value) {
		var s string
		decode.Text(&s, func(s string) error { return checkModule(s, v.Resolve) })(v)
		switch {
		case strings.HasPrefix(s, ociScheme), embedded(s):
			to.Ref = s
		case s != "":
			to.Path = v.Resolve(s)
		}
	}
}

const (
	ociScheme = "oci://"
	// EmbeddedTools is the Ref of the module of tools that come with wasmgate and need no
	// capability.
	EmbeddedTools = "embedded"
	// EmbeddedFiles is the Ref of the module of tools that come with wasmgate and
	// read granted directories.
	EmbeddedFiles = "embedded:files"
)

func embedded(ref string) bool { return ref == EmbeddedTools || ref == EmbeddedFiles }

// Embedded reports whether the module comes with wasmgate.
func (m *Module) Embedded() bool { return embedded(m.Ref) }

func checkModule(s string, resolve func(string) string) error {
	switch {
	case embedded(s):
		return nil
	case !strings.HasPrefix(s, ociScheme):
		return check.Exists(resolve(s))
	case !strings.Contains(s, "@sha256:"):
		return errors.New("has no digest, so that its content could change: write oci://registry/repository@sha256:DIGEST")
	case !refPattern.MatchString(s):
		return errors.New("is not oci://registry/repository@sha256: and 64 hex digits in lower case")
	}
	return nil
}

func checkModuleServer(s string) error {
	if s == "local" {
		return nil
	}
	if !serverPattern.MatchString(s) {
		return errors.New("is not a name of a server: use lower-case letters, digits and -")
	}
	if slices.Contains(reserved, s) {
		return errors.New("is reserved")
	}
	return nil
}

// Check implements [decode.Checker].
func (h *HTTPGrant) Check(v decode.Value) {
	v.Needs("origin", "an origin, such as https://api.example.com")
}

// Check implements [decode.Checker].
func (g *DirGrant) Check(v decode.Value) {
	v.Needs("path", "a path, the folder that is granted")
	if g.Path != "" {
		g.Path = filepath.Clean(g.Path)
	}
}

// Check implements [decode.Checker].
func (g *ModuleGrant) Check(v decode.Value) {
	for i, h := range g.HTTP {
		if slices.ContainsFunc(g.HTTP[:i], func(o HTTPGrant) bool { return h.Origin != "" && h.Origin == o.Origin && h.Path == o.Path }) {
			v.Get("http").Item(i).Fail("grants the same path of the same origin twice: list all methods in one entry")
		}
	}
	for i, f := range g.Dirs {
		at := v.Get("dirs").Item(i)
		if slices.ContainsFunc(g.Dirs[:i], func(o DirGrant) bool { return f.Path != "" && f.Path == o.Path }) {
			at.Fail("grants the same folder twice")
		}
		if slices.ContainsFunc(g.Dirs[:i], func(o DirGrant) bool { return cmp.Or(f.As, f.Path) == cmp.Or(o.As, o.Path) && f.Path != o.Path }) {
			at.Fail("is known to the module by the path of another folder")
		}
	}
}

func boundSecrets(to *[]BoundSecret) decode.Reader {
	return func(v decode.Value) {
		for f := range v.Entries() {
			s := BoundSecret{Name: f.Key}
			if err := check.SecretName(f.Key); err != nil {
				f.At.Fail("%q %v", f.Key, err)
			}
			of, fault := f.Value.Faulting()
			of.Object(&s)
			s.Fault = fault()
			f.Value.Needs("value", "a value, such as \"${API_TOKEN}\"")
			f.Value.Needs("origin", "an origin, the only one that it is sent to")
			if check.Insecure(s.Origin) {
				f.At.Warn("plain http to another machine: the secret can be read on the way")
			}
			*to = append(*to, s)
		}
	}
}
