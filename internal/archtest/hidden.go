package archtest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// In race builds the code of coir runs with its synchronisation hidden from the detector (see internal/race). This file
// follows the calls of race.Disable and race.Enable through the source of a package, from every function that users
// call, and finds out which functions run hidden. That makes these rules checkable:
//
//   - What runs hidden is marked //go:norace, and calls neither copy nor append on shared memory: the runtime reports
//     those to the detector in spite of the pragma. Nor does it use maps.
//   - race.Acquire, Release and Reads do nothing in a hidden section, so they must be called outside of one. Meet,
//     Offer and Wrote leave the section themselves, so they must be called inside.
//   - Each path through a function leaves as many sections as it enters.
//   - A panic leaves all sections. The deferred calls of the functions that it passes count.
//
// It follows calls of functions and of methods, through interfaces too. It does not follow function values: it assumes
// that a literal is called with everything visible, or in a hidden section if the literal begins by leaving one.

const racePackage = Module + "/internal/race"

// HiddenRules are facts about a package that its source does not show.
type HiddenRules struct {
	// Called says, by name, how deep in hidden sections a function is called that the package itself does not call.
	// Other exported functions are called with everything visible. The name of a literal is that of its function, and
	// ".func".
	Called map[string]int

	// Plain lists what may run hidden without the pragma, and why. The key is the package's directory, a space and the
	// function's name, followed by ".append" for a call of append in it, and by ".panic" for a panic. A directory
	// without a name stands for a whole package.
	Plain map[string]string
}

// Hidden checks package dir of the repository, and returns what is wrong with it. In other packages, unless they are
// checked separately, it checks only that functions called in hidden sections are marked.
func (s *Source) Hidden(dir string, rules HiddenRules) ([]string, error) {
	h, funcs, err := s.check(dir, rules)
	if err != nil {
		return nil, err
	}
	for _, f := range funcs {
		name := shortName(f)
		depth, listed := rules.Called[name]
		h.used[name] = true
		if listed || ast.IsExported(f.Name()) || f.Name() == "init" {
			h.enter(f, depth, 0, hiddenState{})
		}
	}
	for len(h.queue) > 0 {
		s := h.queue[len(h.queue)-1]
		h.queue = h.queue[:len(h.queue)-1]
		h.function(s)
	}
	for name := range rules.Called {
		if !h.used[name] {
			h.problem(token.NoPos, "%s is listed as called from outside and does not exist", name)
		}
	}
	h.unusedPlain()
	slices.Sort(h.problems)
	return h.problems, nil
}

// Unmarked checks a package that runs hidden as a whole: all its functions are marked, it has no literals and no maps,
// it neither copies nor appends on shared memory, and it leaves the section before it panics. The files are those of a
// race build.
func (s *Source) Unmarked(dir string, rules HiddenRules) ([]string, error) {
	h, funcs, err := s.check(dir, rules)
	if err != nil {
		return nil, err
	}
	for _, f := range funcs {
		d := h.decls[f]
		if d.Body == nil {
			continue // assembly
		}
		name := shortName(f)
		if !isNorace(d) && !h.plain(f.Pkg(), name) {
			h.problem(d.Pos(), "%s lacks //go:norace", name)
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				if !h.plain(f.Pkg(), name+".func") {
					h.problem(n.Pos(), "%s: a function literal cannot carry //go:norace; name it", name)
				}
			case *ast.MapType:
				h.problem(n.Pos(), "%s: maps are instrumented even under //go:norace", name)
			case *ast.BlockStmt:
				for i, s := range n.List {
					if isCall(s, "panic") && (i == 0 || !isCall(n.List[i-1], "race.Enable")) && !h.plain(f.Pkg(), name+".panic") {
						h.problem(s.Pos(), "%s panics in a hidden section; call race.Enable before", name)
					}
				}
			case *ast.CallExpr:
				if why := instrumented(d, n); why != "" && !h.plain(f.Pkg(), name+".append") {
					h.problem(n.Pos(), "%s: %s", name, why)
				}
			}
			return true
		})
	}
	h.unusedPlain()
	slices.Sort(h.problems)
	return h.problems, nil
}

