package testing

import (
	"fmt"
	"internal/replay"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// The record of a test is a file with one fact a line, its fields separated by tabs; texts are quoted. Package report of
// the command reads it, and has the list of facts.

type coirRecord struct{ b strings.Builder }

func (r *coirRecord) add(what string, fields ...any) {
	r.b.WriteString(what)
	for _, f := range fields {
		r.b.WriteByte('\t')
		if s, ok := f.(string); ok {
			r.b.WriteString(strconv.Quote(s))
			continue
		}
		fmt.Fprint(&r.b, f)
	}
	r.b.WriteByte('\n')
}

// write writes the record: at once, for the process may end at any time.
func (r *coirRecord) write() {
	if coirSet.record == "" {
		os.Stdout.WriteString(r.b.String())
		return
	}
	f, err := os.OpenFile(coirSet.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		f.WriteString(r.b.String())
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coir: cannot write the record:", err)
	}
}

func (x *coirExplorer) summary(r *coirRecord, outcome string) {
	coirPart.note(r, x, outcome)
	r.add("summary", outcome, coirPart.count+x.count, coirPart.left+x.left, x.complete, strconv.FormatUint(x.trace, 16))
}

func (x *coirExplorer) record(outcome string) {
	var r coirRecord
	x.summary(&r, outcome)
	r.write()
}

func (x *coirExplorer) recordError(text string) {
	var r coirRecord
	r.add("error", text)
	x.summary(&r, "error")
	r.write()
}

// recordAgain asks for a schedule to be run in another process.
func (x *coirExplorer) recordAgain(token string, found int) {
	var r coirRecord
	r.add("again", token, found)
	x.summary(&r, "again")
	r.write()
}

// recordLeft tells of goroutines that each schedule leaves behind.
func (x *coirExplorer) recordLeft(run *coirRun) {
	var r coirRecord
	r.actors(run)
	x.summary(&r, "pass")
	r.write()
}

func (x *coirExplorer) recordFailure(run *coirRun, kind string, found int, stable bool) {
	var r coirRecord
	script := replay.Script(run.allDecisions())
	r.add("failure", kind, run.text, found, run.config.seed, replay.Switches(script),
		coirEncode(run.config, script, run.hash), stable, run.outside, run.panicG)
	at := 0
	for i := range min(int(run.steps), 1<<16) {
		var pcs [64]uintptr
		g, obj, op, when, npc := coirStepAt(i, pcs[:])
		way, ways := uint16(0), uint16(0)
		for ; at < run.decisions; at++ {
			of, k, _, step := coirDecisionAt(at)
			if int(step) > i+1 {
				break
			}
			if k != 0 {
				way, ways = k, of
			}
		}
		file, line, function, call := coirPlace(pcs[:npc])
		r.add("step", i+1, g, op, obj, when, file, line, function, way, ways, call)
	}
	r.actors(run)
	r.add("output", run.output)
	x.summary(&r, "fail")
	r.write()
}

func (r *coirRecord) actors(run *coirRun) {
	for i := 1; i <= run.actors && i < 1<<17; i++ {
		parent, gopc, op, state, reason, obj, step, since := coirActorAt(i)
		file, line, function, _ := coirPlace([]uintptr{gopc})
		var pcs [64]uintptr
		at, atLine, atFunction, call := coirPlace(pcs[:coirActorPCs(i, pcs[:])])
		r.add("actor", i, parent, op, state, reason, obj, step, since, file, line, function, at, atLine, atFunction,
			call, coirActorName(i))
	}
}

// coirPlace is the innermost place of a stack that is not of the runtime, of package sync, of this package or of coir, and
// the function of coir that was called there. If there is no such place it is the innermost of coir, or of all.
func coirPlace(pcs []uintptr) (file string, line int, function, call string) {
	if len(pcs) == 0 {
		return "", 0, "", ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		library := coirLibrary(f)
		switch {
		case library:
		case f.Function == "" || strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "sync.") ||
			strings.HasPrefix(f.Function, "sync/atomic.") || strings.HasPrefix(f.Function, "iter.") ||
			strings.HasPrefix(f.Function, "internal/") || strings.HasPrefix(f.Function, "testing."):
		default:
			return f.File, f.Line, f.Function, call
		}
		if file == "" || library && call == "" {
			file, line, function = f.File, f.Line, f.Function
		}
		if library {
			call = f.Function
		}
		if !more {
			return file, line, function, ""
		}
	}
}

// coirLibrary reports whether a frame is of module coir, whose fibers are explored with the goroutines of the program. In
// its own tests the frames are told.
func coirLibrary(f runtime.Frame) bool {
	const path = "github.com/coir-go/coir"
	of := func(name string) bool {
		return strings.HasPrefix(name, path+".") || strings.HasPrefix(name, path+"/internal/")
	}
	return of(f.Function) && coirTest != nil && !of(coirTest.importPath+".") && !strings.HasSuffix(f.File, "_test.go")
}

// What a schedule waits for that is not controlled; coirTakeTurn has the first of them.
const coirLong, coirSignal, coirForeign = 4, 5, 6

// coirWaitsFor is what a schedule waits for whose goroutines all wait, for none of the others.
func coirWaitsFor(r *coirRun) int {
	if r.signals {
		return coirSignal
	}
	return coirForeign
}

// recordUncontrolled tells what a schedule waits for in the kernel, or computes. The process ends then. The stacks are
// of the last bubble, and those first that are not where the schedule could end their wait.
func (x *coirExplorer) recordUncontrolled(what int) {
	var r coirRecord
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	last := 0
	stacks := map[bool][]string{}
	for _, stack := range strings.Split(string(buf), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		_, bubble, ok := strings.Cut(head, "synctest bubble ")
		id, _ := strconv.Atoi(strings.TrimRight(bubble, "]:"))
		if !ok || id < last || strings.Contains(head, "synctest.Run") {
			continue
		}
		if id > last {
			clear(stacks)
			last = id
		}
		durable := strings.Contains(head, "durable")
		stacks[durable] = append(stacks[durable], stack)
	}
	for _, stack := range append(stacks[false], stacks[true]...) {
		r.add("stack", stack)
	}
	r.add("uncontrolled", what)
	x.summary(&r, "uncontrolled")
	r.write()
}
