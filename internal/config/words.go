package config

import (
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// words are those that the tags of the configuration use: the checks of texts, and the readers that
// few keys have.
var words = &decode.Words{
	Checks: map[string]decode.Check{
		"approver":     checkApprover,
		"bundle":       check.Matches(bundlePattern, "the name of a bundle: lower-case letters, digits and . _ -"),
		"console":      checkConsole,
		"digest":       check.Matches(digestPattern, "64 hex digits in lower case"),
		"endpoint":     check.Endpoint,
		"exists":       check.Exists,
		"group":        checkGroup,
		"guest":        check.GuestPath,
		"header":       check.HeaderName,
		"host":         check.Matches(hostPattern, "a host, such as tools.example.com or tools.example.com:8443"),
		"hostport":     check.HostPort,
		"https":        check.HTTPS,
		"identity":     identity,
		"link":         linkTarget,
		"local":        check.Matches(localPattern, "the name of a tool as its server has it, or its beginning and *"),
		"mime":         check.Matches(mimePattern, "a media type in lower case, such as text/html or text/*"),
		"moduleserver": checkModuleServer,
		"node":         check.Matches(nodePattern, "a name of letters, digits and -, at most 64"),
		"origin":       check.Matches(originPattern, "an origin in lower case without a path, such as https://app.example.com"),
		"pack":         checkPack,
		"prefix":       check.Prefix,
		"public":       check.PublicURL,
		"regexp":       check.Regexp,
		"repository":   check.Matches(repositoryPattern, "registry/repository, such as ghcr.io/someone/tool"),
		"role":         check.Matches(rolePattern, "a role: letters, digits and . _ -"),
		"scope":        check.Matches(scopePattern, "a scope: one word"),
		"secretname":   check.SecretName,
		"source": func(s string) error {
			_, err := apps.ParseSource(s)
			return err
		},
		"tool": check.Tools,
		"url":  check.URL,
		"web":  check.Origin,
	},
	Readers: map[string]func(to any) decode.Reader{
		"addresses":    decode.For(prefixes),
		"age":          decode.For(decode.Age),
		"apps":         decode.For(readApps),
		"args":         decode.For(decode.Args),
		"bundleheader": decode.For(headers(check.BundleHeader)),
		"command":      decode.For(command),
		"config":       decode.For(texts),
		"existing":     decode.For(existing),
		"groups":       decode.For(mapping(groupPattern)),
		"header":       decode.For(headers(check.Header)),
		"health":       decode.For(health),
		"keyset":       decode.For(keySet),
		"listen":       decode.For(listen),
		"login":        decode.For(serverAuth),
		"methods":      decode.For(methods),
		"offered":      decode.For(offered),
		"places":       decode.For(places),
		"ports":        decode.For(ports),
		"profile":      decode.For(profile),
		"program":      decode.For(program),
		"ratio":        decode.For(ratio),
		"roles":        decode.For(mapping(rolePattern)),
		"seconds":      decode.For(seconds),
		"skills":       decode.For(readSkills),
	},
}

// headers reads headers whose names pass a check.
func headers(name decode.Check) func(*map[string]Secret) decode.Reader {
	return func(to *map[string]Secret) decode.Reader { return decode.Secrets(to, name, check.HeaderValue) }
}

// texts reads texts of a module's own.
func texts(to *map[string]Secret) decode.Reader { return decode.Secrets(to, check.Plain, nil) }

// existing reads paths that have to be there.
func existing(to *[]string) decode.Reader { return decode.Paths(to, check.Exists) }

// places reads paths. Those of confine need not be there yet: a server that lacks one does
// not start, and the others do.
func places(to *[]string) decode.Reader { return decode.Paths(to) }
