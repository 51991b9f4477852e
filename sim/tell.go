package sim

import (
	"context"
	"runtime"
	"strings"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/source"
)

// This file records facts that only a report needs, and that take too long to record in each schedule: the line of each
// operation, and where channels were made. A schedule can be run again. So when sim has found a failure and shrunk it,
// it runs the schedule once more, records these facts, and reports that run.
//
// The outcomes of operations are always recorded: that costs a call for each operation, and no memory.

// site is where the program performed an operation.
type site struct {
	file   string // empty if unknown
	line   int
	call   string // the function of the library that the program called there, if it performs more than one operation
	begins bool   // the beginning of the program's function, not an operation
	sleeps bool   // the program called Sleep there, which for 0 is a Yield

	path uint64 // a hash of the lines of the library that led from there to the operation

	served int // the number of operations when the wait in the operation ended; 0 if it did not wait, or still waits
}

// making is where a channel was made.
type making struct {
	id     uint64 // the number of the channel
	object int32
	room   int // how many values it may hold
	at     site
}

// mark is a text that the program added to the trace.
type mark struct {
	step  int // operations before it
	fiber int32
	kind  string // errorMark, logMark, raceMark, or the mark of Sometimes
	text  string
	at    site
}

// The kinds of marks of Errorf and Logf, and of a data race.
const (
	errorMark = "error: "
	logMark   = "log: "
	raceMark  = "data race"
)

// fails reports whether a mark is of a failure.
func (m *mark) fails() bool { return m.kind == errorMark || m.kind == raceMark }

// told runs a failed schedule once more, and records all that a report shows. It returns that run, or f if that run
// differs.
func (w *world) told(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) *Failure {
	if _, ok := w.strategy.(*drawn); ok || f.Kind == KindUncontrolled {
		return f // Drawn runs only one schedule
	}
	w.tells = true
	g := w.follow(ctx, s, fn, f.script, nil)
	w.tells = false
	if g == nil || g.Kind != f.Kind || g.hash != f.hash {
		return f
	}
	g.Schedule, g.Strategy, g.Seed, g.unsure, g.cut = f.Schedule, f.Strategy, f.Seed, f.unsure, f.cut
	return g
}

// toldRace runs a schedule with a data race once more, and records what a report shows. It returns that run, or f if
// that run differs. The detector reports each race only once, so the second run passes.
func (w *world) toldRace(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) *Failure {
	w.tells = true
	defer func() { w.tells = false }()
	if w.follow(ctx, s, fn, f.script, nil) != nil || w.hash != f.hash {
		return f
	}
	g := &Failure{Kind: f.Kind, Text: f.Text, Token: f.Token}
	g.freeze(w)
	g.marks = append(g.marks, w.race)
	return g
}

// site returns where the running fiber is, if the world records for a report.
//
//go:norace
func (r *recorder) site() (at site) {
	if r.tells {
		at = here()
	}
	return at
}

// here returns the line of the program that has called the library. If the library called back a function that the
// program had passed to it, such as the sequence of [coir.Map], that line is the call that passed the function.
//
//go:norace
func here() (at site) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	named := false   // whether the function of the library that the program called is known
	cancels := false // it is the function that cancels a scope, which has no name
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "":
		case ours(f.Function, f.File):
			at.sleeps = at.sleeps || at.file == "" && f.Function == library+".Sleep"
			cancels = cancels || f.Function == library+".(*scope).announceCancel"
			call, ok := callOf(f.Function, f.File)
			if ok {
				at.call = call
			}
			if at.file == "" { // only frames of the library so far
				at.path = (at.path ^ uint64(f.PC)) * fnvPrime
				named = ok || cancels
			} else if call != "" {
				return at
			}
		case !source.Standard(f.Function, f.File):
			if at.file == "" {
				at.file, at.line = f.File, f.Line
			}
			if named {
				return at
			}
		}
	}
	return at
}

// inlined returns which function of the package in dir has made the iterator that was inlined into another function, as
// callOf reads it. The frame of such an iterator is called shop.serve.(*Ordered[...]).All.func1.
//
//go:norace
func inlined(function, dir string) string {
	in, name := cutLast(strings.ReplaceAll(function, "[...]", "$"), ".")
	for name != "" && !exported(name) { // func1, or 1
		in, name = cutLast(in, ".")
	}
	if !strings.HasSuffix(name, "$") { // otherwise it is a function: From[...]
		_, owner := cutLast(in, ".")
		name = owner + "." + name
	}
	return dir + "." + strings.ReplaceAll(name, "$", "[...]")
}

