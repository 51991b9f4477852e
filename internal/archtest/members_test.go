package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTextNamesMembersThatExist checks that a method or a field that a document or a comment names by its type, such as
// `Chan.Send`, exists. A document names it in back quotes. Names of types that the repository does not declare are not
// checked.
func TestTextNamesMembersThatExist(t *testing.T) {
	dir := root(t)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := members{}
	comments := map[string][]string{}
	for _, file := range files {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_go127.go") || strings.Contains(file, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			continue // removed since the walk
		}
		if comments[file], err = m.declare(file, string(text)); err != nil {
			t.Fatal(err)
		}
	}
	named := 0
	report := func(file string, found int, missing []string) {
		named += found
		for _, name := range missing {
			t.Errorf("%s names %s, which does not exist: write the name that it has now", file, name)
		}
	}
	for _, file := range files {
		if path.Ext(file) == ".md" && strings.HasPrefix(file, "docs/") && !slices.Contains(elsewhereTested, file) {
			found, missing := m.missingInDocument(file, text(t, filepath.Join(dir, filepath.FromSlash(file))))
			report(file, found, missing)
		}
		found, missing := m.missingInComments(path.Dir(file), comments[file])
		report(file, found, missing)
	}
	if named < 200 {
		t.Errorf("only %d names were found: the patterns no longer fit the texts; correct them", named)
	}
}

// members has what the repository declares, by the name of a type or of a package. Types of several packages may have
// the same name; then the members of all are under that name.
type members map[string]*declaration

type declaration struct {
	names  map[string]bool // fields, methods, and what a package declares
	embeds []string        // names of types whose members are also members
	open   bool            // it has members that are declared elsewhere
	in     map[string]bool // the directories that declare the type
	typ    bool            // it is a type, and not only a package
}

func (m members) of(name string) *declaration {
	if m[name] == nil {
		m[name] = &declaration{names: map[string]bool{}, in: map[string]bool{}}
	}
	return m[name]
}

// declare adds the declarations of a file, and returns its comments.
func (m members) declare(file, text string) (comments []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	pkg := m.of(strings.TrimSuffix(f.Name.Name, "_test"))
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				pkg.names[d.Name.Name] = true
			} else if name := baseName(d.Recv.List[0].Type); name != "" {
				m.of(name).names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						pkg.names[name.Name] = true
					}
				case *ast.TypeSpec:
					pkg.names[s.Name.Name] = true
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool { // also types in functions
		if s, ok := n.(*ast.TypeSpec); ok {
			of := m.of(s.Name.Name)
			of.typ, of.in[path.Dir(file)] = true, true
			m.declareType(of, s.Type)
		}
		return true
	})
	for _, c := range f.Comments {
		comments = append(comments, c.Text())
	}
	return comments, nil
}

// declareType adds the members that a type has by its definition.
func (m members) declareType(of *declaration, x ast.Expr) {
	embed := func(x ast.Expr) {
		if name := baseName(x); name != "" {
			of.embeds = append(of.embeds, name)
			return
		}
		of.open = true
	}
	var list *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	case *ast.Ident, *ast.StarExpr, *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr:
		embed(x)
		return
	default:
		return
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			of.names[name.Name] = true
		}
		if len(f.Names) == 0 {
			embed(f.Type)
			of.names[baseName(f.Type)] = true
		}
	}
}

// has reports whether something with the name may have the member.
func (m members) has(name, member string) bool {
	seen := map[string]bool{}
	var look func(name string) bool
	look = func(name string) bool {
		d := m[name]
		if d == nil || seen[name] {
			return false
		}
		seen[name] = true
		return d.open || d.names[member] || slices.ContainsFunc(d.embeds, look)
	}
	return look(name)
}

var (
	quotedMember = regexp.MustCompile("`(?:(\\w+)\\.)?(\\w+)\\.(\\w+)(?:\\([^`]*\\))?`")
	proseMember  = regexp.MustCompile(`(?:^|[\s(\[])(\w\w+)\.(\w+)(?:[\s,;:)\]]|\.\s|$)`)
)

// missingInDocument returns the number of members that a document names, and those that do not exist. In a guide a name
// that is not exported is that of a variable in an example.
func (m members) missingInDocument(file, text string) (found int, missing []string) {
	for _, of := range quotedMember.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		pkg, name, member := of[1], of[2], of[3]
		d := m[name]
		if d == nil || !d.typ || pkg != "" && !m.has(pkg, name) || isFileName(member) || strings.Contains(member, "_") ||
			!ast.IsExported(name) && strings.HasPrefix(file, "docs/guide/") {
			continue
		}
		if found++; !m.has(name, member) {
			missing = append(missing, name+"."+member)
		}
	}
	return found, missing
}

// missingInComments is like missingInDocument, for the comments of a file in a directory. Of a type that is not
// exported, it checks the members only beside the type, because elsewhere the name may be that of a variable.
func (m members) missingInComments(dir string, comments []string) (found int, missing []string) {
	for _, text := range comments {
		spaced := strings.ReplaceAll(text, " ", "  ") // matches share no space
		for _, of := range proseMember.FindAllStringSubmatch(spaced, -1) {
			d := m[of[1]]
			if d == nil || !d.typ || isFileName(of[2]) || !ast.IsExported(of[1]) && !d.in[dir] {
				continue
			}
			if found++; !m.has(of[1], of[2]) {
				missing = append(missing, of[1]+"."+of[2])
			}
		}
	}
	return found, missing
}

// isFileName reports whether a name after a dot is the ending of the name of a file.
func isFileName(ending string) bool {
	return slices.Contains([]string{
		"go", "md", "txt", "json", "js", "html", "svg", "pml", "sh", "mod", "sum", "rs", "test",
	}, ending)
}

func TestMissingMembersAreFound(t *testing.T) {
	m := members{}
	comments, err := m.declare("p/a.go", `// Package p has a world. See world.step, world.gone, World.Step, and world.go.
package p

// Walk calls world.lost.
func Walk() {}

type world struct {
	base
	n int
}

type base struct{ *other[int] }

type other[T any] interface{ Close() }

func (w *world) step() {}

type World = world

type open struct{ strings.Builder }
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		found   int
		missing string
		of      func() (int, []string)
	}{
		{4, "world.gone World.Step world.lost", func() (int, []string) { return m.missingInComments("p", comments) }},
		{1, "World.Step", func() (int, []string) { return m.missingInComments("q", comments) }},
		{8, "world.gone world.Close2 other.n", func() (int, []string) {
			return m.missingInDocument("docs/a.md", "`world.step`, `p.world.n`, `world.gone()`, `World.step`, `world.Close`, "+
				"`world.Close2`, `world.go`, `ctx.Err`, `open.WriteString`, `other.n`, `q.world.none`, `world.no_ne`, "+
				"world.none\n```\n`world.none`\n```\n")
		}},
		{1, "World.gone", func() (int, []string) {
			return m.missingInDocument("docs/guide/a.md", "`world.gone`, `World.gone`")
		}},
	} {
		if found, missing := c.of(); found != c.found || strings.Join(missing, " ") != c.missing {
			t.Errorf("%d names, and %q are missing; want %d and %q", found, missing, c.found, c.missing)
		}
	}
}
