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

	"github.com/wasmgate/wasmgate/internal/config/variables"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// A Module is a WASM module whose tools are offered under Server. Exactly one of
// Path and Ref is set.
type Module struct {
	ID        string
	Path      string
	Ref       string   // oci://registry/repository@sha256:digest, or EmbeddedFiles; Path is empty then
	SHA256    string   // 64 lower-case hex digits; empty: not checked
	Server    string   // local unless the file says otherwise
	Groups    []string // that its tools are in
	Replay    string   // must_stub | live | pure; empty: pure if it is granted nothing, else must_stub
	Grant     ModuleGrant
	Config    map[string]Secret // given to the module as it is
	Args      []string          // of a WASI program; nil: as the module's manifest says
	Isolation string            // call | instance | session; empty: as the module's manifest says
	Verify    *SignedBy         // who has to have signed it; nil is nobody
	MustSign  bool              // it is refused without Verify
	Fault     string            // why it cannot be used as written; empty if it can
	Dev       bool              // its author works on it: see [Config.Develop]
	ModuleLimits
}

// SignedBy says by which key a module has to be signed.
type SignedBy struct {
	Key string // path of a public key in PEM
	// Bundle is the path of a bundle of cosign for the module's file; empty: that of a
	// file with .sigstore.json behind its name, of an artifact what the registry has
	// beside it.
	Bundle   string
	SignedAs string // registry/repository under which an artifact was signed; empty: where it is
}

// ModuleLimits bound a call of a module's tool. Zero fields leave the sandbox's
// defaults.
type ModuleLimits struct {
	Timeout    time.Duration
	Memory     int64 // bytes
	Fuel       int   // instructions
	Output     int64 // bytes of a result
	Log        int64 // bytes
	HostCalls  int
	Concurrent int   // calls at once, of all callers
	FilesBytes int64 // written to files
}

// A ModuleGrant is what a module may use beside its arguments. The zero value is
// nothing.
type ModuleGrant struct {
	HTTP    []HTTPGrant
	Dirs    []DirGrant
	Secrets []string // names, all of them in Config.Secrets
	KV      bool
}

// An HTTPGrant lets a module send requests to an origin.
type HTTPGrant struct {
	Origin  string   // as RFC 6454, section 6.2, writes it: in lower case, without the scheme's own port
	Methods []string // in capitals; GET and HEAD unless the file says otherwise
	// Path is what the path of requests begins with, in whole segments: /v1 and
	// /v1/ both stand for /v1 and what is below it. It is / unless the file says
	// otherwise.
	Path    string
	Private bool // the origin may have a loopback, private or link-local address
}

// A DirGrant lets a module read the files in a folder, which need not exist yet.
type DirGrant struct {
	Path  string // absolute and clean
	Write bool   // change them, too
	As    string // what the module calls it, such as /data; "" is Path
}

// A BoundSecret is a secret that modules use without seeing it: it is put into
// requests to its origin alone.
type BoundSecret struct {
	Name   string
	Value  Secret
	Origin string // as that of an HTTPGrant
	Fault  string // why it cannot be used as written; empty if it can
}

// Bounds of what a module can be given for a call.
const (
	maxFuel      = 1e15      // instructions: days of them
	maxHostCalls = 1_000_000 // each is decided and recorded
	maxFiles     = 1 << 40   // bytes
)

var (
	digestPattern     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	refPattern        = regexp.MustCompile(`^oci://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?@sha256:[0-9a-f]{64}$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
	secretPattern     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	webPattern        = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:([1-9][0-9]{0,4}))?$`)
)

func (d *decoder) modules(to *[]Module, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		m := Module{ID: f.key, Server: "local"}
		if !serverPattern.MatchString(f.key) {
			d.fail(&node{line: f.line}, path, "a module is named by lower-case letters, digits and -, such as %q", serverID(f.key))
		}
		fault := d.faulting()
		d.table(f.value, path, map[string]reader{
			"module":    d.module(&m),
			"sha256":    d.text(&m.SHA256, matches(digestPattern, "64 hex digits in lower case")),
			"server":    d.text(&m.Server, checkModuleServer),
			"replay":    d.one(&m.Replay, replayModes...),
			"groups":    d.groupNames(&m.Groups),
			"grant":     func(n *node, path string) { d.grant(&m.Grant, n, path) },
			"config":    d.secrets(&m.Config, plain, nil),
			"isolation": d.one(&m.Isolation, "call", "instance", "session"),
			"verify":    d.signedBy(&m),
			"args":      d.args(&m.Args),
			"limits":    func(n *node, path string) { d.moduleLimits(&m.ModuleLimits, n, path) },
		})
		m.Fault = fault()
		d.needs(f.value, path, "module", "a module, the path of a WASM file")
		d.checkSignedBy(f.value, path, &m)
		*to = append(*to, m)
	})
}

