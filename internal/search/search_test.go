package search

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// threads is a world of actors that each do some independent steps.
type threads struct {
	left  []int
	ways  []int
	moves []int32
	cur   int
	log   []Event[int]
	site  func(actor, move int) int // nil: sites are not known
	fork  Fork
	text  strings.Builder
}

func (w *threads) Actor(i int) int       { return w.ways[i] }
func (w *threads) Actors() int           { return len(w.left) }
func (w *threads) Running() int          { return w.cur }
func (w *threads) Moves(actor int) int32 { return w.moves[actor] }
func (w *threads) Logged() int           { return len(w.log) }

func (w *threads) Site() int {
	if w.site == nil {
		return 0
	}
	return w.site(w.cur, int(w.moves[w.cur]))
}

// run runs a schedule, and returns the actors in the order in which they ran.
func (w *threads) run(s Strategy, steps ...int) string {
	w.left, w.moves, w.cur = slices.Clone(steps), make([]int32, len(steps)), -1
	w.log = w.log[:0]
	w.text.Reset()
	for forks := int32(0); ; {
		w.ways = w.ways[:0]
		keep := w.cur >= 0 && w.left[w.cur] > 0
		if keep {
			w.ways = append(w.ways, w.cur)
		}
		for i, n := range w.left {
			if n > 0 && i != w.cur {
				w.ways = append(w.ways, i)
			}
		}
		if len(w.ways) == 0 {
			return w.text.String()
		}
		k, fork := 0, int32(-1)
		if len(w.ways) > 1 {
			w.fork = Fork{N: len(w.ways), Keep: keep, World: w}
			k, fork = s.Choose(&w.fork), forks
			forks++
		}
		w.cur = w.ways[k]
		w.log = append(w.log, Event[int]{Actor: int32(w.cur), T: w.cur, Fork: fork, Wake: -1})
		w.left[w.cur]--
		w.moves[w.cur]++
		w.text.WriteByte('0' + byte(w.cur))
	}
}

// all runs all schedules of a strategy, and counts how often each occurs.
func all(t *testing.T, w *threads, s Strategy, steps ...int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for n := 0; s.Begin(n); n++ {
		seen[w.run(s, steps...)]++
		if n > 100_000 {
			t.Fatal("there is no end")
		}
	}
	if !Complete(s) {
		t.Error("not complete")
	}
	return seen
}

// Following the turns of a schedule runs it again. If a turn is left out, its actor does the same work later.
func TestCourseIsFollowed(t *testing.T) {
	w, random := new(threads), Random(1, 50)
	var c Course
	for n := range 200 {
		random.Begin(n)
		order := w.run(random, 5, 6, 7)
		var turns []Turn
		var did [3]int
		for _, letter := range order {
			actor := int(letter - '0')
			did[actor]++
			turns = append(turns, Turn{actor, did[actor]})
		}
		c.Follow(turns, nil)
		if got := w.run(&c, 5, 6, 7); got != order {
			t.Fatalf("%s, and the turns are of %s", got, order)
		}
		turns, _, ok := c.Ran()
		c.Follow(turns, nil)
		if got := w.run(&c, 5, 6, 7); got != order || !ok {
			t.Fatalf("%s, and what was recorded is %s: %v", got, order, turns)
		}
	}
	c.Follow([]Turn{{0, 2}, {2, 1}, {0, 5}, {1, 6}}, nil)
	if got := w.run(&c, 5, 6, 7); got != "002000111111222222" {
		t.Error(got)
	}
	c.Follow([]Turn{{2, 1}, {0, 5}, {1, 6}}, nil)
	if got := w.run(&c, 5, 6, 7); got != "200000111111222222" {
		t.Error(got)
	}
	c.Script([]int{1, 1})
	if got := w.run(&c, 1, 1, 2); got != "1220" {
		t.Error(got)
	}
	if turns, _, _ := c.Ran(); !slices.Equal(turns, []Turn{{1, 1}, {2, 2}}) {
		t.Error(turns)
	}
}

