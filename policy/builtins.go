package policy

import (
	"context"
	"errors"
	"maps"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/plain"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// The built-in functions of the packs paths and urls. They are Go because Rego
// would need a regular expression for each trick with a name, and one more for
// each that no one had thought of; here what is not known to be plain is refused.
// They are functions of their arguments, and linear in their length.
var (
	pathDecl = &rego.Function{
		Name: "wasmgate.path_within",
		Decl: types.NewFunction(types.Args(types.A, types.A), types.B),
	}
	urlDecl = &rego.Function{
		Name: "wasmgate.url",
		Decl: types.NewFunction(types.Args(types.A), types.NewObject(nil, types.NewDynamicProperty(types.S, types.A))),
	}
)

// declared returns the functions that rules have besides OPA's.
func declared() []*ast.Builtin {
	functions := []*rego.Function{tables.Rates.Decl, pathDecl, urlDecl}
	for _, l := range tables.Grants {
		functions = append(functions, l.Decl)
	}
	var all []*ast.Builtin
	for _, f := range functions {
		all = append(all, &ast.Builtin{Name: f.Name, Decl: f.Decl})
	}
	return all
}

// plainBuiltins gives an evaluation the functions that need no data.
func plainBuiltins(r *rego.Rego) {
	rego.Function2(pathDecl, func(_ rego.BuiltinContext, path, root *ast.Term) (*ast.Term, error) {
		p, ok1 := path.Value.(ast.String)
		dir, ok2 := root.Value.(ast.String)
		return ast.BooleanTerm(ok1 && ok2 && plain.Within(string(p), string(dir))), nil
	})(r)
	rego.Function1(urlDecl, func(_ rego.BuiltinContext, text *ast.Term) (*ast.Term, error) {
		s, ok := text.Value.(ast.String)
		if !ok {
			return nil, nil
		}
		u, ok := plain.ParseURL(string(s))
		if !ok {
			return nil, nil // undefined
		}
		return ast.ObjectTerm(
			input.Pair("scheme", ast.StringTerm(u.Scheme)), input.Pair("host", ast.StringTerm(u.Host)), input.Pair("port", ast.IntNumberTerm(u.Port)),
			input.Pair("path", ast.StringTerm(u.Path)), input.Pair("query", ast.StringTerm(u.Query)), input.Pair("origin", ast.StringTerm(u.Origin())),
		), nil
	})(r)
}

// newStore returns a store that holds the data of bundles and of the program, data.grants and
// data.ratelimit, and the option by which the functions of policies are found, with
// the indexes of these two.
func newStore(ctx context.Context, grants []Grant, limits []RateLimit, data map[string]any) (storage.Store, func(*rego.Rego), error) {
	all := map[string]any{}
	for name, list := range map[string]any{"grants": append([]Grant{}, grants...), "ratelimit": append([]RateLimit{}, limits...)} {
		v, err := ast.InterfaceToValue(list)
		if err != nil {
			return nil, nil, err
		}
		if all[name], err = ast.JSON(v); err != nil {
			return nil, nil, err
		}
	}
	maps.Copy(all, data)
	store := inmem.NewFromObjectWithOpts(all, inmem.OptReturnASTValuesOnRead(true))
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer store.Abort(ctx, txn)
	var stored [2]ast.Value
	for i, name := range []string{"grants", "ratelimit"} {
		v, err := store.Read(ctx, txn, storage.Path{name})
		if err != nil {
			return nil, nil, err
		}
		var ok bool
		if stored[i], ok = v.(ast.Value); !ok {
			return nil, nil, errors.New("the store does not keep values of Rego")
		}
	}
	granted, limited := newIndex(grants), newRateIndex(limits)
	functions := []func(*rego.Rego){plainBuiltins, tables.Rates.Over(stored[1], limited, readRateLimits)}
	for _, l := range tables.Grants {
		functions = append(functions, l.Over(stored[0], granted, readGrants))
	}
	return store, func(r *rego.Rego) {
		for _, give := range functions {
			give(r)
		}
	}, nil
}
