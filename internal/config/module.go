package config

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A Module is a WASM module whose tools are offered under Server. Exactly one of
// Path and Ref is set.
type Module struct {
	ID        string
	Path      string
	Ref       string            // oci://registry/repository@sha256:digest, EmbeddedTools or EmbeddedFiles; Path is empty then
	SHA256    string            `key:"sha256 digest"` // empty: not checked
	Declared  string            // a digest of what the file says of it
	Server    string            `key:"server moduleserver" default:"local"`
	Groups    []string          `key:"groups group"`               // that its tools are in
	Replay    string            `key:"replay must_stub|live|pure"` // empty: pure if it is granted nothing, else must_stub
	Grant     ModuleGrant       `key:"grant"`
	Config    map[string]Secret `key:"config config"`                   // given to the module as it is
	Args      []string          `key:"args args"`                       // of a WASI program; nil: as the module's manifest says
	Isolation string            `key:"isolation call|instance|session"` // empty: as the module's manifest says
	Verify    *SignedBy         `key:"verify"`                          // who has to have signed it; nil is nobody
	MustSign  bool              // it is refused without Verify
	Fault     string            // why it cannot be used as written; empty if it can
	Dev       bool              // its author works on it: see [Config.Develop]

	ModuleLimits `key:"limits"`
}

// SignedBy says by which key a module has to be signed.
type SignedBy struct {
	Key string `key:"key path exists"` // a public key in PEM
	// Bundle is the path of a bundle of cosign for the module's file; empty: that of a
	// file with .sigstore.json behind its name, of an artifact what the registry has
	// beside it.
	Bundle   string `key:"bundle path"`
	SignedAs string `key:"signed_as repository"` // registry/repository under which an artifact was signed; empty: where it is
}

func (s *SignedBy) check(d *decoder, n *tree.Node, path string) {
	d.needs(n, path, "key", "a key, the path of a public key in PEM, such as cosign.pub")
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

// A ModuleGrant is what a module may use beside its arguments. The zero value is
// nothing.
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

// A BoundSecret is a secret that modules use without seeing it: it is put into
// requests to its origin alone.
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
	secretPattern     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	webPattern        = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:([1-9][0-9]{0,4}))?$`)
)

func (d *decoder) modules(to *[]Module, n *tree.Node, path string) {
	d.each(n, path, func(f tree.Field, path string) {
		m := Module{ID: f.Key}
		d.fill(&m)
		if !serverPattern.MatchString(f.Key) {
			d.fail(&tree.Node{Line: f.Line}, path, "a module is named with lower-case letters, digits and -, such as %q", serverID(f.Key))
		}
		fault := d.faulting()
		d.object(&m, f.Value, path)
		m.Fault, m.Declared = fault(), declared(f.Value, nil, nil)
		d.needs(f.Value, path, "module", "a module, the path of a WASM file")
		d.checkSignedBy(f.Value, path, &m)
		if m.Ref == EmbeddedTools && len(f.Value.Fields) > 1 {
			d.fail(f.Value, path, "the embedded tools take no key but module: they reach nothing, and have limits of their own")
		}
		*to = append(*to, m)
	})
}

func (m *Module) readers(d *decoder) map[string]reader {
	return map[string]reader{"module": d.module(m)}
}

// checkSignedBy reports what of it means nothing for the module.
func (d *decoder) checkSignedBy(n *tree.Node, path string, m *Module) {
	switch v := m.Verify; {
	case v == nil:
	case m.Embedded():
		d.fail(n.Get("verify"), tree.Join(path, "verify"), "has no effect: the module is part of wasmgate")
	case v.SignedAs != "" && m.Ref == "":
		d.fail(n.Get("verify"), tree.Join(path, "verify"), "signed_as is for modules in a registry")
	}
}

// mustSign has each module be refused that nobody has to have signed, if the configuration
// wants that.
func (c *Config) mustSign() {
	for i := range c.Tools {
		c.Tools[i].MustSign = c.MustSign && !c.Tools[i].Embedded()
	}
	for i := range c.Servers {
		m := &c.Servers[i].Module
		m.MustSign = c.MustSign && m.Path+m.Ref != ""
	}
}

// needs reports a table that does not have a key.
func (d *decoder) needs(n *tree.Node, path, key, what string) {
	if (n.Kind == tree.Table || n.Kind == tree.Null) && n.Get(key) == nil {
		d.fail(n, path, "needs %s", what)
	}
}

// module reads where the module is: in a file, in a registry, in the program.
func (d *decoder) module(to *Module) reader {
	return func(n *tree.Node, path string) {
		var s string
		d.text(&s, d.checkModule)(n, path)
		switch {
		case strings.HasPrefix(s, ociScheme), embedded(s):
			to.Ref = s
		case s != "":
			to.Path = d.resolve(s)
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

func (d *decoder) checkModule(s string) error {
	switch {
	case embedded(s):
		return nil
	case !strings.HasPrefix(s, ociScheme):
		return exists(d.resolve(s))
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

func (h *HTTPGrant) check(d *decoder, n *tree.Node, path string) {
	d.needs(n, path, "origin", "an origin, such as https://api.example.com")
}

func (g *DirGrant) check(d *decoder, n *tree.Node, path string) {
	d.needs(n, path, "path", "a path, the folder that is granted")
	if g.Path != "" {
		g.Path = filepath.Clean(g.Path)
	}
}

func (g *ModuleGrant) check(d *decoder, n *tree.Node, path string) {
	for i, h := range g.HTTP {
		if slices.ContainsFunc(g.HTTP[:i], func(o HTTPGrant) bool { return h.Origin != "" && h.Origin == o.Origin && h.Path == o.Path }) {
			d.fail(n.Get("http").Items[i], fmt.Sprintf("%s.http[%d]", path, i), "grants the same path of the same origin twice: list all methods in one entry")
		}
	}
	for i, f := range g.Dirs {
		at, where := n.Get("dirs").Items, fmt.Sprintf("%s.dirs[%d]", path, i)
		if slices.ContainsFunc(g.Dirs[:i], func(o DirGrant) bool { return f.Path != "" && f.Path == o.Path }) {
			d.fail(at[i], where, "grants the same folder twice")
		}
		if slices.ContainsFunc(g.Dirs[:i], func(o DirGrant) bool { return cmp.Or(f.As, f.Path) == cmp.Or(o.As, o.Path) && f.Path != o.Path }) {
			d.fail(at[i], where, "is known to the module by the path of another folder")
		}
	}
}

// guestPath accepts what a module can call a folder: a path, or where it is itself.
func guestPath(s string) error {
	if s != "." && (!strings.HasPrefix(s, "/") || path.Clean(s) != s) {
		return errors.New("is neither an absolute path without dots, such as /data, nor \".\"")
	}
	return nil
}

// methods are those of RFC 9110 and RFC 5789 that make sense through a gateway.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func checkMethod(s string) error {
	if !slices.Contains(methods, s) {
		return fmt.Errorf("is not one of %s", strings.Join(methods, ", "))
	}
	return nil
}

// checkOrigin accepts only the one way in which an origin is written: origins
// are compared as they are.
func checkOrigin(s string) error {
	m := webPattern.FindStringSubmatch(s)
	if m == nil {
		return errors.New("is not an origin in lower case without a path, such as https://api.example.com")
	}
	port := m[3]
	if n, _ := strconv.Atoi(port); n > 65535 {
		return errors.New("has no port from 1 to 65535")
	}
	if strings.HasPrefix(s, "https:") && port == "443" || strings.HasPrefix(s, "http:") && port == "80" {
		return errors.New("has the scheme's own port: remove the port")
	}
	return nil
}

// checkPrefix accepts what a path can only mean in one way.
func checkPrefix(s string) error {
	clean := path.Clean(s)
	if s[0] != '/' || strings.ContainsAny(s, `?#%\*`) || s != clean && s != clean+"/" {
		return errors.New("is not the beginning of a path, such as /v1/, without .., ?, #, % and *")
	}
	return nil
}

