package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/internal/report"
)

// Which goroutine waits for what at the end of a schedule, and which could end that.

// wait is a goroutine that waits.
type wait struct {
	*actor
	what    string  // in words: "waits to lock mutex#3"
	by      []*step // the steps by which goroutines hold what it waits for
	how     string  // in words, how they hold it
	elapsed time.Duration
}

// panicsToo is what a goroutine does that panics after the first one.
const panicsToo = "panics too"

// exact is how exactly times are told. Steps and timers move the clock a little.
const exact = 10 * time.Microsecond

// waits returns the waits of the test's goroutines at the end.
func (r *result) waits(names map[int]string, dir string) (all []wait) {
	locks := r.locks()
	for _, id := range r.ids() {
		a := r.actors[id]
		if a.state != waiting && a.state != calling || a.id == 1 || coirsOwn(a.at, a.via) || r.failure != nil && a.id == r.failure.panicked {
			continue
		}
		w := wait{actor: a}
		if r.failure != nil {
			w.elapsed = (r.failure.now - a.since).Round(exact)
		}
		r.describe(&w, locks, dir)
		if len(w.by) > 0 {
			var who []string
			for _, s := range w.by {
				since := s.place.said(" (since %s)", dir)
				if w.how == "behind" {
					since = ""
				}
				if s.g == id {
					who = append([]string{"itself" + since}, who...)
					continue
				}
				who = append(who, names[s.g]+since)
			}
			w.how += " " + strings.Join(who, " and ")
		} else {
			w.how = "" // a TryLock, whose result is not known, may hold it
		}
		all = append(all, w)
	}
	return all
}

// describe fills in what a goroutine waits for.
func (r *result) describe(w *wait, locks map[int]*lock, dir string) {
	a := w.actor
	op, object, last := a.op, a.object, r.lastStep(a.id)
	if last != nil {
		op, object = last.op, last.object
	}
	is := func(what string) bool { return strings.Contains(a.reason, what) }
	switch {
	case a.inKernel():
		w.what = "waits in the kernel"
		if a.call != "" {
			w.what = "waits in " + a.call
		}
	case a.reason == "network" && op == opAccept:
		w.what = "waits to accept a connection from " + r.object(op, object)
	case a.reason == "network" && op == opNetWrite:
		w.what = "waits to write to " + r.object(op, object) + ", whose buffer is full"
	case a.reason == "network":
		w.what = "waits to read from " + r.object(op, object)
	case coirs(a.via):
		w.what = "waits in " + method(a.via)
	case strings.HasPrefix(a.via, "testing."):
		w.what = "waits for a subtest"
	case is("synctest.Wait") && a.via == "panic.": // see coirPanic
		w.what = panicsToo
	case strings.HasPrefix(a.reason, "sleep"):
		w.what = "sleeps"
	case is("nil chan"):
		w.what = "waits for a nil channel"
	case is("select (no cases)"):
		w.what = "waits in a select without cases"
	case is("select"):
		w.what = "waits in a select"
		if last != nil && len(last.cases) > 0 {
			w.what += " " + r.wishes(last.cases, dir, true)
		}
	case is("chan receive"):
		w.what = "waits to receive from " + r.channel(object, dir, false)
	case is("chan send"):
		w.what = "waits to send to " + r.channel(object, dir, true)
	case is("WaitGroup"):
		w.what = "waits for " + r.object(opWait, object)
	case is("Cond"):
		w.what = "waits for a signal"
		for _, s := range slices.Backward(r.stepsOf) { // its last step is the Unlock within Wait
			if s.g == a.id && s.op == opCondWait {
				w.what += " of " + r.object(opCondWait, s.object)
				break
			}
		}
	case (is("Mutex") || is("semacquire")) && op == opOnce:
		w.what = "waits for " + r.object(opOnce, object) + " to be done"
		if l := locks[a.object]; l != nil {
			w.by, w.how = l.holders(), "by"
		}
	case is("Mutex") || is("semacquire"):
		w.what = "waits to lock " + r.object(op, object)
		l := locks[object]
		switch {
		case l == nil:
		case op == opRLock:
			w.what = "waits to read-lock " + r.object(op, object)
			if w.by, w.how = l.writer, "held by"; len(w.by) == 0 { // a waiting writer goes first
				w.by, w.how = l.queue, "behind"
			}
		case len(l.writer) > 0:
			w.by, w.how = l.writer, "held by"
		default:
			w.by, w.how = l.readers, "read-locked by"
		}
	default:
		w.what = "waits (" + a.reason + ")"
	}
}

// wishes returns what a select is for, which waits or not.
func (r *result) wishes(cases []selectCase, dir string, wait bool) string {
	const most = 6
	var texts []string
	for _, c := range cases[:min(len(cases), most)] {
		how := "to receive from "
		if c.send {
			how = "to send to "
		}
		texts = append(texts, how+r.channel(c.object, dir, c.send && wait))
	}
	text := strings.Join(texts, ", or ")
	if len(cases) > most {
		text += fmt.Sprintf(", or for one of %d cases more", len(cases)-most)
	}
	return text
}

// need returns what the goroutine waits for, and which others hold that.
func (w wait) need() string {
	if w.how != "" {
		return w.what + ", " + w.how
	}
	return w.what
}

// text returns the wait as a line, without the name of the goroutine.
func (w wait) text(r *result, dir string) string {
	return w.need() + w.at.said(", at %s", dir) + r.waitedFor([]wait{w})
}

