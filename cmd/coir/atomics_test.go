package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/soak"
)

// An atomicOp is an operation on a variable x of a type.
type atomicOp struct {
	name, typ string
	of        string // atomic.LoadInt64 or x.Load
	args      string
	word      string // how a report calls it
}

// atomicOps returns the operations of package sync/atomic on one type of each form, or on all types.
func atomicOps(all bool) []atomicOp {
	var ops []atomicOp
	add := func(typ, prefix, suffix, first, val string, kinds int) {
		for _, kind := range []struct{ name, args, word string }{
			{"Load", "", "load"}, {"Store", val, "store"}, {"Swap", val, "swap"},
			{"CompareAndSwap", val + ", " + val, "cas"},
			{"Add", val, "add"}, {"And", val, "and/or"}, {"Or", val, "and/or"},
		}[:kinds] {
			args := strings.Trim(first+", "+kind.args, ", ")
			name := regexp.MustCompile(`\W`).ReplaceAllString(typ+"_"+kind.name, "")
			ops = append(ops, atomicOp{name, typ, prefix + kind.name + suffix, "(" + args + ")", kind.word})
		}
	}
	for _, name := range []string{"Int64", "Int32", "Uint64", "Uint32", "Uintptr"} {
		add(strings.ToLower(name), "atomic.", name, "x", "1", 7)
		add("atomic."+name, "x.", "", "", "1", 7)
		if !all {
			break
		}
	}
	add("unsafe.Pointer", "atomic.", "Pointer", "x", "nil", 4)
	add("atomic.Bool", "x.", "", "", "true", 4)
	add("atomic.Value", "x.", "", "", "1", 4)
	add("atomic.Pointer[T]", "x.", "", "", "nil", 4)
	// The standard library has instances of these.
	add("atomic.Pointer[string]", "x.", "", "", "nil", 4)
	add("atomic.Pointer[slog.Logger]", "x.", "", "", "nil", 4)
	return ops
}

type atomicPlace struct{ name, body, decls string }

// atomicPlaces are the syntactic positions of an operation. TYPE is the type of the variable, OF the method or
// function, ARGS are its arguments, OP is the call, and NAME is a name that differs for each operation.
var atomicPlaces = []atomicPlace{
	{"Function", `funcNAME(x)`, `func funcNAME(x *TYPE) { OP }`},
	{"Noinline", `noinlineNAME(x)`, "//go:noinline\nfunc noinlineNAME(x *TYPE) { OP }"},
	{"Value", `f := OF; hide(f); fARGS`, ``},
	{"CalledAtOnce", `func() { OP }()`, ``},
	{"Local", `f := func() { OP }; call(f)`, ``},
	{"Returned", `call(returnedNAME(x))`, `func returnedNAME(x *TYPE) func() { return func() { OP } }`},
	{"ReturnedNoinline", `call(returnedNoinlineNAME(x))`,
		"//go:noinline\nfunc returnedNoinlineNAME(x *TYPE) func() { return func() { OP } }"},
	{"ReturnedTwice", `call(twiceNAME(x)())`,
		`func twiceNAME(x *TYPE) func() func() { return func() func() { return func() { OP } } }`},
	{"Middleware", `call((&holderNAME{x}).limit(func() {}))`, `
		type holderNAME struct { x *TYPE }
		func (h *holderNAME) limit(next func()) func() {
			x := h.x
			return func() { OP; next() }
		}`},
	{"Defer", `deferNAME(x)`, `func deferNAME(x *TYPE) { defer OP }`},
	{"ReturnedDefer", `call(returnedDeferNAME(x))`, `func returnedDeferNAME(x *TYPE) func() { return func() { defer OP } }`},
	{"Go", `goNAME(x)`, `func goNAME(x *TYPE) { go OP }`},
	{"ReturnedGo", `call(returnedGoNAME(x))`, `func returnedGoNAME(x *TYPE) func() { return func() { go OP } }`},
	{"Generic", `genericNAME(x, 1)`, `func genericNAME[K any](x *TYPE, _ K) { OP }`},
	{"GenericReturned", `call(genericReturnedNAME(x, "a"))`,
		`func genericReturnedNAME[K any](x *TYPE, _ K) func() { return func() { OP } }`},
	{"Package", `packageNAME(x)`, `var packageNAME = func(x *TYPE) { OP }`},
	{"PackageReturned", `packageReturnedNAME(x)`,
		"var packageReturnedNAME = makeNAME()\nfunc makeNAME() func(x *TYPE) { return func(x *TYPE) { OP } }"},
	{"Range", `for range once { OP }`, ``},
	{"Field", `fieldNAME(hide(&struct{ x TYPE }{}))`, `func fieldNAME(s *struct { x TYPE }) { x := &s.x; OP }`},
}