func TestExhaustiveGoesThroughAllOnce(t *testing.T) {
	for _, c := range []struct {
		bound, want int
	}{
		{-1, 1680}, // 9! / 3!^3
		{0, 6},     // 3!
		{1, 0},     // a number in between
	} {
		seen := all(t, new(threads), Exhaustive(c.bound), 3, 3, 3)
		for order, n := range seen {
			if n != 1 {
				t.Errorf("bound %d: %s comes %d times", c.bound, order, n)
			}
		}
		if c.bound != 1 && len(seen) != c.want {
			t.Errorf("bound %d: %d schedules, want %d", c.bound, len(seen), c.want)
		}
		if c.bound == 1 && (len(seen) <= 6 || len(seen) >= 1680) {
			t.Errorf("bound 1: %d schedules", len(seen))
		}
	}
}

// A path that does not fit into the table is run again when the table has grown, and no path is lost.
func TestExhaustiveGrowsItsTable(t *testing.T) {
	seen := all(t, new(threads), Exhaustive(1), 1500, 2)
	for order, n := range seen {
		if n > 2 { // the first is run again, once for each time that the table grew
			t.Errorf("a schedule of %d steps comes %d times", len(order), n)
		}
	}
	if want := 1 + 1499 + 1 + 1; len(seen) != want { // the first begins, and is preempted or not; or the second begins
		t.Errorf("%d schedules, want %d", len(seen), want)
	}
}

// TestDPOR: actors conflict if the model says so. Without any conflict there is one trace; if all conflict, all orders.
func TestDPOR(t *testing.T) {
	for _, c := range []struct {
		name     string
		conflict func(a, b int) bool
		want     int
	}{
		{"nothing conflicts", func(int, int) bool { return false }, 1},
		{"everything conflicts", func(int, int) bool { return true }, 90},    // 6! / 2!^3
		{"two conflict", func(a, b int) bool { return a != 2 && b != 2 }, 6}, // 4! / 2!^2
	} {
		w := new(threads)
		s := &DPOR[int]{Model: model{w, c.conflict}}
		seen := all(t, w, s, 2, 2, 2)
		n := 0
		for _, k := range seen {
			n += k
		}
		if n-s.Redundant != c.want {
			t.Errorf("%s: %d schedules, %d of them redundant, want %d", c.name, n, s.Redundant, c.want)
		}
	}
}

type model struct {
	w        *threads
	conflict func(a, b int) bool
}

func (m model) Way(f *Fork, k int) int              { return f.World.Actor(k) }
func (m model) Conflict(a, b int) bool              { return m.conflict(a, b) }
func (m model) Learned() bool                       { return false }
func (m model) Awaited([]Event[int], int, int) bool { return false }

func (m model) Events(events []Event[int], end int) []Event[int] {
	if end < 0 {
		end = len(m.w.log)
	}
	return append(events, m.w.log[:end]...)
}

// An actor that is stopped once does the rest after the other actor has ended. A random walk almost never does that.
func TestDelayStopsForLong(t *testing.T) {
	for _, c := range []struct {
		strategy Strategy
		min, max int
	}{{Random(1, 0), 0, 20}, {Delay(1, 0, 1), 50, 900}} {
		w, n := new(threads), 0
		for schedule := range 1000 {
			c.strategy.Begin(schedule)
			if order := w.run(c.strategy, 10, 20); order[0] == '0' && order[25:] == "00000" {
				n++
			}
		}
		if n < c.min || n > c.max {
			t.Errorf("%s: the actor is stopped in %d of 1000 schedules", c.strategy.Name(), n)
		}
	}
}

// An actor visits one line once, and others often. If sites are known, it is often stopped at that line.
func TestDelayStopsAtRareLines(t *testing.T) {
	lines := func(actor, move int) int {
		if actor == 0 && move == 150 {
			return 3
		}
		return 1 + actor
	}
	for _, c := range []struct {
		site     func(actor, move int) int
		min, max int
	}{{nil, 0, 20}, {lines, 200, 500}} {
		w, s, n := &threads{site: c.site}, Delay(1, 50, 1), 0
		for schedule := range 1000 {
			s.Begin(schedule)
			order := w.run(s, 200, 500)
			if before, _, found := strings.Cut(order, strings.Repeat("1", 100)); found && strings.Count(before, "0") == 150 {
				n++
			}
		}
		if n < c.min || n > c.max {
			t.Errorf("with sites %v: the actor is stopped at the line in %d of 1000 schedules", c.site != nil, n)
		}
	}
}

