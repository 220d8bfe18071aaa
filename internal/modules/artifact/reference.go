package artifact

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	scheme = "oci://"
	// maxReference bounds a reference to a registry, in bytes: host and repository
	// may have 255 each, and a tag 128.
	maxReference = 1024
)

// The grammar of the OCI distribution specification 1.1, "Pulling manifests".
// IPv6 literals are left out.
var (
	hostPattern       = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	portPattern       = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	repositoryPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagPattern        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestPattern     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// A Reference says where a module is: a file, or in a registry.
type Reference struct {
	Path string // of a file; all else is empty then

	Registry   string // host, in lower case, and port if there is one
	Repository string
	Tag        string // for the reader: it is not asked for; may be empty
	Digest     string // of the manifest or index: sha256: and 64 hex digits in lower case
}

// Parse reads a reference. It looks only at s: [Store.Fetch] finds out whether the file or the module
// exists.
//
// A registry's reference without a digest is an error that says how to get one: anyone who can write to
// the repository can move a tag to another module.
func Parse(s string) (Reference, error) {
	rest, remote := strings.CutPrefix(s, scheme)
	switch {
	case !remote && s == "":
		return Reference{}, errors.New("artifact: the reference is empty: write the path of a WASM file, or oci://registry/repository@sha256:DIGEST")
	case !remote && strings.Contains(s, "://"):
		return Reference{}, fmt.Errorf("artifact: %.200q is neither the path of a file nor oci://registry/repository@sha256:DIGEST", s)
	case !remote:
		return Reference{Path: s}, nil
	case len(s) > maxReference:
		return Reference{}, fmt.Errorf("artifact: the reference %.80q... has %d bytes; at most %d are allowed", s, len(s), maxReference)
	}
	r, err := parseRemote(rest)
	if err != nil {
		return Reference{}, fmt.Errorf("artifact: %.200q: %w", s, err)
	}
	return r, nil
}

func parseRemote(s string) (Reference, error) {
	name, digest, pinned := strings.Cut(s, "@")
	registry, path, _ := strings.Cut(name, "/")
	repository, tag, tagged := strings.Cut(path, ":")
	registry = strings.ToLower(registry)
	switch {
	case !isRegistry(registry):
		return Reference{}, errors.New("the registry is not a host or host:port such as ghcr.io or localhost:5000")
	case !repositoryPattern.MatchString(repository):
		return Reference{}, errors.New("the repository is not made of lower-case letters and digits, with / . _ and - between them, such as someone/tool")
	case tagged && !tagPattern.MatchString(tag):
		return Reference{}, errors.New("the tag is not up to 128 letters, digits, _ . and -")
	case !pinned:
		return Reference{}, fmt.Errorf("has no digest, so that its content could change: append @sha256:..., as printed by 'oras resolve %s'", name)
	case !digestPattern.MatchString(digest):
		return Reference{}, errors.New("the digest is not sha256: and 64 hex digits in lower case")
	}
	return Reference{Registry: registry, Repository: repository, Tag: tag, Digest: digest}, nil
}

func isRegistry(s string) bool {
	host, port, ported := strings.Cut(s, ":")
	if ported {
		n, err := strconv.Atoi(port)
		if !portPattern.MatchString(port) || err != nil || n > 65535 {
			return false
		}
	}
	return hostPattern.MatchString(host)
}

// String returns the reference as [Parse] reads it.
func (r Reference) String() string {
	if r.Digest == "" {
		return r.Path
	}
	tag := r.Tag
	if tag != "" {
		tag = ":" + tag
	}
	return scheme + r.Registry + "/" + r.Repository + tag + "@" + r.Digest
}
