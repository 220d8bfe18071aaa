package artifact_test

import (
	"strings"
	"testing"

	oras "oras.land/oras-go/v2/registry"

	"github.com/wasmgate/wasmgate/internal/modules/artifact"
)

var someDigest = "sha256:" + strings.Repeat("0a", 32)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		ref  string
		want artifact.Reference
	}{
		"a file":                     {"tools/text.wasm", artifact.Reference{Path: "tools/text.wasm"}},
		"a file of Windows":          {`C:\tools\text.wasm`, artifact.Reference{Path: `C:\tools\text.wasm`}},
		"a file with an at sign":     {"a@sha256:b", artifact.Reference{Path: "a@sha256:b"}},
		"a registry":                 {"oci://ghcr.io/a/b@" + someDigest, artifact.Reference{Registry: "ghcr.io", Repository: "a/b", Digest: someDigest}},
		"a registry, a port, a tag":  {"oci://localhost:5000/a:v1.2@" + someDigest, artifact.Reference{Registry: "localhost:5000", Repository: "a", Tag: "v1.2", Digest: someDigest}},
		"a host in upper case":       {"oci://GHCR.io/a@" + someDigest, artifact.Reference{Registry: "ghcr.io", Repository: "a", Digest: someDigest}},
		"separators in a repository": {"oci://127.0.0.1:1/a-b/c__d/e.f_g--h@" + someDigest, artifact.Reference{Registry: "127.0.0.1:1", Repository: "a-b/c__d/e.f_g--h", Digest: someDigest}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := artifact.Parse(tt.ref)
			if err != nil || got != tt.want {
				t.Fatalf("%#v, %v", got, err)
			}
			if again, err := artifact.Parse(got.String()); err != nil || again != got {
				t.Errorf("%s is read as %#v, %v", got, again, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ ref, words string }{
		"nothing":                      {"", "is empty"},
		"another scheme":               {"https://ghcr.io/a@" + someDigest, "neither the path of a file nor oci://"},
		"another case of the scheme":   {"OCI://ghcr.io/a@" + someDigest, "neither the path of a file nor oci://"},
		"a tag only":                   {"oci://ghcr.io/a/b:v1", "append @sha256:..., as printed by 'oras resolve ghcr.io/a/b:v1'"},
		"no tag and no digest":         {"oci://ghcr.io/a/b", "has no digest"},
		"an empty digest":              {"oci://ghcr.io/a/b@", "the digest is not"},
		"a short digest":               {"oci://ghcr.io/a/b@sha256:abc", "the digest is not"},
		"a digest in upper case":       {"oci://ghcr.io/a/b@" + strings.ToUpper(someDigest), "the digest is not"},
		"another digest":               {"oci://ghcr.io/a/b@sha512:" + strings.Repeat("0a", 64), "the digest is not"},
		"a digest and more":            {"oci://ghcr.io/a/b@" + someDigest + "/x", "the digest is not"},
		"an empty tag":                 {"oci://ghcr.io/a/b:@" + someDigest, "the tag is not"},
		"no repository":                {"oci://ghcr.io@" + someDigest, "the repository is not"},
		"a repository that climbs":     {"oci://ghcr.io/a/../b@" + someDigest, "the repository is not"},
		"a repository in upper case":   {"oci://ghcr.io/A@" + someDigest, "the repository is not"},
		"a repository with a query":    {"oci://ghcr.io/a?b=c@" + someDigest, "the repository is not"},
		"a repository with an escape":  {"oci://ghcr.io/a%2f..@" + someDigest, "the repository is not"},
		"no registry":                  {"oci:///a@" + someDigest, "the registry is not a host"},
		"a registry with credentials":  {"oci://user:word@ghcr.io/a@" + someDigest, "the registry is not a host"},
		"a registry of dots":           {"oci://../a@" + someDigest, "the registry is not a host"},
		"a port that is none":          {"oci://ghcr.io:65536/a@" + someDigest, "the registry is not a host"},
		"a registry with line breaks":  {"oci://ghcr.io\n/a@" + someDigest, "the registry is not a host"},
		"a reference that is too long": {"oci://ghcr.io/" + strings.Repeat("a", 1024) + "@" + someDigest, "at most 1024"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := artifact.Parse(tt.ref)
			if err == nil || !strings.Contains(err.Error(), tt.words) {
				t.Fatalf("%#v, %v; want an error with %q", got, err, tt.words)
			}
			if got != (artifact.Reference{}) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%#v, %v", got, err)
			}
		})
	}
}

// Any text is a reference or an error; a reference is written as it is read, has
// a digest if it leads to a registry, and means the same to the library that
// fetches.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a.wasm", "oci://", "oci://ghcr.io/a:v1", "oci://ghcr.io/a/b:v1@" + someDigest, "oci://localhost:5000/a@" + someDigest,
		"oci://a@b/c:d@" + someDigest, "oci://[::1]:5000/a@" + someDigest, "oci://h/a__b.c-d/e@" + someDigest, "oci://h:0/a@" + someDigest, "file:///x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := artifact.Parse(s)
		if err != nil {
			if r != (artifact.Reference{}) {
				t.Fatalf("%#v with error %v", r, err)
			}
			return
		}
		if again, err := artifact.Parse(r.String()); err != nil || again != r {
			t.Fatalf("%#v is written as %s, which is %#v, %v", r, r, again, err)
		}
		if (r.Path == "") == (r.Digest == "") {
			t.Fatalf("%#v is a file and in a registry, or neither", r)
		}
		if r.Path != "" {
			return
		}
		o, err := oras.ParseReference(strings.TrimPrefix(r.String(), "oci://"))
		if err != nil || o.Registry != r.Registry || o.Repository != r.Repository || o.Reference != r.Digest {
			t.Fatalf("%#v is %#v, %v for the library", r, o, err)
		}
	})
}
