package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every exported function, method, type and constant is in an example.
func TestExamplesForAll(t *testing.T) {
	var examples strings.Builder
	var names []string
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		switch {
		case strings.HasPrefix(path, "example_"):
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(text)
		case !strings.HasSuffix(path, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, exportedBy(file)...)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d exported names were found", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`\.` + name + `\b`).MatchString(examples.String()) {
			t.Errorf("no example has %s", name)
		}
	}
}

// exportedBy returns the names that a file exports. Methods of types that are not exported implement an interface.
func exportedBy(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			owner := ""
			if d.Recv != nil {
				owner = strings.Trim(typeName(d.Recv.List[0].Type), "*")
			}
			if d.Name.IsExported() && (owner == "" || ast.IsExported(owner)) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && s.Name.Name != "Option" && s.Name.Name != "Result" && s.Name.Name != "Failure" {
						names = append(names, s.Name.Name) // those three are what functions take and return
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