// signedBy reads by which key a module has to be signed.
func (d *decoder) signedBy(to *Module) reader {
	return func(n *node, path string) {
		v := new(SignedBy)
		d.table(n, path, map[string]reader{
			"key": d.path(&v.Key, exists), "bundle": d.path(&v.Bundle), "signed_as": d.text(&v.SignedAs, matches(repositoryPattern, "registry/repository, such as ghcr.io/someone/tool")),
		})
		d.needs(n, path, "key", "a key, the path of a public key in PEM, such as cosign.pub")
		to.Verify = v
	}
}

// checkSignedBy reports what of it means nothing for the module.
func (d *decoder) checkSignedBy(n *node, path string, m *Module) {
	switch v := m.Verify; {
	case v == nil:
	case m.Ref == EmbeddedFiles:
		d.fail(n.get("verify"), join(path, "verify"), "has no effect: the module is part of wasmgate")
	case v.SignedAs != "" && m.Ref == "":
		d.fail(n.get("verify"), join(path, "verify"), "signed_as is for modules in a registry")
	}
}

// mustSign has each module be refused that nobody has to have signed, if the configuration
// wants that.
func (c *Config) mustSign() {
	for i := range c.Tools {
		c.Tools[i].MustSign = c.MustSign && c.Tools[i].Ref != EmbeddedFiles
	}
	for i := range c.Servers {
		m := &c.Servers[i].Module
		m.MustSign = c.MustSign && m.Path+m.Ref != ""
	}
}

// needs reports a table that does not have a key.
func (d *decoder) needs(n *node, path, key, what string) {
	if (n.kind == table || n.kind == null) && n.get(key) == nil {
		d.fail(n, path, "needs %s", what)
	}
}

// module reads where the module is: in a file, in a registry, in the program.
func (d *decoder) module(to *Module) reader {
	return func(n *node, path string) {
		var s string
		d.text(&s, d.checkModule)(n, path)
		switch {
		case strings.HasPrefix(s, ociScheme), s == EmbeddedFiles:
			to.Ref = s
		case s != "":
			to.Path = d.resolve(s)
		}
	}
}

const (
	ociScheme = "oci://"
	// EmbeddedFiles is the Ref of the module of tools that come with wasmgate and
	// read granted directories.
	EmbeddedFiles = "embedded:files"
)

func (d *decoder) checkModule(s string) error {
	switch {
	case s == EmbeddedFiles:
		return nil
	case !strings.HasPrefix(s, ociScheme):
		return exists(d.resolve(s))
	case !strings.Contains(s, "@sha256:"):
		return errors.New("names no digest, so that it could be another module tomorrow: write oci://registry/repository@sha256:DIGEST")
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
		return errors.New("is no name of a server: use lower-case letters, digits and -")
	}
	if slices.Contains(reserved, s) {
		return errors.New("is reserved")
	}
	return nil
}

func (d *decoder) moduleLimits(to *ModuleLimits, n *node, path string) {
	d.table(n, path, map[string]reader{
		"timeout":     d.duration(&to.Timeout, time.Millisecond, time.Hour),
		"memory":      d.size(&to.Memory, 64<<10, 4<<30), // a page, and all pages, of WebAssembly
		"fuel":        d.count(&to.Fuel, 1, maxFuel),
		"output":      d.size(&to.Output, 1<<10, maxSize),
		"log":         d.size(&to.Log, 1<<10, maxSize),
		"host_calls":  d.count(&to.HostCalls, 1, maxHostCalls),
		"concurrent":  d.count(&to.Concurrent, 1, maxConcurrent),
		"files_bytes": d.size(&to.FilesBytes, 1<<10, maxFiles),
	})
}

func (d *decoder) grant(to *ModuleGrant, n *node, path string) {
	d.table(n, path, map[string]reader{
		"http":    func(n *node, path string) { d.httpGrants(&to.HTTP, n, path) },
		"dirs":    func(n *node, path string) { d.dirGrants(&to.Dirs, n, path) },
		"secrets": d.texts(&to.Secrets, checkSecretName),
		"kv":      d.flag(&to.KV),
	})
}