// callIn returns the call that a statement consists of, or nil.
func callIn(s ast.Stmt) *ast.CallExpr {
	if x, ok := s.(*ast.ExprStmt); ok {
		call, _ := x.X.(*ast.CallExpr)
		return call
	}
	return nil
}

// isCall reports whether a statement is a call of the function with this name.
func isCall(s ast.Stmt, name string) bool {
	call := callIn(s)
	return call != nil && types.ExprString(call.Fun) == name
}

// check begins the check of a package. It returns the package's functions, in the order of the source.
func (s *Source) check(dir string, rules HiddenRules) (*hiddenCheck, []*types.Func, error) {
	pkg, err := s.Import(path.Join(Module, dir))
	if err != nil {
		return nil, nil, err
	}
	h := &hiddenCheck{
		Source: s, pkg: pkg, rules: rules, seen: map[hiddenState]hiddenState{}, told: map[string]bool{},
		used: map[string]bool{},
	}
	var funcs []*types.Func
	for f := range s.decls {
		if f.Pkg() == pkg {
			funcs = append(funcs, f)
		}
	}
	slices.SortFunc(funcs, func(a, b *types.Func) int { return cmp.Compare(a.Pos(), b.Pos()) })
	if len(funcs) == 0 {
		return nil, nil, errors.New("archtest: no functions in " + dir)
	}
	return h, funcs, nil
}

// Source is the source of the module, as in a race build.
type Source struct {
	Checked map[string]bool // the directories of packages that are checked separately

	root     string
	fset     *token.FileSet
	std      types.Importer
	packages map[string]*types.Package
	decls    map[*types.Func]*ast.FuncDecl
	infos    map[*types.Func]*types.Info
}

// ReadSource prepares to read the packages of the module.
func ReadSource(root string) (*Source, error) {
	std, err := stdExports(root)
	if err != nil {
		return nil, err
	}
	return newSource(root, std), nil
}

// newSource takes the files that hold the export data of standard packages.
func newSource(root string, std map[string]string) *Source {
	s := &Source{
		Checked: map[string]bool{}, root: root, fset: token.NewFileSet(), packages: map[string]*types.Package{},
		decls: map[*types.Func]*ast.FuncDecl{}, infos: map[*types.Func]*types.Info{},
	}
	s.std = importer.ForCompiler(s.fset, "gc", func(name string) (io.ReadCloser, error) {
		if std[name] == "" {
			return nil, errors.New("archtest: no export data of " + name)
		}
		return os.Open(std[name])
	})
	return s
}

// stdExports returns the files with the export data of the standard packages that the module uses.
func stdExports(root string) (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{if .Standard}}{{.ImportPath}} {{.Export}}{{end}}", ".", "./sim", "./internal/..."}
	for _, dir := range Satellites {
		if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
			args = append(args, "./"+dir)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %v\n%s", err, &stderr)
	}
	exports := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if name, file, ok := strings.Cut(lines.Text(), " "); ok {
			exports[name] = file
		}
	}
	return exports, nil
}

// hiddenCheck is the check of one package.
type hiddenCheck struct {
	*Source
	pkg   *types.Package
	rules HiddenRules

	seen     map[hiddenState]hiddenState // and its caller, if not from outside
	queue    []hiddenState
	problems []string
	told     map[string]bool
	used     map[string]bool // of the rules
}

// plain reports whether the rules exempt a function from the pragma.
func (h *hiddenCheck) plain(pkg *types.Package, name string) bool {
	dir := dirOf(pkg)
	for _, key := range []string{dir, dir + " " + name} {
		if h.rules.Plain[key] != "" {
			h.used[key] = true
			return true
		}
	}
	return false
}

// dirOf returns the directory of a package of the module.
func dirOf(pkg *types.Package) string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(pkg.Path(), Module), "/"), ".")
}

func (h *hiddenCheck) unusedPlain() {
	for name := range h.rules.Plain {
		if !h.used[name] {
			h.problem(token.NoPos, "%s is excepted and need not be", name)
		}
	}
}

// hiddenState is a function and how deep in hidden sections it is called.
type hiddenState struct {
	f     *types.Func
	depth int
	owed  int // by how much the deferred calls of its callers change the depth
}

