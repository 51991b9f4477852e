package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// This file names objects. The record of a schedule identifies locks, channels and other objects by numbers. A reader
// knows them by their names in the program, so a report takes the expression from the source line of each operation,
// such as s.mu of s.mu.Lock():
//
//   - s.mu: the only object with that name, if it has no other name;
//   - server.mu and session.mu: objects that the source both calls s.mu, if it says that s has these types there;
//   - s.mu#1 and s.mu#2: several objects that have only that name;
//   - to.mu (mutex#1): an object with several names, or a name of several objects, some of which have other names too;
//   - mutex#2: an object without a name.
//
// If several expressions of a line fit, the line gives no name. Nor does a file that cannot be read or is younger than
// the test's binary. Then the report shows only the number.

// naming holds the names of the goroutines and of the objects of a failure and of its twin. The objects are identified
// by their kind and number in the record: mutex#61.
type naming struct {
	names   map[string][]string // the expressions of an object, in order
	objects map[string][]string // the objects of an expression
	typed   map[use]string      // the expressions with the type of their variable in its place: server.mu
	number  map[string]string   // the number of each object in the report: mutex#1

	goroutines map[*actor]string // the names of goroutines
	known      report.Births     // see births

	files map[string]*sourceFile
}

// use is an object, and an expression for it.
type use struct{ key, name string }

// name finds the names of the goroutines and the objects of the report, and of its twin. Numbers are in the order of
// first use.
func (r *record) name() *naming {
	if r.named != nil {
		return r.named
	}
	n := &naming{
		names: map[string][]string{}, objects: map[string][]string{}, number: map[string]string{},
		typed: map[use]string{}, files: map[string]*sourceFile{},
		goroutines: map[*actor]string{}, known: report.Births{},
	}
	var order []string
	r.named = n
	r.collect(n, &order)
	schedules := []*record{r}
	if r.twin != nil && r.twin.record != nil {
		r.twin.named = n
		r.twin.collect(n, &order)
		schedules = append(schedules, r.twin.record)
	}
	n.nameGoroutines(schedules...)
	n.tellApart()
	next := map[string]int{}
	for _, key := range order {
		if kind, _, _ := strings.Cut(key, "#"); n.number[key] == "" && n.alone(key) == "" {
			next[kind]++
			n.number[key] = fmt.Sprintf("%s#%d", kind, next[kind])
		}
	}
	return n
}

// tellApart replaces an expression by the one with the type, if it names objects of different types. An object with
// several names has a number, which is shorter.
func (n *naming) tellApart() {
	for _, name := range slices.Sorted(maps.Keys(n.objects)) {
		types, several := map[string]bool{}, false
		for _, key := range n.objects[name] {
			types[n.typed[use{key, name}]] = true
			several = several || len(n.names[key]) > 1
		}
		if len(types) < 2 || types[""] || several {
			continue
		}
		for _, key := range n.objects[name] {
			typed := n.typed[use{key, name}]
			n.names[key] = []string{typed}
			n.objects[typed] = append(n.objects[typed], key)
		}
		delete(n.objects, name)
	}
}

// collect adds the objects of a schedule, and sets the expressions of its steps.
func (r *record) collect(n *naming, order *[]string) {
	add := func(op, id int, name, typed string) {
		key := r.key(op, id)
		if key == "" {
			return
		}
		n.typed[use{key, name}] = cmp.Or(n.typed[use{key, name}], typed)
		*order = append(*order, key)
		if name != "" && !slices.Contains(n.names[key], name) {
			n.names[key] = append(n.names[key], name)
			n.objects[name] = append(n.objects[name], key)
		}
	}
	type holding struct{ g, object int }
	locked := map[holding]expression{} // by which expression
	for _, s := range r.naming() {
		file := r.source(n, s.place.file)
		for k := range s.cases {
			c := &s.cases[k]
			x := file.caseOf(s.place.line, c)
			c.name = x.text
			add(coir.OpRecv, c.object, c.name, x.typed)
		}
		x := file.nameOf(s.place.line, s.op, s.via)
		switch h := (holding{s.g, s.object}); s.op {
		case coir.OpLock, coir.OpTryLock, coir.OpRLock, coir.OpWLock, coir.OpTryRLock, coir.OpTryWLock:
			locked[h] = x
		case coir.OpUnlock, coir.OpRUnlock, coir.OpWUnlock:
			x = cmp.Or(x, locked[h]) // a deferred call has the line of the return
		}
		s.name = x.text
		add(s.op, s.object, s.name, x.typed)
	}
	for _, id := range r.ids() {
		a := r.actors[id]
		x := r.source(n, a.at.file).nameOf(a.at.line, a.op, a.via)
		a.name = x.text
		if a.state == coir.Waiting && !r.helps(id) && r.lastStep(id) == nil {
			add(a.op, a.object, a.name, x.typed)
		}
	}
}