func (d *decoder) httpGrants(to *[]HTTPGrant, n *node, path string) {
	d.items(n, path, func(n *node, path string) {
		g := HTTPGrant{Methods: []string{"GET", "HEAD"}, Path: "/"}
		d.table(n, path, map[string]reader{
			"origin":  d.text(&g.Origin, checkOrigin),
			"methods": d.texts(&g.Methods, checkMethod),
			"path":    d.text(&g.Path, checkPrefix),
			"private": d.flag(&g.Private),
		})
		d.needs(n, path, "origin", "an origin, such as https://api.example.com")
		if slices.ContainsFunc(*to, func(h HTTPGrant) bool { return g.Origin != "" && h.Origin == g.Origin && h.Path == g.Path }) {
			d.fail(n, path, "grants the same path of the same origin twice: put the methods together")
		}
		*to = append(*to, g)
	})
}

func (d *decoder) dirGrants(to *[]DirGrant, n *node, path string) {
	d.items(n, path, func(n *node, path string) {
		var g DirGrant
		d.table(n, path, map[string]reader{"path": d.path(&g.Path), "write": d.flag(&g.Write), "as": d.text(&g.As, guestPath)})
		d.needs(n, path, "path", "a path, the folder that is granted")
		if g.Path != "" {
			g.Path = filepath.Clean(g.Path)
		}
		if slices.ContainsFunc(*to, func(h DirGrant) bool { return g.Path != "" && h.Path == g.Path }) {
			d.fail(n, path, "grants the same folder twice")
		}
		if slices.ContainsFunc(*to, func(h DirGrant) bool { return cmp.Or(g.As, g.Path) == cmp.Or(h.As, h.Path) && g.Path != h.Path }) {
			d.fail(n, path, "is known to the module by the path of another folder")
		}
		*to = append(*to, g)
	})
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
		return fmt.Errorf("is none of %s", strings.Join(methods, ", "))
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
		return errors.New("has the port that it has anyway: leave it out")
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
		return errors.New("is no name of a secret: use letters, digits, _ and -, such as API")
	}
	return nil
}

func (d *decoder) boundSecrets(to *[]BoundSecret, n *node, path string) {
	d.each(n, path, func(f field, path string) {
		s := BoundSecret{Name: f.key}
		if err := checkSecretName(f.key); err != nil {
			d.fail(&node{line: f.line}, path, "%q %v", f.key, err)
		}
		fault := d.faulting()
		d.table(f.value, path, map[string]reader{"value": d.secret(&s.Value), "origin": d.text(&s.Origin, checkOrigin)})
		s.Fault = fault()
		d.needs(f.value, path, "value", "a value, such as \"${API_TOKEN}\"")
		d.needs(f.value, path, "origin", "an origin, the only one that it is sent to")
		if insecure(s.Origin) {
			d.warn(f.line, path, "plain http to another machine: the secret can be read on the way")
		}
		*to = append(*to, s)
	})
}

// secret reads a text that fits into a header and is never quoted.
func (d *decoder) secret(to *Secret) reader {
	return func(n *node, path string) {
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
func (d *decoder) checkSecrets(tools *node, c *Config) {
	var known []string
	for _, s := range c.Secrets {
		known = append(known, s.Name)
	}
	for i, m := range c.Tools { // one for each field of tools
		if len(m.Grant.Secrets) == 0 {
			continue
		}
		f := tools.fields[i]
		for k, item := range f.value.get("grant").get("secrets").items {
			name, err := variables.Expand(item.text, d.lookup)
			if err != nil || !slices.Contains(m.Grant.Secrets, name) {
				continue // reported
			}
			at := join("tools", f.key) + fmt.Sprintf(".grant.secrets[%d]", k)
			j := slices.Index(known, name)
			if j < 0 {
				d.fail(item, at, "%q is none of the secrets%s", item.text, spelling.Suggest(name, known))
				continue
			}
			if fault := c.Secrets[j].Fault; fault != "" && c.Tools[i].Fault == "" {
				c.Tools[i].Fault = fault
			}
			origin := c.Secrets[j].Origin
			if origin != "" && !slices.ContainsFunc(m.Grant.HTTP, func(g HTTPGrant) bool { return g.Origin == origin }) {
				d.warn(item.line, at, "the secret is sent to %s alone, which the module is not granted", origin)
			}
		}
	}
}

func renderLimits(l lines, m ModuleLimits) {
	l.time("timeout", m.Timeout)
	l.size("memory", m.Memory)
	l.number("fuel", m.Fuel)
	l.size("output", m.Output)
	l.size("log", m.Log)
	l.number("host_calls", m.HostCalls)
	l.number("concurrent", m.Concurrent)
	l.size("files_bytes", m.FilesBytes)
}