// Import implements types.Importer. Packages of the module are read from their source, in the form of a race build.
func (s *Source) Import(imported string) (*types.Package, error) {
	rel, ours := strings.CutPrefix(imported, Module)
	if !ours || rel != "" && rel[0] != '/' {
		return s.std.Import(imported)
	}
	if pkg := s.packages[imported]; pkg != nil {
		return pkg, nil
	}
	ctx := build.Default
	if imported != racePackage { // its functions are the same in every build
		ctx.BuildTags = append(slices.Clone(ctx.BuildTags), "race")
	}
	dir := filepath.Join(s.root, filepath.FromSlash(rel))
	found, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(s.fset, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}
	pkg, err := (&types.Config{Importer: s}).Check(imported, s.fset, files, info)
	if err != nil {
		return nil, err
	}
	s.packages[imported] = pkg
	for _, file := range files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				f := info.Defs[d.Name].(*types.Func)
				s.decls[f], s.infos[f] = d, info
			}
		}
	}
	return pkg, nil
}

func (h *hiddenCheck) problem(at token.Pos, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at.IsValid() {
		p := h.fset.Position(at)
		if rel, err := filepath.Rel(h.root, p.Filename); err == nil {
			p.Filename = filepath.ToSlash(rel)
		}
		text = fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, text)
	}
	if !h.told[text] {
		h.told[text] = true
		h.problems = append(h.problems, text)
	}
}

// enter records that f is called depth sections deep. More than two counts as two. The deferred calls of its callers
// change the depth by owed.
func (h *hiddenCheck) enter(f *types.Func, depth, owed int, by hiddenState) {
	s := hiddenState{f, min(depth, 2), max(owed, -2)}
	if _, ok := h.seen[s]; !ok {
		h.seen[s] = by
		h.queue = append(h.queue, s)
	}
}

// path returns the chain of calls that leads to a function.
func (h *hiddenCheck) path(s hiddenState) string {
	names := []string{shortName(s.f)}
	for {
		if s = h.seen[s]; s.f == nil {
			break
		}
		names = append(names, shortName(s.f))
	}
	slices.Reverse(names)
	return strings.Join(names, " > ")
}

// shortName returns the name of a function in its package: "Run", "Chan.Send".
func shortName(f *types.Func) string {
	recv := f.Signature().Recv()
	if recv == nil {
		return f.Name()
	}
	if n, ok := derefNamed(recv.Type()); ok {
		return n.Obj().Name() + "." + f.Name()
	}
	return f.Name()
}

func isNorace(d *ast.FuncDecl) bool {
	return d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:norace" })
}

// function follows one function.
func (h *hiddenCheck) function(s hiddenState) {
	d := h.decls[s.f]
	if d.Body == nil { // assembly
		return
	}
	if s.f.Pkg() != h.pkg && h.Checked[dirOf(s.f.Pkg())] {
		return
	}
	if s.depth > 0 && !isNorace(d) && !h.plain(s.f.Pkg(), shortName(s.f)) {
		h.problem(d.Pos(), "%s runs hidden and lacks //go:norace", h.path(s))
	}
	if s.f.Pkg() != h.pkg {
		return // checked separately
	}
	b := &hiddenBody{h: h, info: h.infos[s.f], decl: d, state: s, name: h.path(s), owed: s.owed}
	b.run(d.Body, s.depth)
}

// hiddenBody is a function that is being followed.
type hiddenBody struct {
	h     *hiddenCheck
	info  *types.Info
	decl  *ast.FuncDecl
	state hiddenState
	name  string // for messages

	entry    int
	deferred int // by how much deferred calls change the depth when the function returns
	owed     int // by how much those of its callers do
}

func (b *hiddenBody) run(body *ast.BlockStmt, depth int) {
	b.entry, b.deferred = depth, 0
	if depth, ends := b.block(body.List, depth); !ends {
		b.leaves(body.Rbrace, depth)
	}
}

func (b *hiddenBody) leaves(at token.Pos, depth int) {
	if depth+b.deferred != b.entry {
		b.h.problem(at, "%s is entered %d deep and left %d deep", b.name, b.entry, depth+b.deferred)
	}
}