// naming returns the steps that give names and numbers to objects, those inside of libraries last.
func (r *record) naming() (all []*step) {
	var aside []*step
	for i := range r.known {
		switch s := &r.known[i]; {
		case !r.shows(s) || s.note != "":
		case s.aside || s.calls():
			aside = append(aside, s)
		default:
			all = append(all, s)
		}
	}
	return append(all, aside...)
}

// alone returns the name of an object that does not depend on the step, or "" if there is none.
func (n *naming) alone(key string) string {
	if len(n.names[key]) != 1 {
		return ""
	}
	name := n.names[key][0]
	same := n.objects[name]
	switch kind, _, _ := strings.Cut(key, "#"); {
	case len(same) == 1:
		return name
	case repeats(name, kind):
		return ""
	case slices.ContainsFunc(same, func(key string) bool { return len(n.names[key]) > 1 }):
		return ""
	}
	return fmt.Sprintf("%s#%d", name, slices.Index(same, key)+1)
}

// key returns the kind and number of an object, as in the record, or "" if the operation has no object.
func (r *record) key(op, id int) string {
	kind := coir.Ops[op].On
	if kind == "" || id == 0 {
		return ""
	}
	if c, ok := r.made[id]; ok && kind == "chan" {
		switch {
		case c.timer && strings.Contains(c.via, "Tick"):
			kind = "ticker"
		case c.timer:
			kind = "timer"
		case strings.HasPrefix(c.via, "context."):
			kind = "ctx.Done"
		}
	}
	return fmt.Sprintf("%s#%d", kind, id)
}

// called returns the name of an object at an operation. name is the operation's expression for the object, or empty if
// that is unknown.
func (r *record) called(op, id int, name string) string {
	key := r.key(op, id)
	if key == "" {
		return ""
	}
	n := r.name()
	if alone := n.alone(key); alone != "" {
		return alone
	}
	number, ok := n.number[key]
	if !ok { // no step of the report uses it
		number = key
	}
	if names := n.names[key]; len(names) == 1 {
		name = names[0]
	}
	if kind, _, _ := strings.Cut(key, "#"); name == "" || repeats(name, kind) {
		return number
	}
	return fmt.Sprintf("%s (%s)", name, number)
}

// repeats reports whether an expression says no more than the kind of the object: ctx.Done(), timer.C, mutex.
func repeats(name, kind string) bool { return name == kind || name == kind+"()" || name == kind+".C" }

// object returns the name of an object, independent of a step.
func (r *record) object(op, id int) string { return r.called(op, id, "") }

// with adds a remark in parentheses to a name that may already have a remark.
func with(name, remark string) string {
	if head, ok := strings.CutSuffix(name, ")"); ok && strings.Contains(name, " (") {
		return head + ", " + remark + ")"
	}
	return name + " (" + remark + ")"
}

// source returns a source file, or nil if it cannot be read or may have changed since the test was built.
func (r *record) source(n *naming, name string) *sourceFile {
	if name == "" {
		return nil
	}
	f, ok := n.files[name]
	if !ok {
		path := name
		if in, ok := strings.CutPrefix(name, r.modulePath+"/"); ok && !filepath.IsAbs(name) { // -trimpath
			path = filepath.Join(r.moduleDir, filepath.FromSlash(in))
		}
		if st, err := os.Stat(path); err == nil && !st.ModTime().After(r.built) {
			f = readSource(path)
		}
		n.files[name] = f
	}
	return f
}

// sourceFile holds the expressions for objects in a source file.
type sourceFile struct {
	text    string
	set     *token.FileSet
	names   map[operation][]expression
	selects map[int][]selection // by line
}

// expression is an expression for an object in the source.
type expression struct {
	text  string
	typed string // the text with the name of its variable's type in place of the variable; empty: not known
}

// selection is a select, with the variables that are known there.
type selection struct {
	*ast.SelectStmt
	known variables
}

// operation is an operation at a line: send, recv, close, or a function or a method such as Lock.
type operation struct {
	line int
	what string
}

