package sched

// The source of the three packages that race builds hide from the detector: which functions carry the pragma, and that
// none of them uses what is instrumented in spite of it.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plain names the functions that need no pragma, by package, and why.
var plain = map[string]string{
	"park.State.String":     "touches nothing that is shared",
	"park.Outcome.String":   "touches nothing that is shared",
	"sched.next.empty":      "atomics only",
	"sched.ring.len":        "atomics only",
	"sched.Scheduler.Enter": "atomics only",
	"sched.Scheduler.Home":  "reads what never changes",
	"sched.Scheduler.Clock": "reads what never changes",
	"sched.stackOf":         "touches nothing that is shared",
	"sched.stack":           "touches nothing that is shared",
}

// Spec: FB-29 (the race detector sees fibers as goroutines)
func TestFunctionsAreNorace(t *testing.T) {
	used := map[string]bool{}
	checked := 0
	for _, dir := range []string{"../park", "../wait", "."} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				checked++
				full := file.Name.Name + "." + funcName(f)
				where := fset.Position(f.Pos())
				switch marked := isNorace(f); {
				case plain[full] != "":
					used[full] = true
					if marked {
						t.Errorf("%s: %s is marked and in the list of those that need not be", where, full)
					}
				case !marked:
					t.Errorf("%s: %s lacks //go:norace", where, full)
				}
				ast.Inspect(f, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.FuncLit:
						used[full+".func"] = true
						if plain[full+".func"] == "" {
							t.Errorf("%s: a function literal cannot carry //go:norace; name it", fset.Position(n.Pos()))
						}
					case *ast.MapType:
						t.Errorf("%s: maps are instrumented even under //go:norace", fset.Position(n.Pos()))
					case *ast.CallExpr:
						if why := instrumented(f, n); why != "" {
							t.Errorf("%s: %s", fset.Position(n.Pos()), why)
						}
					}
					return true
				})
			}
		}
	}
	for name := range plain {
		if !used[name] {
			t.Errorf("%s is excepted and does not exist", name)
		}
	}
	if checked < 100 {
		t.Fatalf("only %d functions found", checked)
	}
}

func isNorace(f *ast.FuncDecl) bool {
	return f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:norace" })
}

func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	return recv.(*ast.Ident).Name + "." + f.Name.Name
}

// instrumented tells of a call of copy, or of append to anything but a variable of the function's own: both report what
// they touch to the detector, wherever they stand.
func instrumented(f *ast.FuncDecl, call *ast.CallExpr) string {
	callee, ok := call.Fun.(*ast.Ident)
	if !ok {
		return ""
	}
	switch callee.Name {
	case "copy":
		return "copy is instrumented even under //go:norace; copy by hand"
	case "append":
		if to, ok := call.Args[0].(*ast.Ident); !ok || !local(f, to.Name) {
			return "append is instrumented even under //go:norace; append only to the function's own slices"
		}
	}
	return ""
}

// local reports whether the function itself declares the variable, as a result or in its body.
func local(f *ast.FuncDecl, name string) bool {
	if f.Type.Results != nil {
		for _, field := range f.Type.Results.List {
			for _, id := range field.Names {
				if id.Name == name {
					return true
				}
			}
		}
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, id := range spec.Names {
				found = found || id.Name == name
			}
		}
		return true
	})
	return found
}
