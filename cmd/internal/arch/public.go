package arch

import (
	"go/types"
	"maps"
	"slices"
	"strings"
)

// A Surface is what other modules see of the public packages.
type Surface struct {
	// Unnamed are the types of this module in exported signatures, fields and methods that
	// other modules cannot name, as "package.Type".
	Unnamed []string
	// Aliases are the exported aliases, as "package.Type". go doc shows
	// neither their fields nor their constants.
	Aliases []string
}

// Surface returns what other modules see of the house.
func (h House) Surface() (s Surface) {
	names := make(map[string]bool) // of types that other modules have
	var public []*types.Package
	for _, p := range h {
		if !p.Public() {
			continue
		}
		public = append(public, p.types)
		for _, one := range p.types.Scope().Names() {
			t, ok := p.types.Scope().Lookup(one).(*types.TypeName)
			if !ok || !t.Exported() {
				continue
			}
			named, ok := types.Unalias(t.Type()).(*types.Named)
			if !ok {
				continue
			}
			names[pathOf(named.Obj())] = true
			if t.IsAlias() {
				s.Aliases = append(s.Aliases, p.types.Name()+"."+one)
			}
		}
	}
	unnamed := make(map[string]bool)
	w := &walk{seen: make(map[types.Type]bool), meet: func(t *types.TypeName) bool {
		path := pathOf(t)
		if !names[path] && (isInternal(t) || !t.Exported()) {
			unnamed[path] = true
		}
		return !unnamed[path]
	}}
	for _, p := range public {
		for _, one := range p.Scope().Names() {
			if o := p.Scope().Lookup(one); o.Exported() {
				w.see(o.Type())
			}
		}
	}
	s.Unnamed = slices.Sorted(maps.Keys(unnamed))
	return s
}

// pathOf returns a type of this module as "package.Type"; a package has one, and objects of it
// are several: read from its source, and from what was compiled of it.
func pathOf(t *types.TypeName) string {
	return strings.TrimPrefix(t.Pkg().Path(), Module) + "." + t.Name()
}

func isInternal(t *types.TypeName) bool {
	return t.Pkg() != nil && slices.Contains(strings.Split(t.Pkg().Path(), "/"), "internal")
}

// A walk meets all types of this module that users of a type come across. It goes on into
// those for which meet is true.
type walk struct {
	seen map[types.Type]bool
	meet func(*types.TypeName) bool
}

func (w *walk) see(t types.Type) {
	t = types.Unalias(t)
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if t.Obj().Pkg() == nil || !strings.HasPrefix(t.Obj().Pkg().Path(), Module) {
			return // another module's
		}
		if !w.meet(t.Obj()) {
			return
		}
		for one := range t.TypeArgs().Types() {
			w.see(one)
		}
		for m := range t.Methods() {
			if m.Exported() {
				w.see(m.Type())
			}
		}
		w.see(t.Underlying())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.see(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.see(m.Type())
		}
	case *types.Signature:
		w.see(t.Params())
		w.see(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.see(v.Type())
		}
	case *types.Map:
		w.see(t.Key())
		w.see(t.Elem())
	case interface{ Elem() types.Type }: // arrays, channels, pointers, slices
		w.see(t.Elem())
	}
}