// readSource reads a source file. It returns nil if that is not Go.
func readSource(path string) *sourceFile {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	f := &sourceFile{string(text), token.NewFileSet(), map[operation][]expression{}, map[int][]selection{}}
	tree, err := parser.ParseFile(f.set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	inside := inFile(tree)
	ast.Inspect(tree, func(node ast.Node) bool {
		known := inside.enter(node)
		switch x := node.(type) {
		case *ast.SendStmt:
			f.add(x.Pos(), "send", x.Chan, known)
		case *ast.UnaryExpr:
			if x.Op == token.ARROW {
				f.add(x.Pos(), "recv", x.X, known)
			}
		case *ast.RangeStmt:
			f.add(x.Pos(), "recv", x.X, known)
		case *ast.SelectStmt:
			f.selects[f.line(x.Pos())] = append(f.selects[f.line(x.Pos())], selection{x, known})
		case *ast.CallExpr:
			switch called := ast.Unparen(x.Fun).(type) {
			case *ast.Ident:
				if called.Name == "close" && len(x.Args) == 1 {
					f.add(x.Lparen, "close", x.Args[0], known)
				}
			case *ast.SelectorExpr:
				f.add(x.Lparen, called.Sel.Name, called.X, known)
				if len(x.Args) > 0 {
					f.add(x.Lparen, "atomic."+called.Sel.Name, x.Args[0], known)
				}
			}
		}
		return true
	})
	return f
}

func (f *sourceFile) line(at token.Pos) int { return f.set.Position(at).Line }

// add records the expression of an operation.
func (f *sourceFile) add(at token.Pos, what string, x ast.Expr, known variables) {
	o := operation{f.line(at), what}
	if e := f.expression(x, known); !slices.Contains(f.names[o], e) {
		f.names[o] = append(f.names[o], e)
	}
}

// expression returns an expression with its source text, which is "" if it is too long for a name.
func (f *sourceFile) expression(x ast.Expr, known variables) expression {
	const most = 40
	for {
		switch of := x.(type) {
		case *ast.ParenExpr:
			x = of.X
			continue
		case *ast.UnaryExpr:
			if of.Op == token.AND {
				x = of.X
				continue
			}
		}
		break
	}
	from, to := f.set.Position(x.Pos()).Offset, f.set.Position(x.End()).Offset
	text := f.text[from:to]
	if utf8.RuneCountInString(text) > most || strings.ContainsAny(text, "\n{") {
		return expression{}
	}
	return expression{text, known.typed(x, text)}
}

// methods are the functions and methods of operations, as far as these are not written as channel operations. The point
// of an operation may also be in another function: a Cond locks its mutex in Wait.
var methods = map[int][]string{
	coir.OpLock: {"Lock"}, coir.OpTryLock: {"TryLock"}, coir.OpUnlock: {"Unlock"},
	coir.OpRLock: {"RLock"}, coir.OpTryRLock: {"TryRLock"}, coir.OpRUnlock: {"RUnlock"},
	coir.OpWLock: {"Lock"}, coir.OpTryWLock: {"TryLock"}, coir.OpWUnlock: {"Unlock"},
	coir.OpAdd: {"Add", "Go"}, coir.OpDone: {"Done", "Add"}, coir.OpWait: {"Wait"},
	coir.OpCondWait: {"Wait"}, coir.OpSignal: {"Signal"}, coir.OpBroadcast: {"Broadcast"}, coir.OpOnce: {"Do"},
	coir.OpAccept: {"Accept"}, coir.OpNetRead: {"Read"}, coir.OpNetWrite: {"Write"}, coir.OpNetClose: {"Close"},
	coir.OpPipeRead: {"Read"}, coir.OpPipeWrite: {"Write"}, coir.OpPipeClose: {"Close"},
}

// nameOf returns the expression for the object of an operation at a line, performed through a function of the library,
// or none if it is unknown.
func (f *sourceFile) nameOf(line, op int, via string) (none expression) {
	if f == nil {
		return none
	}
	what := ""
	switch pkg, rest, _ := strings.Cut(via, "."); {
	case op == coir.OpSend || op == coir.OpRecv || op == coir.OpClose:
		if via == "" || pkg == "runtime" {
			what = coir.Ops[op].Name
		}
	case pkg == "sync/atomic" && !strings.Contains(rest, "."): // a function
		what = "atomic." + rest
	case pkg == "sync" || pkg == "net" || pkg == "os" || pkg == "sync/atomic":
		kind := coir.Ops[op].On
		if what = via[strings.LastIndex(via, ".")+1:]; kind != "atomic" && kind != "map" &&
			!slices.Contains(methods[op], what) {
			return none
		}
	}
	if names := f.names[operation{line, what}]; len(names) == 1 {
		return names[0]
	}
	return none
}

// caseOf returns the expression for the channel of a case of a select. The compiler puts the receives last, in reverse
// order.
func (f *sourceFile) caseOf(line int, c *selectCase) (none expression) {
	if f == nil || len(f.selects[line]) != 1 {
		return none
	}
	var sends, all []ast.Expr
	for _, clause := range f.selects[line][0].Body.List {
		var receive ast.Expr
		switch x := clause.(*ast.CommClause).Comm.(type) {
		case *ast.SendStmt:
			sends = append(sends, x.Chan)
		case *ast.ExprStmt:
			receive = x.X
		case *ast.AssignStmt:
			receive = x.Rhs[0]
		}
		if x, ok := receive.(*ast.UnaryExpr); ok {
			all = append(all, x.X)
		}
	}
	slices.Reverse(all)
	if all = append(sends, all...); c.n < 0 || c.n >= len(all) || c.send != (c.n < len(sends)) {
		return none
	}
	return f.expression(all[c.n], f.selects[line][0].known)
}
