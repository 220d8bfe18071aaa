package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
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

// PEM begins a key that is written in the configuration itself.
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

// Check implements [decode.Checker].
func (b *Bundle) Check(v decode.Value) {
	switch hasPath, hasURL := v.Has("path"), v.Has("url"); {
	case hasPath && hasURL:
		v.Fail("has a path and a url: give one of them")
	case !hasPath && !hasURL:
		v.Fail("needs a path, or a url that begins with https://")
	case hasPath:
		for f := range v.Entries() {
			if slices.Contains(needsURL, f.Key) {
				f.At.Fail("has no effect without a url")
			}
		}
	}
	if b.Name == "" {
		b.Name = bundleName(*b)
	}
}

// Readers implements [decode.Reading].
func (y *Verify) Readers() map[string]decode.Reader {
	y.Keys = make(map[string]string)
	return map[string]decode.Reader{"keys": func(v decode.Value) {
		for f := range v.Entries() {
			s, ok := f.Value.Checked()
			switch {
			case !ok:
			case strings.HasPrefix(s, PEM):
				y.Keys[f.Key] = s
			default:
				var file string
				if decode.Path(&file)(f.Value); file != "" {
					y.Keys[f.Key] = file
				}
			}
		}
	}}
}

// Check implements [decode.Checker].
func (*Verify) Check(v decode.Value) {
	v.Needs("keys", "keys: the id of each, and the path of a public key in PEM")
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

// shadow reads the policy that is evaluated in addition to the one in use. Keys that are left out are
// taken from that one.
func shadow(base Policy, v decode.Value) *Policy {
	to := base
	to.Shadow = nil
	v.Table(map[string]decode.Reader{
		"packs": decode.Texts(&to.Packs, checkPack),
		"paths": func(v decode.Value) { to.Paths = nil; decode.Paths(&to.Paths, check.Exists)(v) },
		"data":  policyData(&to),
	})
	return &to
}