// waitedFor returns for how long goroutines have waited, in words that follow others.
func (r *result) waitedFor(all []wait) string {
	if r.failure == nil || r.failure.now < 10*time.Microsecond || all[0].what == panicsToo {
		return ""
	}
	longer := func(a, b wait) int { return cmp.Compare(a.elapsed, b.elapsed) }
	least, most := slices.MinFunc(all, longer).elapsed, slices.MaxFunc(all, longer).elapsed
	if least == most {
		return fmt.Sprintf(", for %v", least)
	}
	return fmt.Sprintf(", for %v to %v", least, most)
}

// lastStep returns the last step of a goroutine, or nil.
func (r *result) lastStep(g int) *step {
	for i := len(r.stepsOf) - 1; i >= 0; i-- {
		if s := &r.stepsOf[i]; s.g == g && s.last {
			return s
		}
	}
	return nil
}

// inOrder returns the steps whose operation began, in the order of their operations. That is not the order of the
// steps, because a goroutine may lose the turn between the point of an operation and the operation.
func (r *result) inOrder() (all []*step) {
	for i := range r.stepsOf {
		if r.stepsOf[i].done > 0 {
			all = append(all, &r.stepsOf[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *step) int { return cmp.Compare(a.done, b.done) })
	return all
}

// lock has the holders of a Mutex or an RWMutex at the end.
type lock struct {
	writer, readers []*step
	queue           []*step // of writers that wait
}

func (l *lock) holders() []*step { return append(slices.Clone(l.writer), l.readers...) }

// locks returns the holders of each lock at the end, by the steps that locked it: those of goroutines that passed its
// Lock, and not its Unlock. The result of a TryLock is not known, so it does not count.
func (r *result) locks() map[int]*lock {
	locks := map[int]*lock{}
	drop := func(from *[]*step, g int) {
		at := slices.IndexFunc(*from, func(s *step) bool { return s.g == g })
		if at < 0 {
			at = 0 // another goroutine has locked it
		}
		if len(*from) > 0 {
			*from = slices.Delete(*from, at, at+1)
		}
	}
	end := map[int]*step{}
	for i := range r.stepsOf {
		if s := &r.stepsOf[i]; s.inner != "rwmutex" {
			end[s.g] = s
		}
	}
	for _, s := range r.inOrder() {
		if s.inner == "rwmutex" {
			continue
		}
		l := locks[s.object]
		if l == nil {
			l = new(lock)
			locks[s.object] = l
		}
		waits := end[s.g] == s && r.blocked(s.g)
		switch s.op {
		case opLock, opWLock:
			if waits {
				l.queue = append(l.queue, s)
			} else {
				l.writer = append(l.writer, s)
			}
		case opRLock:
			if !waits {
				l.readers = append(l.readers, s)
			}
		case opUnlock, opWUnlock:
			drop(&l.writer, s.g)
		case opRUnlock:
			drop(&l.readers, s.g)
		}
	}
	return locks
}

// contended finds the steps that certainly waited for a lock: another goroutine held it when they began. A goroutine
// whose Lock waited may have the lock as soon as it is unlocked, or another one may come first, so it certainly holds
// the lock only from its next step on. Of a lock with a TryLock, whose result is not known, nothing is found.
func (r *result) contended() {
	type holder struct {
		*step
		sure bool
	}
	held, tried := map[int][]*holder{}, map[int]bool{}
	latest := map[int]*holder{} // of the last step of each goroutine, if that locks
	order := r.inOrder()
	for _, s := range order {
		tried[s.object] = tried[s.object] || s.op == opTryLock || s.op == opTryRLock || s.op == opTryWLock
	}
	for _, s := range order {
		if s.inner != "" {
			continue
		}
		if h := latest[s.g]; h != nil {
			h.sure, latest[s.g] = true, nil
		}
		switch s.op {
		case opLock, opWLock, opRLock:
			others, h := held[s.object], &holder{step: s}
			s.waited = r.happened(s) && !tried[s.object] && slices.ContainsFunc(others, func(o *holder) bool {
				return o.sure && (s.op != opRLock || o.op != opRLock)
			})
			h.sure = len(others) == 0
			held[s.object], latest[s.g] = append(others, h), h
		case opUnlock, opWUnlock, opRUnlock:
			at := slices.IndexFunc(held[s.object], func(h *holder) bool { return h.g == s.g })
			if len(held[s.object]) > 0 {
				at = max(at, 0) // if it is negative, another goroutine has locked it
				held[s.object] = slices.Delete(held[s.object], at, at+1)
			}
		}
	}
}

// blocked reports whether a goroutine waits for a lock at the end.
func (r *result) blocked(g int) bool {
	a := r.actors[g]
	return a != nil && a.state == waiting &&
		(strings.Contains(a.reason, "Mutex") || strings.Contains(a.reason, "semacquire"))
}

// cycle returns a cycle of goroutines, each of which waits for a lock that the next one holds, and why.
func cycle(waits []wait) ([]int, []report.Edge) {
	var graph [][]report.Edge
	for _, w := range waits {
		for _, s := range w.by {
			for len(graph) <= max(w.id, s.g) {
				graph = append(graph, nil)
			}
			if s.g != w.id {
				graph[w.id] = append(graph[w.id], report.Edge{To: s.g, Why: w.need()})
			}
		}
	}
	return report.Cycle(graph)
}