// panics checks a panic, of coir or of a user's function, that comes depth sections deep.
func (b *hiddenBody) panics(at token.Pos, depth int) {
	if left := depth + b.deferred + b.owed; left != 0 && !b.h.plain(b.h.pkg, shortName(b.state.f)+".panic") {
		b.h.problem(at, "%s: a panic here reaches the user %d deep, which must be 0", b.name, left)
	}
}

func (b *hiddenBody) block(list []ast.Stmt, depth int) (after int, ends bool) {
	for _, s := range list {
		if depth, ends = b.stmt(s, depth); ends {
			return depth, true
		}
	}
	return depth, false
}

// stmt follows a statement that begins at depth. It returns the depth after it, and whether nothing comes after it.
func (b *hiddenBody) stmt(s ast.Stmt, depth int) (after int, ends bool) {
	switch s := s.(type) {
	case nil:
	case *ast.BlockStmt:
		return b.block(s.List, depth)
	case *ast.LabeledStmt:
		return b.stmt(s.Stmt, depth)
	case *ast.ReturnStmt:
		depth = b.exprs(s, depth)
		b.leaves(s.Pos(), depth)
		return depth, true
	case *ast.BranchStmt:
		return depth, s.Tok != token.FALLTHROUGH
	case *ast.IfStmt:
		depth, _ = b.stmt(s.Init, depth)
		if race, is := b.raceEnabled(s.Cond); is && !race {
			return b.stmt(s.Else, depth)
		}
		depth = b.exprs(s.Cond, depth)
		then, ends1 := b.block(s.Body.List, depth)
		other, ends2 := b.stmt(s.Else, depth)
		return b.join(s.Pos(), []int{then, other}, []bool{ends1, ends2})
	case *ast.ForStmt:
		depth, _ = b.stmt(s.Init, depth)
		if s.Cond != nil {
			depth = b.exprs(s.Cond, depth)
		}
		b.turn(s, s.Body, depth)
		b.stmt(s.Post, depth)
		return depth, s.Cond == nil && !breaksIn(s.Body.List)
	case *ast.RangeStmt:
		depth = b.exprs(s.X, depth)
		b.maps(s.X, depth)
		b.turn(s, s.Body, depth)
		return depth, false
	case *ast.SwitchStmt:
		depth, _ = b.stmt(s.Init, depth)
		if s.Tag != nil {
			depth = b.exprs(s.Tag, depth)
		}
		return b.clauses(s.Pos(), s.Body, depth)
	case *ast.TypeSwitchStmt:
		depth, _ = b.stmt(s.Init, depth)
		depth, _ = b.stmt(s.Assign, depth)
		return b.clauses(s.Pos(), s.Body, depth)
	case *ast.SelectStmt:
		return b.clauses(s.Pos(), s.Body, depth)
	case *ast.DeferStmt:
		if change := b.toggles(s.Call); change != 0 {
			b.deferred += change
			return depth, false
		}
		return b.call(s.Call, depth), false // as if it were called here
	case *ast.GoStmt:
		depth = b.args(s.Call, depth)
		if f := b.callee(s.Call); f != nil {
			b.h.enter(f, 0, 0, b.state)
		}
		if lit, ok := s.Call.Fun.(*ast.FuncLit); ok {
			b.literal(lit)
		}
	case *ast.ExprStmt:
		depth = b.exprs(s, depth)
		if isCall(s, "panic") {
			b.panics(s.Pos(), depth)
			return depth, true
		}
	default:
		depth = b.exprs(s, depth)
	}
	return depth, false
}

// turn follows a turn of a loop.
func (b *hiddenBody) turn(loop ast.Stmt, body *ast.BlockStmt, depth int) {
	if after, ends := b.block(body.List, depth); !ends && after != depth {
		b.h.problem(loop.Pos(), "%s: a turn of the loop begins %d deep and ends %d deep", b.name, depth, after)
	}
}

// raceEnabled reports whether cond tests for a race build, and its value in one.
func (b *hiddenBody) raceEnabled(cond ast.Expr) (race, is bool) {
	if not, ok := cond.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		race, is = b.raceEnabled(not.X)
		return !race, is
	}
	if x, ok := cond.(*ast.SelectorExpr); ok {
		if c, ok := b.info.Uses[x.Sel].(*types.Const); ok && c.Pkg().Path() == racePackage && c.Name() == "Enabled" {
			return true, true
		}
	}
	return false, false
}

