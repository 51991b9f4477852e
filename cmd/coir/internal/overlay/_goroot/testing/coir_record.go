package testing

import (
	"fmt"
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
	r.add("summary", outcome, x.count, x.left)
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
	d := run.allDecisions()
	given := coirTrim(d)
	r.add("failure", kind, run.text, found, run.config.seed, coirSwitches(given),
		coirEncode(run.config, given, run.hash), stable, run.outside, run.panicG)
	at := 0
	for i := range min(int(run.steps), 1<<16) {
		var pcs [64]uintptr
		g, obj, op, when, npc := coirStepAt(i, pcs[:])
		way, ways := uint16(0), uint16(0)
		for ; at < len(d) && int(d[at].step) <= i+1; at++ {
			if d[at].way != 0 {
				way, ways = d[at].way, d[at].ways
			}
		}
		file, line, function := coirPlace(pcs[:npc])
		r.add("step", i+1, g, op, obj, when, file, line, function, way, ways)
	}
	r.actors(run)
	r.add("output", run.output)
	x.summary(&r, "fail")
	r.write()
}

func (r *coirRecord) actors(run *coirRun) {
	for i := 1; i <= run.actors && i < 1<<17; i++ {
		parent, gopc, op, state, reason, obj, step, since := coirActorAt(i)
		file, line, function := coirPlace([]uintptr{gopc})
		var pcs [64]uintptr
		at, atLine, atFunction := coirPlace(pcs[:coirActorPCs(i, pcs[:])])
		r.add("actor", i, parent, op, state, reason, obj, step, since, file, line, function, at, atLine, atFunction)
	}
}

// coirPlace is the innermost place of a stack that is not of the runtime, of package sync or of this package.
func coirPlace(pcs []uintptr) (file string, line int, function string) {
	if len(pcs) == 0 {
		return "", 0, ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "" || strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "sync.") ||
			strings.HasPrefix(f.Function, "internal/") || strings.HasPrefix(f.Function, "testing."):
		default:
			return f.File, f.Line, f.Function
		}
		if file == "" {
			file, line, function = f.File, f.Line, f.Function
		}
		if !more {
			return file, line, function
		}
	}
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
