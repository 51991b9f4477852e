package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// This file finds the types of variables, as far as the source file says them where it declares the variables: as a
// receiver, as a parameter, by var, or with a composite literal, new, or a function of the file. Package go/types would
// find all types, but it needs the sources of all imports, which takes seconds. A report needs only a name that tells
// two locks apart.

// variables are the variables that are known at a place, with the names of their types: those of the file, and of the
// functions around the place, from outside to inside. The type is empty if it is unknown, or if a function has several
// variables with the name.
type variables []map[string]string

// typed returns the text of an expression with the type of its variable in place of the variable, or "" if the type is
// not known.
func (known variables) typed(x ast.Expr, text string) string {
	root := variableOf(x)
	rest, ok := strings.CutPrefix(text, root)
	if root == "" || !ok {
		return ""
	}
	for k := len(known) - 1; k >= 0; k-- {
		switch name, ok := known[k][root]; {
		case !ok:
		case name == "" || rest == "" && strings.Contains(name, "."): // a variable that is a sync.Mutex itself
			return ""
		default:
			return name + rest
		}
	}
	return ""
}

// variableOf returns the variable that an expression such as s.conns[i].mu begins with, or "".
func variableOf(x ast.Expr) string {
	for {
		switch of := x.(type) {
		case *ast.Ident:
			return of.Name
		case *ast.SelectorExpr:
			x = of.X
		case *ast.IndexExpr:
			x = of.X
		default:
			return ""
		}
	}
}

// scopes are the functions around the node that is visited.
type scopes struct {
	known   variables
	opens   []bool            // whether each node around it is a function
	results map[string]string // the types that the functions of the file return first
}

// inFile returns the scopes before the first node of a file is visited.
func inFile(tree *ast.File) *scopes {
	s := &scopes{known: variables{map[string]string{}}, results: map[string]string{}}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Type.Results != nil && len(f.Type.Results.List) > 0 {
			s.results[f.Name.Name] = typeName(f.Type.Results.List[0].Type)
		}
	}
	for _, d := range tree.Decls { // a function may use a variable that is declared below it
		if g, ok := d.(*ast.GenDecl); ok {
			for _, of := range g.Specs {
				s.declare(of)
			}
		}
	}
	return s
}

// enter is called for each node, and with nil at the end of each, as ast.Inspect does. It returns the known variables.
func (s *scopes) enter(node ast.Node) variables {
	if node == nil {
		last := len(s.opens) - 1
		if s.opens[last] {
			s.known = s.known[:len(s.known)-1]
		}
		s.opens = s.opens[:last]
		return s.known
	}
	opens := true
	switch x := node.(type) {
	case *ast.FuncDecl:
		s.open(x.Recv, x.Type.Params, x.Type.Results)
	case *ast.FuncLit:
		s.open(nil, x.Type.Params, x.Type.Results)
	default:
		if opens = false; len(s.known) > 1 {
			s.declare(node)
		}
	}
	s.opens = append(s.opens, opens)
	return s.known
}

// open begins a function.
func (s *scopes) open(lists ...*ast.FieldList) {
	s.known = append(s.known[:len(s.known):len(s.known)], map[string]string{})
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				s.set(name, typeName(field.Type))
			}
		}
	}
}

// declare adds the variables that a node declares.
func (s *scopes) declare(node ast.Node) {
	switch x := node.(type) {
	case *ast.ValueSpec:
		for i, name := range x.Names {
			of := typeName(x.Type)
			if x.Type == nil && len(x.Values) == len(x.Names) {
				of = s.typeOf(x.Values[i])
			}
			s.set(name, of)
		}
	case *ast.AssignStmt:
		for i, left := range x.Lhs {
			of := ""
			if len(x.Rhs) == len(x.Lhs) {
				of = s.typeOf(x.Rhs[i])
			}
			if x.Tok == token.DEFINE {
				s.set(left, of)
			}
		}
	case *ast.RangeStmt:
		if x.Tok == token.DEFINE {
			s.set(x.Key, "")
			s.set(x.Value, "")
		}
	}
}

// set records the type of a variable of the current function.
func (s *scopes) set(name ast.Expr, of string) {
	id, ok := name.(*ast.Ident)
	if !ok {
		return
	}
	known := s.known[len(s.known)-1]
	if was, ok := known[id.Name]; ok && was != of {
		of = ""
	}
	known[id.Name] = of
}

// typeOf returns the name of the type of a value, or "".
func (s *scopes) typeOf(value ast.Expr) string {
	if x, ok := value.(*ast.UnaryExpr); ok && x.Op == token.AND {
		value = x.X
	}
	switch x := value.(type) {
	case *ast.CompositeLit:
		return typeName(x.Type)
	case *ast.CallExpr:
		called, ok := x.Fun.(*ast.Ident)
		switch {
		case !ok:
		case called.Name == "new" && len(x.Args) == 1:
			return typeName(x.Args[0])
		default:
			return s.results[called.Name]
		}
	}
	return ""
}

// typeName returns the name of a type without its pointer and its type arguments, or "" if the type has no name.
func typeName(x ast.Expr) string {
	switch of := x.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.ParenExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.IndexListExpr:
		return typeName(of.X)
	case *ast.SelectorExpr:
		if pkg, ok := of.X.(*ast.Ident); ok {
			return pkg.Name + "." + of.Sel.Name
		}
	}
	return ""
}