func (b *hiddenBody) clauses(at token.Pos, body *ast.BlockStmt, depth int) (after int, ends bool) {
	var depths []int
	var ended []bool
	whole := false // one of them is always taken
	for _, c := range body.List {
		var list []ast.Stmt
		d := depth
		switch c := c.(type) {
		case *ast.CaseClause:
			for _, x := range c.List {
				d = b.exprs(x, d)
			}
			whole = whole || c.List == nil
			list = c.Body
		case *ast.CommClause:
			d, _ = b.stmt(c.Comm, d)
			whole = true
			list = c.Body
		}
		d, e := b.block(list, d)
		depths, ended = append(depths, d), append(ended, e && !breaksIn(list))
		if e && breaksIn(list) {
			depths[len(depths)-1] = depth
		}
	}
	if !whole {
		depths, ended = append(depths, depth), append(ended, false)
	}
	return b.join(at, depths, ended)
}

// breaksIn reports whether there is a break in the statements that may end the loop or switch around them.
func breaksIn(list []ast.Stmt) bool {
	found := false
	for _, s := range list {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt:
				return false
			case *ast.BranchStmt:
				found = found || n.Tok == token.BREAK || n.Tok == token.GOTO
			}
			return true
		})
	}
	return found
}

// join merges several paths.
func (b *hiddenBody) join(at token.Pos, depths []int, ended []bool) (after int, ends bool) {
	ends = true
	for i, d := range depths {
		switch {
		case ended[i]:
		case ends:
			after, ends = d, false
		case d != after:
			b.h.problem(at, "%s: ways meet that are %d and %d deep", b.name, after, d)
		}
	}
	if ends && len(depths) > 0 {
		after = depths[0]
	}
	return after, ends
}

// exprs follows the calls in a node in the order of the source, and returns the depth after them.
func (b *hiddenBody) exprs(n ast.Node, depth int) int {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			depth = b.call(n, depth)
			return false
		case *ast.FuncLit:
			b.literal(n)
			return false
		case *ast.IndexExpr:
			b.maps(n.X, depth)
		}
		return true
	})
	return depth
}

func (b *hiddenBody) args(call *ast.CallExpr, depth int) int {
	for _, a := range call.Args {
		depth = b.exprs(a, depth)
	}
	return depth
}

// maps reports the use of a map in a hidden section.
func (b *hiddenBody) maps(x ast.Expr, depth int) {
	if t := b.info.Types[x].Type; t != nil && depth > 0 {
		if _, is := t.Underlying().(*types.Map); is {
			b.h.problem(x.Pos(), "%s: maps are instrumented even under //go:norace", b.name)
		}
	}
}

// literal follows a function literal, which may be called from anywhere.
func (b *hiddenBody) literal(lit *ast.FuncLit) {
	depth, listed := b.called()
	if !listed && b.leavesFirst(lit) {
		depth = 1
	}
	b.runLiteral(lit, depth, -depth)
}

// called returns the rule for the literals in the function.
func (b *hiddenBody) called() (depth int, listed bool) {
	name := shortName(b.state.f) + ".func"
	b.h.used[name] = true
	depth, listed = b.h.rules.Called[name]
	return depth, listed
}

// leavesFirst reports whether a literal begins by leaving a hidden section.
func (b *hiddenBody) leavesFirst(lit *ast.FuncLit) bool {
	if len(lit.Body.List) == 0 {
		return false
	}
	call := callIn(lit.Body.List[0])
	return call != nil && b.toggles(call) < 0
}

// runLiteral follows a function literal that is called depth sections deep.
func (b *hiddenBody) runLiteral(lit *ast.FuncLit, depth, owed int) {
	in := &hiddenBody{h: b.h, info: b.info, decl: b.decl, state: b.state, name: b.name + " > func", owed: owed}
	if depth > 0 && !b.leavesFirst(lit) && !b.h.plain(b.h.pkg, shortName(b.state.f)+".func") {
		b.h.problem(lit.Pos(), "%s runs hidden and cannot carry //go:norace; name it", in.name)
	}
	in.run(lit.Body, depth)
}

