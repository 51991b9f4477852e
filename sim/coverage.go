package sim

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/maphash"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"

	"github.com/coir-go/coir/internal/report"
)

// This file measures the coverage of a test that passes: how many pairs of conflicting operations came in both orders,
// and which calls of Sometimes were never reached. Neither shows that the program is correct. Both show where the test
// is weak.

// pairings counts pairs of operations by two fibers that followed each other on one channel, lock or other object. A
// pair is the numbers of the two fibers, their operations, and the name of the object.
type pairings struct {
	pairs map[pair]uint8 // 1: the first fiber came first; 2: the second did; 3: both orders
	both  int            // the number of pairs that came in both orders
	last  int            // the last schedule with a new pair, or a new order of a pair
	on    []turn         // the last operation on each object
}

type pair struct {
	first, second turn
	thing         uint64
}

// turn is an operation of a fiber.
type turn struct {
	fiber int32
	what  uint16
}

func (d turn) before(e turn) bool { return d.fiber < e.fiber }

const (
	coverAll   = 100 // the number of first schedules, all of which are examined
	coverEvery = 8   // one in this many of the later schedules is examined, to save time
)

var coverSeed = maphash.MakeSeed()

// look adds the last schedule of w, if that schedule is to be examined. The schedule has ended, so look is ordinary
// code.
func (c *pairings) look(w *world, schedule int) {
	if schedule > coverAll && schedule%coverEvery != 0 || w.nsteps > len(w.trace) {
		return
	}
	if c.pairs == nil {
		c.pairs = map[pair]uint8{}
	}
	for n := int(w.objects.n); len(c.on) < n; {
		c.on = append(c.on, turn{})
	}
	for i := range c.on {
		c.on[i].fiber = -1
	}
	for s := range w.nsteps {
		e := &w.trace[s]
		op, object := &e.op, e.object
		if e.which >= 0 && e.which < e.cases.n && e.cases.first+int(e.which) < len(w.cases) && w.ncases <= len(w.cases) {
			x := &w.cases[e.cases.first+int(e.which)]
			op, object = &x.op, x.object
		}
		if object < 0 || int(object) >= len(c.on) || !isThing(op.Kind) {
			continue
		}
		now := turn{e.fiber, uint16(op.Kind) << 2}
		if op.Undo {
			now.what |= 1
		}
		if op.Try {
			now.what |= 2
		}
		before := c.on[object]
		c.on[object] = now
		if before.fiber < 0 || before.fiber == now.fiber {
			continue
		}
		p, order := pair{before, now, uint64(object)}, uint8(1)
		if op.Name != "" {
			p.thing = maphash.String(coverSeed, op.Name)
		}
		if now.before(before) {
			p.first, p.second, order = now, before, 2
		}
		if was := c.pairs[p]; was&order == 0 {
			c.pairs[p], c.last = was|order, schedule
			if was|order == 3 {
				c.both++
			}
		}
	}
}

// text describes the coverage after a number of schedules.
func (c *pairings) text(schedules int) string {
	if len(c.pairs) == 0 {
		return ""
	}
	text := fmt.Sprintf("; %d of %s of conflicting operations in both orders", c.both, report.Count(len(c.pairs), "pair"))
	if schedules >= coverAll {
		if c.last > schedules/2 {
			return text + ", and still growing"
		}
		return text + fmt.Sprintf(", none new since schedule %d", c.last)
	}
	return text
}

// sometimesIn returns the names that the source of fn passes to Sometimes, in the function itself or in a function
// literal in it. It returns none if the source cannot be read.
func sometimesIn(fn any) (names []string) {
	f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer())
	if f == nil {
		return nil
	}
	path, line := f.FileLine(f.Entry())
	text, err := os.ReadFile(path)
	if err != nil {
		if text, err = os.ReadFile(filepath.Base(path)); err != nil { // built with -trimpath: go test runs in the directory
			return nil
		}
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var body *ast.BlockStmt
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || files.Position(n.Pos()).Line > line || files.Position(n.End()).Line < line {
			return false
		}
		switch x := n.(type) {
		case *ast.FuncDecl:
			if files.Position(x.Pos()).Line == line {
				body = x.Body
			}
		case *ast.FuncLit:
			if files.Position(x.Pos()).Line == line && x.Type.Params.NumFields() == 2 {
				body = x.Body
			}
		}
		return true
	})
	if body == nil {
		return nil
	}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		name, literal := call.Args[1].(*ast.BasicLit)
		if ok && literal && method.Sel.Name == "Sometimes" && name.Kind == token.STRING {
			if s, err := strconv.Unquote(name.Value); err == nil {
				names = append(names, s)
			}
		}
		return true
	})
	return names
}
