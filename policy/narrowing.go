package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate"
)

// maxNarrowed bounds the origins, directories or secrets of one narrowing, which
// are compared with those of others pair by pair.
const maxNarrowed = 256

// narrowing reads what the obligation sandbox leaves. Members that are absent
// narrow nothing.
func narrowing(v ast.Value) (gate.Obligation, error) {
	var n gate.Narrowing
	err := eachMember("sandbox", "an object", 0, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "http":
			n.HTTP, err = names(v, checkOrigin)
		case "dirs":
			n.Dirs, err = names(v, checkDir)
		case "secrets":
			n.Secrets, err = names(v, checkName)
		case "kv":
			kv, ok := v.(ast.Boolean)
			if !ok {
				err = errors.New("expected true or false")
			}
			n.NoKV = !bool(kv)
		case "fuel":
			number, _ := v.(ast.Number)
			if n.Fuel, err = strconv.ParseUint(string(json.Number(number)), 10, 64); err != nil || n.Fuel == 0 {
				err = errors.New("expected a whole number of instructions, at least 1")
			}
		case "timeout":
			n.Timeout, err = duration(v)
		default:
			err = errMember
		}
		return err
	})
	return n, err
}

// credential reads which scopes of the server's login are left, and for how long a token with
// these alone is used.
func credential(v ast.Value) (gate.Obligation, error) {
	var n gate.Narrowing
	err := eachMember("credential", "an object of scopes and ttl", 1, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "scopes":
			n.Scopes, err = names(v, checkScope)
		case "ttl":
			n.TTL, err = duration(v)
		default:
			err = errMember
		}
		return err
	})
	if err == nil && n.Scopes == nil {
		err = errors.New("credential.scopes: missing; an empty list leaves nothing")
	}
	return n, err
}

func duration(v ast.Value) (time.Duration, error) {
	text, _ := v.(ast.String)
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		err = errors.New(`expected a positive duration such as "5s"`)
	}
	return d, err
}

// names reads a list or set of names; one that is empty is not nil.
func names(v ast.Value, check func(string) error) ([]string, error) {
	var terms []*ast.Term
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { terms = append(terms, t) })
	case ast.Set:
		terms = v.Slice()
	default:
		return nil, errors.New("expected a list")
	}
	if len(terms) > maxNarrowed {
		return nil, fmt.Errorf("%d names are more than %d", len(terms), maxNarrowed)
	}
	list := make([]string, 0, len(terms))
	for _, t := range terms {
		s, ok := t.Value.(ast.String)
		if !ok {
			return nil, fmt.Errorf("expected strings, found %v", t)
		}
		if err := check(string(s)); err != nil {
			return nil, fmt.Errorf("%v: %w", t, err)
		}
		list = append(list, string(s))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

var (
	originPattern = regexp.MustCompile(`^https?://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$`)
	drivePattern  = regexp.MustCompile(`^[A-Za-z]:/`)
)

// checkOrigin accepts only the one way in which an origin is written (RFC 6454,
// section 6.2): names are compared as they are.
func checkOrigin(s string) error {
	own := strings.HasPrefix(s, "https:") && strings.HasSuffix(s, ":443") || strings.HasPrefix(s, "http:") && strings.HasSuffix(s, ":80")
	if own || !originPattern.MatchString(s) {
		return errors.New("expected an origin such as https://api.example.com, in lower case and without the scheme's own port")
	}
	return nil
}

func checkDir(s string) error {
	if path.Clean(s) != s || s[0] != '/' && !drivePattern.MatchString(s) {
		return errors.New("expected a directory such as /srv/docs, absolute and without . or .. in it")
	}
	return nil
}

// checkScope accepts what can be one of several scopes (RFC 6749, section 3.3).
func checkScope(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return errors.New(`expected a scope: printable ASCII without spaces, " and \`)
	}
	return nil
}

func checkName(s string) error {
	if s == "" {
		return errors.New("expected the name of a secret")
	}
	return nil
}
