package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Public returns the directories of the packages of a module that users import, the top first. It omits commands,
// examples, documents and measurements.
func Public(module string) ([]string, error) {
	imports, err := Imports(module)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(imports)), func(dir string) bool {
		top, _, _ := strings.Cut(dir, "/")
		return slices.Contains([]string{"cmd", "docs", "example", "examples", "measure"}, top) ||
			slices.Contains(strings.Split(dir, "/"), "internal")
	}), nil
}

// Nested are the directories of the modules below the root that users import.
var Nested = []string{"metrics", "remote", "remote/nats", "remote/postgres", "vet"}

// PublicEverywhere returns the directories of the packages that users import, of all modules.
func PublicEverywhere(root string) ([]string, error) {
	all, err := Public(root)
	for _, module := range Nested {
		if err != nil {
			return nil, err
		}
		var dirs []string
		dirs, err = Public(filepath.Join(root, module))
		for _, dir := range dirs {
			all = append(all, path.Join(module, dir))
		}
	}
	return all, err
}

// APIFile returns the file that records what the package in dir exports.
func APIFile(dir string) string {
	if dir == "." {
		dir = "coir"
	}
	return "api/" + strings.ReplaceAll(dir, "/", "-") + ".txt"
}

// API lists the exported symbols of the package in dir, one on each line, sorted, so that a change of the API shows up
// as a line in a review.
//
// It reads every file regardless of build tags, because a symbol that exists only on one platform is part of the API
// too.
func API(dir string) ([]string, error) {
	var lines []string
	err := eachDecl(dir, func(_ token.Position, decl ast.Decl) { lines = append(lines, exported(decl)...) })
	slices.Sort(lines)
	return slices.Compact(lines), err
}

// eachDecl calls f for each top-level declaration of the package in dir, except in tests.
func eachDecl(dir string, f func(at token.Position, decl ast.Decl)) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || Newer(path) {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f(set.Position(decl.Pos()), decl)
		}
	}
	return nil
}

func exported(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return exportedFunc(d)
	case *ast.GenDecl:
		var lines []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				lines = append(lines, exportedType(s)...)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						lines = append(lines, strings.TrimSpace(d.Tok.String()+" "+name.Name+" "+source(s.Type)))
					}
				}
			}
		}
		return lines
	}
	return nil
}

func exportedFunc(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() {
		return nil
	}
	signature := strings.TrimPrefix(source(d.Type), "func")
	if d.Recv == nil {
		return []string{"func " + d.Name.Name + signature}
	}
	receiver := d.Recv.List[0].Type
	if !ast.IsExported(baseName(receiver)) {
		return nil
	}
	return []string{"method (" + source(receiver) + ") " + d.Name.Name + signature}
}

// exportedType returns a line for the type and one for each exported field or method in it.
func exportedType(s *ast.TypeSpec) []string {
	if !s.Name.IsExported() {
		return nil
	}
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		var params []string
		for _, p := range s.TypeParams.List {
			for _, name := range p.Names {
				params = append(params, name.Name+" "+source(p.Type))
			}
		}
		head += "[" + strings.Join(params, ", ") + "]"
	}
	var inside *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		head, inside = head+" struct", t.Fields
	case *ast.InterfaceType:
		head, inside = head+" interface", t.Methods
	default:
		if s.Assign.IsValid() {
			return []string{head + " = " + source(t)}
		}
		return []string{head + " " + source(t)}
	}
	lines := []string{head}
	for _, field := range inside.List {
		if len(field.Names) == 0 { // embedded: exported under its own name
			lines = append(lines, head+", embeds "+source(field.Type))
		}
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			if method, ok := field.Type.(*ast.FuncType); ok && strings.HasSuffix(head, " interface") {
				lines = append(lines, head+", "+name.Name+strings.TrimPrefix(source(method), "func"))
				continue
			}
			lines = append(lines, head+", "+name.Name+" "+source(field.Type))
		}
	}
	return lines
}

// source prints a node on one line. It ignores positions, and so the line breaks of the file.
func source(node ast.Node) string {
	if node == nil {
		return ""
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