// atomicMethodPlaces are the positions that only a method can have.
var atomicMethodPlaces = []atomicPlace{
	{"Embedded", `x := hide(&embeddedNAME{}); OP`, `type embeddedNAME struct { TYPE }`},
	{"EmbeddedValue", `x := hide(&embeddedValueNAME{}); f := OF; hide(f); fARGS`, `type embeddedValueNAME struct { TYPE }`},
	{"EmbeddedReturned", `call(hide(&embeddedReturnedNAME{}).limit())`, `
		type embeddedReturnedNAME struct { TYPE }
		func (x *embeddedReturnedNAME) limit() func() { return func() { OP } }`},
	{"EmbeddedInterface", `any(hide(&embeddedInterfaceNAME{})).(interface{ METHOD }).OPOF`,
		`type embeddedInterfaceNAME struct { n int; TYPE }`},
	{"Interface", `any(hide(x)).(interface{ METHOD }).OPOF`, ``},
	{"Expression", `f := (*TYPE).SELECTOR; hide(f); fWITHX`, ``},
}

// With -atomics each operation is a point, wherever it stands: whether the compiler inlines the method, the function
// around it or neither, and whichever package the linker takes the code of a generic method from.
func TestEachAtomicIsAPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	type cell struct {
		op          atomicOp
		place       string
		first, last int // its lines
	}
	var cells []cell
	lines := strings.Split(atomicsHead, "\n")
	write := func(c cell, text string) {
		c.first = len(lines) + 1
		lines = append(lines, strings.Split(text, "\n")...)
		c.last = len(lines)
		cells = append(cells, c)
	}
	for _, op := range atomicOps(soak.On()) {
		var bodies []func()
		for _, place := range op.places() {
			r := op.replacer(op.name + place.name)
			c := cell{op: op, place: place.name}
			write(c, r.Replace(place.decls))
			bodies = append(bodies, func() { write(c, r.Replace("\t{ x := new(TYPE); hide(x); { "+place.body+" } }")) })
		}
		lines = append(lines, fmt.Sprintf("func %s(t *testing.T) {", op.test()))
		for _, body := range bodies {
			body()
		}
		lines = append(lines, "\tsynctest.Wait()", "\tt.Error()", "}")
	}
	t.Setenv("COLUMNS", "100000") // each goroutine has a column
	dir := module(t, map[string]string{"shop_test.go": strings.Join(lines, "\n")})
	later := time.Now().Add(time.Hour) // than the binary, so that reports have numbers instead of names
	if err := os.Chtimes(filepath.Join(dir, "shop_test.go"), later, later); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{}, {"-race"}, {"-trimpath"}} {
		if slices.Contains(flags, "-trimpath") { // the path looks like one of the standard library
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module shop\n\ngo 1.26\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got := explored(t, append(flags, "-atomics", "-strategy=plain", "-schedules=1", ".")...)
		if o := got[""]; o.FailedBuild != "" || len(got) < 10 {
			t.Fatalf("%q: %s", flags, o.Output)
		}
		seen := map[int]string{} // by line
		for _, o := range got {
			if o.Failure != nil {
				pointsIn(o.Failure.Report, seen)
			}
		}
		points := map[string]bool{}
		for _, c := range cells {
			name := c.op.test() + ", " + c.place
			for line := c.first; line <= c.last; line++ {
				points[name] = points[name] || seen[line] == c.op.word+" "
			}
		}
		for name, is := range points {
			if !is {
				t.Errorf("%q: %s: no point", flags, name)
			}
		}
		t.Logf("%q: %d operations", flags, len(points))
	}
}

