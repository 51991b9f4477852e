package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Grammar checks the exported names of the package in dir against the rules of docs/HACKING.md that a machine can
// check. It returns one sentence for each name that breaks one.
func Grammar(dir string) ([]string, error) {
	var found []string
	err := eachDecl(dir, func(at token.Position, decl ast.Decl) {
		for _, what := range ungrammatical(decl) {
			found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, what))
		}
	})
	if err != nil {
		return nil, err
	}
	forms, err := ungrammaticalForms(dir)
	found = append(found, forms...)
	slices.Sort(found)
	return found, err
}

func ungrammatical(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(baseName(d.Recv.List[0].Type))) {
			return ungrammaticalFunc(d)
		}
	case *ast.GenDecl:
		if d.Tok == token.CONST {
			return ungrammaticalConsts(d)
		}
		return ungrammaticalMethods(d)
	}
	return nil
}

// ungrammaticalMethods checks types, and the methods of interfaces.
func ungrammaticalMethods(d *ast.GenDecl) (found []string) {
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.TypeSpec)
		if !ok || !s.Name.IsExported() {
			continue
		}
		found = append(found, ungrammaticalType(s)...)
		i, ok := s.Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		for _, m := range i.Methods.List {
			if typ, ok := m.Type.(*ast.FuncType); ok && m.Names[0].IsExported() { // not embedded
				found = append(found, ungrammaticalFunc(&ast.FuncDecl{Recv: i.Methods, Name: m.Names[0], Type: typ})...)
			}
		}
	}
	return found
}

func ungrammaticalFunc(d *ast.FuncDecl) (found []string) {
	name := d.Name.Name
	say := func(format string, args ...any) { found = append(found, name+" "+fmt.Sprintf(format, args...)) }
	const limit = "time.Duration"
	params, results := typesOf(d.Type.Params), typesOf(d.Type.Results)
	switch at := slices.Index(params, "context.Context"); {
	case at > 0:
		say("takes a context that is not its first parameter")
	case at == 0 && strings.HasPrefix(name, "Try"):
		say("takes a context: what never waits needs none")
	case at == 0 && len(d.Type.Params.List[0].Names) > 0 && d.Type.Params.List[0].Names[0].Name != "ctx":
		say("calls its context %s, not ctx", d.Type.Params.List[0].Names[0].Name)
	}
	if d.Recv != nil && strings.HasSuffix(name, "Timeout") && lastBeforeOptions(params) != limit {
		say("has a time limit, and does not take it last")
	}
	// With a context it is not a property: it does something and counts, as a sink of a stream does.
	if (hasPrefix(name, "Count") || hasPrefix(name, "Num")) && !slices.Contains(params, "context.Context") {
		say("is a count, and is not called Len")
	}
	// NewFD has the parameters of os.NewFile.
	if d.Recv == nil && hasPrefix(name, "New") && name != "NewFD" && takesName(d.Type.Params) {
		say("takes a name, which is the option WithName")
	}
	result := ""
	if len(results) == 1 {
		result = strings.TrimPrefix(results[0], "coir.")
	}
	if want, ok := scopes[name]; ok {
		if !slices.Equal(results, []string{"context.Context", want}) {
			say("does not return a context and a %s, as that of package context does", want)
		}
		return found
	}
	// Whether a call of what takes effect once did so; or, if it can fail or wait, an error.
	if (name == "Close" || name == "Abort") && d.Recv != nil && !slices.Contains([]string{"bool", "error"}, result) {
		say("ends something, and does not report whether this call did")
	}
	if d.Recv == nil && hasPrefix(name, "New") && slices.Contains(params, "bool") {
		say("takes a bool, which is an option")
	}
	if hasPrefix(name, "On") && !slices.ContainsFunc(params, func(p string) bool { return strings.HasPrefix(p, "func(") }) {
		say("begins with On, and takes no function to call")
	}
	switch {
	case d.Recv == nil && hasPrefix(name, "With") && !strings.HasSuffix(result, "Option"):
		say("begins with With, and returns no option")
	case result == "Case" && name != "After" && !strings.HasSuffix(name, "Case"):
		say("returns a case, and does not end in Case")
	case d.Recv == nil && strings.HasSuffix(result, "Option") && !strings.HasPrefix(result, "[]") &&
		!hasPrefix(name, "With") && !hasPrefix(name, "On"):
		say("returns an option, and begins neither with With nor with On")
	case d.Recv != nil && strings.HasPrefix(result, "iter.Seq") && !hasPrefix(name, "All"):
		say("returns an iterator, and does not begin with All")
	case strings.HasPrefix(result, "iter.Seq") && slices.Contains(params, "context.Context") &&
		!(strings.HasPrefix(result, "iter.Seq2[") && strings.HasSuffix(result, ", error]")):
		say("returns an iterator that ctx may end, and does not yield the error")
	}
	return found
}

// takesName reports whether one of the parameters is called name.
func takesName(params *ast.FieldList) bool {
	return slices.ContainsFunc(params.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == "name" })
	})
}

// lastBeforeOptions returns the type of the last parameter, not counting options.
func lastBeforeOptions(params []string) string {
	n := len(params)
	if n > 0 && strings.HasPrefix(params[n-1], "...") && strings.HasSuffix(params[n-1], "Option") {
		n--
	}
	if n == 0 {
		return ""
	}
	return params[n-1]
}

// scopes are the functions that have the names of those of package context, or their form, each with the type of its
// second result.
var scopes = map[string]string{
	"WithCancel":      "context.CancelFunc",
	"WithCancelCause": "context.CancelCauseFunc",
	"WithTimeout":     "context.CancelFunc",
	"WithDeadline":    "context.CancelFunc",
	"WithGrace":       "context.CancelFunc",
}

// typesOf returns the type of each parameter or result.
func typesOf(list *ast.FieldList) (all []string) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			all = append(all, source(f.Type))
		}
	}
	return all
}

// hasPrefix reports whether name is the prefix, or continues after it with another word.
func hasPrefix(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || rest[0] >= 'A' && rest[0] <= 'Z')
}

// ungrammaticalConsts checks that constants of a type of the package carry its name. A constant without type and
// value takes the type of the one above.
func ungrammaticalConsts(d *ast.GenDecl) (found []string) {
	typ := ""
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		switch {
		case s.Type != nil:
			typ = source(s.Type)
		case len(s.Values) > 0:
			typ = ""
			if call, ok := s.Values[0].(*ast.CallExpr); ok {
				typ = source(call.Fun)
			}
		}
		if !ast.IsExported(typ) {
			continue
		}
		prefix := typ
		for _, noun := range []string{"Policy", "Mode", "Kind"} {
			if before, ok := strings.CutSuffix(typ, noun); ok && before != "" {
				prefix = before
			}
		}
		for _, name := range s.Names {
			if name.IsExported() && !hasPrefix(name.Name, prefix) {
				found = append(found, fmt.Sprintf("%s is a %s, and does not begin with %s", name.Name, typ, prefix))
			}
		}
	}
	return found
}
