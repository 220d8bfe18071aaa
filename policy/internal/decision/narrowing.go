package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/internal/spelling"
)

// maxNarrowed bounds the origins, directories or secrets of one narrowing, which
// are compared with those of others pair by pair.
const maxNarrowed = 256

// narrowing reads what the obligation sandbox leaves. Members that are absent
// narrow nothing.
func narrowing(v ast.Value) (obligation.Obligation, error) {
	var n obligation.Narrowing
	err := eachMember("sandbox", "an object", 0, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "http":
			n.HTTP, err = names(v, spelling.Origin)
		case "dirs":
			n.Dirs, err = names(v, spelling.Dir)
		case "secrets":
			n.Secrets, err = names(v, spelling.Secret)
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
func credential(v ast.Value) (obligation.Obligation, error) {
	var n obligation.Narrowing
	err := eachMember("credential", "an object of scopes and ttl", 1, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "scopes":
			n.Scopes, err = names(v, spelling.Scope)
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