// callOf reports whether a function is an exported function of the library, and returns its name in reports, such as
// Ordered.Recv. The name is empty if the function is one operation, which describes itself.
//
//go:norace
func callOf(function, file string) (call string, ok bool) {
	path, ok := strings.CutPrefix(function, library)
	if dir, known := source.Dir(file); known && (!ok || !strings.HasPrefix(path, dir+".")) {
		path, ok = inlined(function, dir), true
	}
	if !ok || path == "" {
		return "", false
	}
	pkg, name := "coir", path[1:]
	if path[0] == '/' {
		if pkg, name, ok = strings.Cut(path[1:], "."); !ok || strings.Contains("/"+pkg+"/", "/internal/") || pkg == "sim" {
			return "", false
		}
	}
	for { // the type parameters: [...]
		from, to := strings.IndexByte(name, '['), strings.IndexByte(name, ']')
		if from < 0 || to < from {
			break
		}
		name = name[:from] + name[to+1:]
	}
	name = strings.Replace(strings.Replace(name, "(*", "", 1), ")", "", 1)
	name, _, _ = strings.Cut(name, "-") // of the body of a range
	owner, method, isMethod := strings.Cut(name, ".")
	if method, _, _ = strings.Cut(method, "."); strings.HasPrefix(method, "func") || strings.HasPrefix(method, "gowrap") {
		method, isMethod = "", false // a function literal
	}
	if !exported(owner) || isMethod && !exported(method) {
		return "", false
	}
	switch {
	case pkg == "coir" && !composed(owner), pkg == "pace", pkg == "locks" && !isMethod,
		pkg == "locks" && (owner == "Mutex" || owner == "RWMutex" || owner == "Semaphore"):
		return "", true
	case isMethod:
		return owner + "." + method, true
	case pkg == "coir":
		return owner, true
	}
	return pkg[strings.LastIndexByte(pkg, '/')+1:] + "." + owner, true
}

// exported reports whether a name begins with a capital letter.
//
//go:norace
func exported(name string) bool { return name != "" && name[0] >= 'A' && name[0] <= 'Z' }

// composed reports whether a type or function of package coir does more than one operation at a time.
//
//go:norace
func composed(name string) bool {
	switch name {
	case "Ordered", "NewOrdered", "Pool", "NewPool", "Race", "ForEach", "Map":
		return true
	}
	return false
}

// sleepsNot is the For of a Yield that the program called as a Sleep of 0.
const sleepsNot = -1

// keepSite records the place of the operation that has just been recorded.
//
//go:norace
func (r *recorder) keepSite(at site) {
	for len(r.sites) < len(r.trace) {
		r.sites = doubled(r.sites)
	}
	r.sites[(r.nsteps-1)&(len(r.trace)-1)] = at
}

// keepServed records that the wait in an operation has ended.
//
//go:norace
func (r *recorder) keepServed(step int) {
	if step >= r.forgotten() && step < r.nsteps && len(r.sites) > 0 {
		r.sites[step&(len(r.trace)-1)].served = r.nsteps
	}
}

// Made implements policy.Policy.
//
//go:norace
func (w *world) Made(id uint64, room int) {
	if !w.tells || !w.running || w.fail != nil {
		return
	}
	w.made.add(making{id: id, room: room, at: here()})
}

// mark adds a text to the trace.
//
//go:norace
func (w *world) mark(kind, text string) {
	w.marks.add(mark{w.nsteps, w.current, kind, text, w.site()})
}

// markOnce is like mark, but does nothing if the trace has that text at index i. It returns the index.
//
//go:norace
func (w *world) markOnce(i int, kind, text string) int {
	if i < w.marks.n && w.marks.all[i].kind == kind && w.marks.all[i].text == text {
		return i
	}
	w.mark(kind, text)
	return w.marks.n - 1
}

// tell copies what was recorded for the report. It is part of freeze, and like freeze it only copies.
//
//go:norace
func (f *Failure) tell(w *world) {
	for k := range w.nready { // the fibers whose wait has ended and that have not run since
		x := &w.fibers[w.ready[k]]
		if x.acted && !x.pending && !x.paused && x.how == policy.Unknown && x.step >= f.before {
			f.trace[x.step-f.before].how = w.woke(x)
		}
	}
	f.marks = w.marks.clone()
	if !w.tells {
		return
	}
	f.sites = make([]site, len(f.trace))
	for i := range f.sites {
		f.sites[i] = w.sites[(f.before+i)&(len(w.trace)-1)]
		if f.sites[i].sleeps && f.trace[i].op.Kind == policy.Yield {
			f.trace[i].op.For = sleepsNot
		}
	}
	f.branches = make([]branch, w.ndec)
	for i := range f.branches {
		f.branches[i] = w.branches[i]
	}
	f.made = w.made.clone()
	for i := range f.made {
		f.made[i].object = w.objectOf(policy.Op{Kind: policy.Send, Object: f.made[i].id})
	}
}