func checkSecretName(s string) error {
	if !secretPattern.MatchString(s) {
		return errors.New("is not a name of a secret: use letters, digits, _ and -, such as API")
	}
	return nil
}

func (d *decoder) boundSecrets(to *[]BoundSecret, n *tree.Node, path string) {
	d.each(n, path, func(f tree.Field, path string) {
		s := BoundSecret{Name: f.Key}
		if err := checkSecretName(f.Key); err != nil {
			d.fail(&tree.Node{Line: f.Line}, path, "%q %v", f.Key, err)
		}
		fault := d.faulting()
		d.object(&s, f.Value, path)
		s.Fault = fault()
		d.needs(f.Value, path, "value", "a value, such as \"${API_TOKEN}\"")
		d.needs(f.Value, path, "origin", "an origin, the only one that it is sent to")
		if insecure(s.Origin) {
			d.warn(f.Line, path, "plain http to another machine: the secret can be read on the way")
		}
		*to = append(*to, s)
	})
}

// secret reads a text that fits into a header and is never quoted.
func (d *decoder) secret(to *Secret) reader {
	return func(n *tree.Node, path string) {
		s, ok := d.written(n, path)
		if !ok {
			return
		}
		if err := checkHeaderValue(s); err != nil || s == "" {
			d.fail(n, path, "is empty, or holds a line break or another control character")
			return
		}
		*to = Secret(s)
	}
}

// checkSecrets reports secrets that are granted and not there, and warns of
// those that go where their module may not.
func (d *decoder) checkSecrets(tools *tree.Node, c *Config) {
	var known []string
	for _, s := range c.Secrets {
		known = append(known, s.Name)
	}
	for i, m := range c.Tools { // one for each field of tools
		if len(m.Grant.Secrets) == 0 {
			continue
		}
		f := tools.Fields[i]
		for k, item := range f.Value.Get("grant").Get("secrets").Items {
			name, err := variables.Expand(item.Text, d.lookup)
			if err != nil || !slices.Contains(m.Grant.Secrets, name) {
				continue // reported
			}
			at := tree.Join("tools", f.Key) + fmt.Sprintf(".grant.secrets[%d]", k)
			j := slices.Index(known, name)
			if j < 0 {
				d.fail(item, at, "no secret is named %q%s", item.Text, spelling.Suggest(name, known))
				continue
			}
			if fault := c.Secrets[j].Fault; fault != "" && c.Tools[i].Fault == "" {
				c.Tools[i].Fault = fault
			}
			origin := c.Secrets[j].Origin
			if origin != "" && !slices.ContainsFunc(m.Grant.HTTP, func(g HTTPGrant) bool { return g.Origin == origin }) {
				d.warn(item.Line, at, "the secret is sent to %s alone, which the module is not granted", origin)
			}
		}
	}
}
