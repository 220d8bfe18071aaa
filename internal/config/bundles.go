package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/textproto"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// A Bundle is where a bundle of policies, in OPA's format, comes from. Exactly one
// of Path and URL is set.
type Bundle struct {
	Name    string            `key:"name bundle"`   // of its own among the bundles; from the end of Path or URL unless the file says otherwise
	Path    string            `key:"path path"`     // an archive (.tar.gz) or a folder, which need not be there
	URL     string            `key:"url url https"` // may hold a secret in its query: show the Bundle, not this
	Headers map[string]Secret `key:"headers bundleheader"`
	Private bool              `key:"private"`                   // the host may have a loopback or private address
	Poll    time.Duration     `key:"poll 1s..24h" default:"1m"` // how often the URL is asked for
	Verify  *Verify           `key:"verify"`                    // nil: signatures are not asked for
}

// A Verify says by whom a bundle has to be signed.
type Verify struct {
	// Keys are public keys by id: in PEM, or the path of a file that is read at each
	// load, so that a key can be changed and taken back.
	Keys      map[string]string
	Scope     string `key:"scope"`
	Algorithm string `key:"algorithm RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512|EdDSA"` // with a public key, that OPA knows; empty: the usual one for the kind of key
}

// PEM begins a key that stands in the configuration itself.
const PEM = "-----BEGIN "

// String names the bundle and its path or host, and leaves out what may be secret.
func (b Bundle) String() string {
	if b.Path != "" {
		return fmt.Sprintf("%s (%s)", b.Name, b.Path)
	}
	if u, err := url.Parse(b.URL); err == nil {
		return fmt.Sprintf("%s (%s://%s%s)", b.Name, u.Scheme, u.Host, u.EscapedPath())
	}
	return b.Name
}

// LogValue logs the bundle as String shows it.
func (b Bundle) LogValue() slog.Value { return slog.StringValue(b.String()) }

var bundlePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// needsURL are the keys of a bundle that mean nothing without a url.
var needsURL = []string{"headers", "private", "poll"}

func (b *Bundle) check(d *decoder, n *tree.Node, path string) {
	switch hasPath, hasURL := n.Get("path") != nil, n.Get("url") != nil; {
	case hasPath && hasURL:
		d.fail(n, path, "has a path and a url: give one of them")
	case !hasPath && !hasURL:
		d.fail(n, path, "needs a path, or a url that begins with https://")
	case hasPath:
		for _, f := range n.Fields {
			if slices.Contains(needsURL, f.Key) {
				d.fail(&tree.Node{Line: f.Line}, tree.Join(path, f.Key), "has no effect without a url")
			}
		}
	}
	if b.Name == "" {
		b.Name = bundleName(*b)
	}
}

func (v *Verify) readers(d *decoder) map[string]reader {
	v.Keys = make(map[string]string)
	return map[string]reader{"keys": func(n *tree.Node, path string) {
		d.each(n, path, func(f tree.Field, path string) {
			s, ok := d.checked(f.Value, path, nil)
			switch {
			case !ok:
			case strings.HasPrefix(s, PEM):
				v.Keys[f.Key] = s
			default:
				var file string
				if d.path(&file)(f.Value, path); file != "" {
					v.Keys[f.Key] = file
				}
			}
		})
	}}
}

func (v *Verify) check(d *decoder, n *tree.Node, path string) {
	d.needs(n, path, "keys", "keys: the id of each, and the path of a public key in PEM")
}

func secure(s string) error {
	if !strings.HasPrefix(s, "https:") {
		return errors.New("does not begin with https://")
	}
	return nil
}

// checkBundleHeader leaves the conditions of the request to the gateway, too.
func checkBundleHeader(s string) error {
	if strings.HasPrefix(textproto.CanonicalMIMEHeaderKey(s), "If-") {
		return errors.New("is set by the gateway")
	}
	return checkHeader(s)
}

// bundleName is the last part of where a bundle comes from, without its ending.
func bundleName(b Bundle) string {
	name := filepath.Base(b.Path)
	if u, err := url.Parse(b.URL); err == nil && b.URL != "" {
		name = path.Base(u.Path)
	}
	for _, ending := range []string{".tar.gz", ".tgz"} {
		name = strings.TrimSuffix(name, ending)
	}
	name = strings.ToLower(name)
	if !bundlePattern.MatchString(name) {
		return "bundle"
	}
	return name
}

// shadow reads the policy that decides beside the one in use. What is left out is
// as there.
func (d *decoder) shadow(base Policy, n *tree.Node, path string) *Policy {
	to := base
	to.Shadow = nil
	d.table(n, path, map[string]reader{
		"packs": d.texts(&to.Packs, checkPack),
		"paths": func(n *tree.Node, path string) { to.Paths = nil; d.places(&to.Paths, exists)(n, path) },
		"data":  d.policyData(&to),
	})
	return &to
}