var atomicStep = regexp.MustCompile(`^ (load|store|swap|cas|add|and/or) atomic#`)

// pointsIn adds the steps of a report on atomics to seen, by their lines.
func pointsIn(report string, seen map[int]string) {
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimSpace(s[strings.LastIndex(s, ":")+1:]))
		return n
	}
	var head []string
	for row := range strings.Lines(report) {
		columns := strings.Split(row, "|")
		if strings.HasSuffix(columns[0], " step ") {
			head = columns
		}
		for i, column := range columns {
			if m := atomicStep.FindStringSubmatch(column); m != nil {
				line := number(columns[len(columns)-1])
				if i > 1 { // a go statement: the operation itself has no line
					line = number(head[i])
				}
				seen[line] += m[1] + " "
			}
		}
	}
}

const atomicsHead = `package shop

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"
)

var _ slog.Logger
var _ unsafe.Pointer
var _ atomic.Bool

type T struct { a, b int }

var hidden any

//go:noinline
func hide[X any](x X) X { hidden = x; return x }

//go:noinline
func call(f func()) { f() }

func once(yield func() bool) { yield() }
`

func (op atomicOp) test() string { return "TestX" + op.name }

// places returns the positions in which the operation can stand.
func (op atomicOp) places() []atomicPlace {
	if strings.HasPrefix(op.of, "x.") {
		return slices.Concat(atomicPlaces, atomicMethodPlaces)
	}
	return atomicPlaces
}

// replacer puts the operation into a position, whose own names end in name.
func (op atomicOp) replacer(name string) *strings.Replacer {
	selector := strings.TrimPrefix(op.of, "x.")
	typ := strings.TrimPrefix(op.typ, "atomic.")
	val := map[string]string{"Bool": "bool", "Value": "any"}[typ]
	if val == "" {
		val = strings.ToLower(typ)
		if of, ok := strings.CutPrefix(typ, "Pointer["); ok {
			val = "*" + strings.TrimSuffix(of, "]")
		}
	}
	params := strings.Trim(strings.Repeat(val+", ", strings.Count(op.args, ",")+1), ", ")
	if op.args == "()" {
		params = ""
	}
	result := val
	switch selector {
	case "Store":
		result = ""
	case "CompareAndSwap":
		result = "bool"
	}
	return strings.NewReplacer("METHOD", selector+"("+params+") "+result, "OPOF", selector+op.args, "SELECTOR", selector,
		"WITHX", strings.Replace(op.args, "(", "(x, ", 1), "ARGS", op.args, "OP", op.of+op.args, "OF", op.of,
		"TYPE", op.typ, "NAME", name)
}

// If a package uses sync/atomic, a note recommends -atomics, also if it fails.
func TestAtomicsAreHintedAt(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	module(t, map[string]string{"a_test.go": `package a

import (
	"sync/atomic"
	"testing"
)

func TestAdd(t *testing.T) {
	var n atomic.Int64
	done := make(chan bool)
	go func() { n.Add(1); done <- true }()
	n.Add(1)
	<-done
}

func TestFails(t *testing.T) { // in some schedules
	c := make(chan int, 2)
	go func() { c <- 1 }()
	go func() { c <- 2 }()
	if <-c == 1 {
		t.Error("1")
	}
}
`})
	for _, run := range []string{"-run=TestAdd", "-run=Test"} {
		for _, flags := range [][]string{nil, {"-atomics"}} {
			o := explored(t, append(flags, "-schedules=10", run, ".")...)[""]
			if strings.Contains(o.Output, "note: "+atomicsHint+"\n") != (flags == nil) {
				t.Errorf("%s %q: %s", run, flags, o.Output)
			}
		}
	}
}
