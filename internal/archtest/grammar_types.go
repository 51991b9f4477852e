package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// The rules of the grammar that need all declarations of a package, or the types of fields.

// ungrammaticalForms checks that each form of an operation, TryX or XCase, repeats the name X of an operation of the
// same type.
func ungrammaticalForms(dir string) (found []string, err error) {
	has := map[string]bool{}
	type method struct {
		at       token.Position
		of, name string
	}
	var forms []method
	add := func(at token.Position, of, name string) {
		has[of+"."+name] = true
		forms = append(forms, method{at, of, name})
	}
	err = eachDecl(dir, func(at token.Position, decl ast.Decl) {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if of := receiverName(d); d.Name.IsExported() && (of == "" || ast.IsExported(of)) {
				add(at, of, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok || !s.Name.IsExported() {
					continue
				}
				if i, ok := s.Type.(*ast.InterfaceType); ok {
					for _, m := range i.Methods.List {
						for _, name := range m.Names {
							add(at, s.Name.Name, name.Name)
						}
					}
				}
			}
		}
	})
	for _, m := range forms {
		operation := m.name
		switch {
		case hasPrefix(m.name, "Try"):
			operation = strings.TrimPrefix(m.name, "Try")
		case strings.HasSuffix(m.name, "Case") && !slices.Contains(states, m.name):
			operation = strings.TrimSuffix(m.name, "Case")
		}
		if operation != "" && !has[m.of+"."+operation] {
			found = append(found, fmt.Sprintf("%s:%d: %s is a form of %s, which there is not",
				filepath.Base(m.at.Filename), m.at.Line, m.name, operation))
		}
	}
	return found, err
}

// states are the cases that are named after a state, not after an operation.
var states = []string{"DoneCase", "GoneCase"}

func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	return baseName(d.Recv.List[0].Type)
}

// ungrammaticalType checks the types of options and of counters.
func ungrammaticalType(s *ast.TypeSpec) (found []string) {
	name := s.Name.Name
	switch {
	case !s.Name.IsExported():
	case strings.HasSuffix(name, "Option") && !isOpaque(s.Type):
		found = append(found, name+" is an option that other packages could make: make it a func(*settings), "+
			"an interface with unexported methods, or a struct with unexported fields")
	case strings.HasSuffix(name, "Stats"):
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			break
		}
		for _, f := range fields.Fields.List {
			switch typ := source(f.Type); typ {
			case "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "float64":
				found = append(found, fmt.Sprintf("%s has a number of type %s: what only grows is a uint64, and what there is "+
					"now an int", name, typ))
			}
		}
	}
	return found
}

// isOpaque reports whether only its own package can make a value of the type, other than the zero value.
func isOpaque(e ast.Expr) bool {
	hidden := func(list *ast.FieldList) bool {
		return len(list.List) > 0 && !slices.ContainsFunc(list.List, func(f *ast.Field) bool {
			return len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
		})
	}
	switch t := e.(type) {
	case *ast.FuncType:
		params := typesOf(t.Params)
		return len(params) == 1 && params[0] == "*settings"
	case *ast.InterfaceType:
		return hidden(t.Methods)
	case *ast.StructType:
		return hidden(t.Fields)
	}
	return false
}
