package vet

import (
	"go/types"
	"strings"
)

const (
	module  = "github.com/coir-go/coir"
	bufPath = module + "/buf"
)

// nameOf returns the name of a function or method as package.Name or package.Type.Name, with the package's import path.
// It returns "" for methods of types without a name. The name of a generic function has no type arguments.
func nameOf(f *types.Func) string {
	if f == nil || f.Pkg() == nil {
		return ""
	}
	name := pathOf(f.Pkg()) + "."
	if recv := f.Signature().Recv(); recv != nil {
		t := named(recv.Type())
		if t == nil {
			return ""
		}
		name += t.Obj().Name() + "."
	}
	return name + f.Name()
}

// named returns the type behind t or *t if it has a name, or nil.
func named(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// isNamed reports whether t is the type of that name, and not a pointer to it.
func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && pathOf(n.Obj().Pkg()) == path
}

// pathOf returns the import path of a package. The go command adds the test to the path of a package that it compiles
// again for a test, as in "example.com/a [example.com/b.test]".
func pathOf(p *types.Package) string {
	path, _, _ := strings.Cut(p.Path(), " ")
	return path
}
