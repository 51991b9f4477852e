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
)

// A Citation is one mention of a rule.
type Citation struct {
	Rule string
	File string // relative to the root
	In   string // the function, method or type that contains the comment; empty at the top level

	Title  string // as cited; empty if the citation has no title
	Public bool   // in the doc comment of an exported name
}

// IsTest reports whether the place tests the rule, and does not implement it: a Go test, or a model and the code that
// runs it.
func (c Citation) IsTest() bool {
	return strings.HasSuffix(c.File, "_test.go") || strings.HasPrefix(c.File, "promela/")
}

// A Kind says how a place supports the rules that it cites.
type Kind int

// The kinds of places, the weakest first. A benchmark runs the code but checks nothing; a model is checked, but is not
// the code.
const (
	Prose Kind = iota
	Code
	Benchmark
	Model
	Test
)

// Kind returns the kind of the place.
func (c Citation) Kind() Kind {
	switch {
	case c.InProse():
		return Prose
	case strings.HasPrefix(c.File, "promela/"):
		return Model
	case strings.HasPrefix(c.File, "bench/"), strings.HasPrefix(c.In, "Benchmark"):
		return Benchmark
	case strings.HasSuffix(c.File, "_test.go"):
		return Test
	}
	return Code
}

// InProse reports whether the place only mentions the rule. Such a citation must be correct, but does not support the
// rule.
func (c Citation) InProse() bool { return path.Ext(c.File) == ".md" }

const ruleID = `[A-Z]{2}-[0-9]{2,}`

var (
	mention  = regexp.MustCompile(`\bSpec:`)
	item     = regexp.MustCompile(`^\s+(` + ruleID + `)(?:\s+\(([^()]+)\))?`)
	trailing = regexp.MustCompile(`^(?:[A-Za-z0-9-]|,?\s+(?:to|and|or)\s+` + ruleID + `|,?\s+` + ruleID + `)`)
)

// Citations scans the whole repository, including nested modules. malformed has a sentence for each place that begins
// like a citation but does not continue as one.
func Citations(root string) (found []Citation, malformed []string, err error) {
	files, err := Files(root)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if file == "spec/SPEC.md" || file == "spec/MAP.md" || Newer(file) {
			continue
		}
		var texts []place
		switch path.Ext(file) {
		case ".go":
			texts, err = goComments(root, file)
		case ".pml", ".sh", ".md":
			var text []byte
			text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			texts = []place{{text: string(text)}}
		default:
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, p := range texts {
			list, bad := cited(p.text)
			for _, c := range list {
				c.File, c.In, c.Public = file, p.in, p.public
				found = append(found, c)
			}
			for _, b := range bad {
				malformed = append(malformed, file+": "+b+" is not a citation: write one rule a line, with its title, such as "+
					"PK-06 (tickets only grow)")
			}
		}
	}
	return found, malformed, nil
}

// cited returns the rules that a text cites, with their titles, and the beginnings of citations that no rule follows.
func cited(text string) (list []Citation, bad []string) {
	for _, at := range mention.FindAllStringIndex(text, -1) {
		var rules []Citation
		rest := text[at[1]:]
		for m := item.FindStringSubmatch(rest); m != nil; m = item.FindStringSubmatch(rest) {
			rules = append(rules, Citation{Rule: m[1], Title: strings.Join(strings.Fields(m[2]), " ")})
			rest = rest[len(m[0]):]
			after, comma := strings.CutPrefix(rest, ",")
			if !comma || !item.MatchString(after) {
				break
			}
			rest = after
		}
		if rules == nil || trailing.MatchString(rest) {
			line, _, _ := strings.Cut(text[at[0]:], "\n")
			bad = append(bad, strings.TrimSpace(line))
			continue
		}
		list = append(list, rules...)
	}
	return list, bad
}

// A place is a comment and the declaration to which it belongs.
type place struct {
	in, text string
	public   bool // the comment is the doc comment of an exported name, outside of tests
}

// goComments returns each group of comments of a Go file that cites rules, with the declaration around it. It ignores
// strings.
func goComments(root, file string) ([]place, error) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(file)), nil,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, group := range f.Comments {
		text := group.Text()
		if !mention.MatchString(text) {
			continue
		}
		public := !strings.HasSuffix(file, "_test.go") && documents(f, group)
		places = append(places, place{enclosing(f, group), text, public})
	}
	return places, nil
}

// documents reports whether the comment is the doc comment of an exported function, method, type, variable or constant.
func documents(f *ast.File, group *ast.CommentGroup) bool {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc == group {
				return d.Name.IsExported() && (d.Recv == nil || ast.IsExported(baseName(d.Recv.List[0].Type)))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				doc, exported := d.Doc, false
				switch s := s.(type) {
				case *ast.TypeSpec:
					exported = s.Name.IsExported()
					if group == s.Doc {
						doc = s.Doc
					}
				case *ast.ValueSpec:
					exported = slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
					if group == s.Doc {
						doc = s.Doc
					}
				}
				if doc == group && exported {
					return true
				}
			}
		}
	}
	return false
}

// enclosing returns the name of the declaration that contains a comment, or that follows it.
func enclosing(f *ast.File, group *ast.CommentGroup) string {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc == group || within(group, d) {
				return funcName(d)
			}
		case *ast.GenDecl:
			if name, ok := specName(d, group); ok {
				return name
			}
		}
	}
	return ""
}

func within(group *ast.CommentGroup, n ast.Node) bool {
	return n.Pos() <= group.Pos() && group.End() <= n.End()
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	return baseName(d.Recv.List[0].Type) + "." + d.Name.Name
}

// baseName returns the name of a type of the same package without pointer and type parameters, or "".
func baseName(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.ParenExpr:
		return baseName(t.X)
	case *ast.StarExpr:
		return baseName(t.X)
	case *ast.IndexExpr:
		return baseName(t.X)
	case *ast.IndexListExpr:
		return baseName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// specName returns the name of the type, variable or constant in a declaration to which the comment belongs: the name
// before the comment on the same line, around it or after it, or the first name if the comment is above the
// declaration.
func specName(d *ast.GenDecl, group *ast.CommentGroup) (name string, ok bool) {
	for _, s := range d.Specs {
		var trailing *ast.CommentGroup
		switch s := s.(type) {
		case *ast.TypeSpec:
			name, trailing = s.Name.Name, s.Comment
		case *ast.ValueSpec:
			name, trailing = s.Names[0].Name, s.Comment
		default:
			return "", false // an import
		}
		if trailing == group || d.Doc == group || within(group, d) && group.End() <= s.End() {
			return name, true
		}
	}
	return "", false
}