// A schedule that is run again has the same sites, although its visits are known now.
func TestSitesAgain(t *testing.T) {
	w := &threads{site: func(actor, move int) int { return 1 + actor*10 + move%10 }}
	for _, s := range []Strategy{Delay(1, 50, 2), PCT(1, 3)} {
		for schedule := range 100 {
			s.Begin(schedule)
			order := w.run(s, 20, 30)
			if !Again(s) {
				t.Fatalf("%s cannot run a schedule again", s.Name())
			}
			if again := w.run(s, 20, 30); again != order {
				t.Fatalf("%s, schedule %d: %s, then %s", s.Name(), schedule, order, again)
			}
		}
	}
}

// A stopped actor continues when the only other one yields.
func TestDelayGivesWay(t *testing.T) {
	s := Delay(1, 0, 16)
	s.Begin(0)
	w := &threads{ways: []int{0, 1}}
	for range 40 { // one of them is stopped
		s.Choose(&Fork{N: 2, Keep: true, World: w})
	}
	chosen := map[int]bool{}
	for range 40 {
		chosen[s.Choose(&Fork{N: 2, Yields: true, World: w})] = true
	}
	if len(chosen) != 2 {
		t.Errorf("it chose only %v", chosen)
	}
}

func TestPCTGivesWay(t *testing.T) {
	s := PCT(1, 1)
	s.Begin(0)
	w := &threads{ways: []int{0, 1}}
	first := s.Choose(&Fork{N: 2, Keep: true, World: w})
	w.ways = []int{1 - first, first} // the one with the higher priority, last, yields
	if k := s.Choose(&Fork{N: 2, Yields: true, World: w}); k != 0 {
		t.Errorf("it chose way %d", k)
	}
}

func TestScriptThenRest(t *testing.T) {
	s := &Script{Ways: []int{1, 1}, Rest: RoundRobin()}
	s.Begin(0)
	if got := new(threads).run(s, 3, 3); got != "101010"[:len(got)] || len(got) != 6 {
		t.Errorf("the order is %s", got)
	}
}

// The functions that a schedule calls are hidden from the race detector, do not allocate, and call nothing that the
// detector sees nevertheless, because `coir test` calls them on the system stack.
func TestChooseIsHidden(t *testing.T) {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var decls []*ast.FuncDecl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				decls = append(decls, d)
			}
		}
	}
	var reach func(name string) // follows all methods of that name
	seen := map[*ast.FuncDecl]bool{}
	reach = func(name string) {
		for _, d := range decls {
			if d.Name.Name != name || seen[d] {
				continue
			}
			seen[d] = true
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch fn := call.Fun.(type) {
				case *ast.Ident:
					switch fn.Name {
					case "append", "copy", "make", "new":
						t.Errorf("%s: %s in what a schedule calls", fset.Position(n.Pos()), fn.Name)
					}
					reach(fn.Name)
				case *ast.SelectorExpr:
					reach(fn.Sel.Name)
				}
				return true
			})
			if d.Doc == nil || !strings.Contains(d.Doc.Text()+raw(d.Doc), "go:norace") {
				t.Errorf("%s: %s lacks //go:norace", fset.Position(d.Pos()), d.Name.Name)
			}
			if d.Recv != nil {
				if _, ok := d.Recv.List[0].Type.(*ast.StarExpr); !ok {
					t.Errorf("%s: %s has a value receiver, whose wrapper the detector sees", fset.Position(d.Pos()), d.Name.Name)
				}
			}
		}
	}
	reach("Choose")
	if len(seen) < 10 {
		t.Errorf("only %d functions were looked at", len(seen))
	}
}

func raw(g *ast.CommentGroup) (text string) {
	for _, c := range g.List {
		text += c.Text + "\n"
	}
	return text
}