// toggles returns by how much a call of package race changes the depth.
func (b *hiddenBody) toggles(call *ast.CallExpr) int {
	if f := b.callee(call); f != nil && f.Pkg().Path() == racePackage {
		switch f.Name() {
		case "Disable", "LeaveUser":
			return 1
		case "Enable", "EnterUser":
			return -1
		}
	}
	return 0
}

// callee returns the called function, if it is known and declared in the module.
func (b *hiddenBody) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var id *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	f, ok := b.info.Uses[id].(*types.Func)
	if !ok || f.Pkg() == nil {
		return nil
	}
	return f.Origin()
}

func (b *hiddenBody) call(call *ast.CallExpr, depth int) int {
	if lit, ok := ast.Unparen(call.Fun).(*ast.FuncLit); ok { // called here
		depth = b.args(call, depth)
		in := depth
		if d, listed := b.called(); listed {
			in = d
		}
		b.runLiteral(lit, in, b.owed+b.deferred)
		return depth
	}
	depth = b.args(call, b.exprs(call.Fun, depth))
	if id, ok := call.Fun.(*ast.Ident); ok && depth > 0 {
		if _, builtin := b.info.Uses[id].(*types.Builtin); builtin {
			if why := instrumented(b.decl, call); why != "" && !b.h.plain(b.h.pkg, shortName(b.state.f)+".append") {
				b.h.problem(call.Pos(), "%s: %s", b.name, why)
			}
		}
	}
	f := b.callee(call)
	if f == nil {
		return depth
	}
	if f.Pkg().Path() == racePackage {
		return b.hook(call, f, depth)
	}
	if recv := f.Signature().Recv(); recv != nil {
		if iface, ok := recv.Type().Underlying().(*types.Interface); ok {
			b.h.implementations(iface, f, depth, b.owed+b.deferred, b.state)
			return depth
		}
	}
	if b.h.decls[f] != nil {
		b.h.enter(f, depth, b.owed+b.deferred, b.state)
	}
	return depth
}

// hook follows a call of package race.
func (b *hiddenBody) hook(call *ast.CallExpr, f *types.Func, depth int) int {
	switch f.Name() {
	case "Acquire", "Release", "Reads":
		if depth > 0 {
			b.h.problem(call.Pos(), "%s: race.%s does nothing in a hidden section", b.name, f.Name())
		}
	case "Meet", "Offer", "Wrote":
		if depth != 1 {
			b.h.problem(call.Pos(), "%s: race.%s is called %d deep, which must be 1", b.name, f.Name(), depth)
		}
	case "EnterUser":
		if depth != 1 {
			b.h.problem(call.Pos(), "%s: race.EnterUser is called %d deep, which must be 1", b.name, depth)
		} else {
			b.panics(call.Pos(), 0)
		}
	}
	depth += b.toggles(call)
	if depth < 0 {
		b.h.problem(call.Pos(), "%s: race.%s outside of a hidden section", b.name, f.Name())
		depth = 0
	}
	return depth
}

// implementations enters the methods that a call through an interface may reach in the loaded packages.
func (h *hiddenCheck) implementations(iface *types.Interface, f *types.Func, depth, owed int, by hiddenState) {
	for m := range h.decls {
		if m.Name() != f.Name() || m.Signature().Recv() == nil {
			continue
		}
		if t := m.Signature().Recv().Type(); types.Implements(t, iface) {
			h.enter(m, depth, owed, by)
		} else if named, ok := derefNamed(t); ok && named.TypeParams().Len() > 0 && hasMethods(named, iface) {
			h.enter(m, depth, owed, by)
		}
	}
}

func derefNamed(t types.Type) (*types.Named, bool) {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return n, ok
}

// hasMethods reports whether a generic type has methods with the names of the interface's.
func hasMethods(n *types.Named, iface *types.Interface) bool {
	for m := range iface.Methods() {
		if obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(n), true, m.Pkg(), m.Name()); obj == nil {
			return false
		}
	}
	return true
}

// instrumented describes a call of copy, or of append to anything but a local variable: both report their accesses to
// the detector, even under the pragma.
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
