package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file finds out which goroutine waits for what at the end of a schedule, and which goroutine could end the wait.
// Package report makes the wait-for graph from that; graph.go there says why package snapshot has another graph.

// panicsToo describes a goroutine that panics after the first one.
const panicsToo = "panics too"

// exact is the precision of printed times. Steps and timers move the clock a little.
const exact = 10 * time.Microsecond

// ending returns the goroutines of the test, and what they wait for at the end.
func (r *record) ending(dir string) *report.Trace {
	if r.end != nil {
		return r.end
	}
	t := &report.Trace{Chart: &chart.Chart{Actors: "goroutines"}}
	r.end = t
	f, names, short, columns, locks := r.failure, r.names(), r.shortNames(), r.columns(), r.locks()
	fibers := r.fibers(columns)
	for _, id := range r.ids() {
		a, i := r.actors[id], len(t.Of)
		if id == 1 || r.helps(id) {
			continue
		}
		r.columnOf = append(r.columnOf, a)
		t.Of = append(t.Of, chart.Actor{Name: names[id], Short: short[id], Ended: a.state == coir.Ended, Since: -1})
		t.Of[i].Request = a.of != 0
		t.Of[i].Idle = a.op == coir.OpAccept && a.serviced
		t.Of[i].Title = a.made.said(fmt.Sprintf("(goroutine %d, started at %%s)", a.goroutine()), dir)
		if f != nil && id == f.panicked {
			t.Of[i].Why = "panics: " + f.text
			continue
		}
		if a.state != coir.Waiting && a.state != coir.Calling || coirsOwn(a.at, a.via) {
			continue
		}
		w, x, by, ok := report.Wait{Actor: i, At: a.at.said("%s", dir)}, report.Wish{}, []*step(nil), false
		w.Does, x.How, by = r.describe(a, locks, dir)
		for _, s := range by {
			h := report.Hold{Step: s.n, At: s.place.said("%s", dir)}
			if x.How == behind {
				h.Step, h.At = 0, ""
			}
			if last := r.lastStep(id); last != nil && last.object == s.object && s.name != last.name && s.name != "" && h.At != "" {
				h.At += ", as " + s.name
			}
			if h.Actor, ok = columns[r.by(s.g, s.n)]; ok { // else the harness holds it
				x.By = append(x.By, h)
			}
		}
		for _, id := range a.holders {
			if i, ok := fibers[id]; ok {
				x.By, x.Any = append(x.By, report.Hold{Actor: i}), true // only a pool has several
			}
		}
		if len(x.By) > 0 { // else a TryLock, whose result is not known, may hold it
			w.Wishes = []report.Wish{x}
		}
		t.Waiting = append(t.Waiting, w)
	}
	for k := range t.Waiting {
		w := &t.Waiting[k]
		a := r.columnOf[w.Actor]
		if w.At != "" && strings.HasPrefix(w.Does, "waits ") {
			if w.Same = t.Need(w); f == nil || f.kind == coir.KindLeak { // group them even if they wait for different objects
				w.Same, _, _ = strings.Cut(w.Does, "#")
			}
			w.Same += a.at.String() + a.made.String() + r.origin(a).String()
		}
		t.Of[w.Actor].Why = t.Line(w) + r.waitedFor(t.Waiting[k:k+1])
	}
	return t
}

// fibers returns the columns of the goroutines that run fibers, by the numbers of the fibers.
func (r *record) fibers(columns map[int]int) map[uint64]int {
	all := map[uint64]int{}
	for g, i := range columns {
		if a := r.actors[g]; a.fiberID != 0 && a.state != coir.Ended {
			all[a.fiberID] = i
		}
	}
	return all
}

// behind describes a wait for goroutines that are earlier in a queue.
const behind = "behind"

// request returns the request of net/http whose answer a goroutine waits for.
func (r *record) request(a *actor) (request string, ok bool) {
	if !a.serviced || strings.HasPrefix(a.role, "http ") {
		return "", false
	}
	for _, s := range slices.Backward(r.known) {
		if s.g == a.id && s.note != "" {
			request, ok = strings.CutPrefix(s.note, "client ")
			return request, ok && strings.Contains(request, " -> ")
		}
	}
	return "", false
}

// asks reports whether a step is the one in which its goroutine waits for the answer to a request.
func (r *record) asks(s *step) bool {
	a := r.actors[s.g]
	if !s.serviced || a == nil || r.happened(s) {
		return false
	}
	_, ok := r.request(a)
	return ok
}

// describe returns in words what a goroutine waits for, such as "waits to lock s.mu"; the steps by which other
// goroutines hold it; and how they hold it, such as "held by".
func (r *record) describe(a *actor, locks map[int]*lock, dir string) (what, how string, by []*step) {
	op, object, name, last := a.op, a.object, a.name, r.lastStep(a.id)
	if last != nil {
		op, object, name = last.op, last.object, last.name
	}
	called := r.called(op, object, name)
	request, asked := r.request(a)
	switch {
	case a.inKernel():
		what = "waits in the kernel"
		if a.call != "" {
			what = "waits in " + a.call
		}
	case asked:
		what = "waits for the answer to " + request
	case op == coir.OpAccept:
		what = "waits to accept a connection from " + called
	case op == coir.OpNetRead, op == coir.OpPipeRead:
		what = "waits to read from " + called
	case a.wait == coir.WaitNetwork && (op == coir.OpNetWrite || op == coir.OpPipeWrite):
		what = "waits to write to " + called + ", whose buffer is full"
	case op == coir.OpNetWrite, op == coir.OpPipeWrite: // one writes at a time
		what = "waits to write to " + called
	case coirs(a.via) && a.waits != "":
		what, how = "waits "+a.waits, "held by"
	case coirs(a.via):
		what = "waits in " + method(a.via)
	case strings.HasPrefix(a.via, "testing."):
		what = "waits for a subtest"
	case a.wait == coir.WaitBubble && a.via == "panic.": // see coirPanic
		what = panicsToo
	case a.wait == coir.WaitLock && op == coir.OpOnce: // for its Mutex, which is not the object of the step
		what = "waits for " + called + " to be done"
		if l := locks[a.object]; l != nil {
			by, how = l.steps(l.Holders()), "by"
		}
	case a.wait == coir.WaitLock:
		return locks[object].describe(called, op == coir.OpRLock)
	default:
		what = r.describeWait(a, last, object, name, dir)
	}
	return what, how, by
}

// describe is record.describe for a goroutine that waits to lock l, or to read-lock it. l is nil if no step on it is
// known.
func (l *lock) describe(called string, read bool) (what, how string, by []*step) {
	what = "waits to lock " + called
	if l == nil {
		return what, "", nil
	}
	if read {
		what = "waits to read-lock " + called
	}
	blocking, queued := l.Blocking(read)
	switch {
	case queued:
		how = behind
	case len(l.Writers) > 0:
		how = "held by"
	default:
		how = "read-locked by"
	}
	return what, how, l.steps(blocking)
}

// describeWait is describe for a goroutine whose wait has a code that says enough. last is its last step, or nil.
func (r *record) describeWait(a *actor, last *step, object int, name, dir string) (what string) {
	switch a.wait {
	case coir.WaitFile:
		return "waits for another operation on the same file"
	case coir.WaitSleep:
		return "sleeps"
	case coir.WaitNilChan:
		return "waits for a nil channel"
	case coir.WaitNoCases:
		return "waits in a select without cases"
	case coir.WaitSelect:
		what = "waits in a select"
		if last != nil && len(last.cases) > 0 {
			what += " " + r.wishes(last.cases, dir, true)
		}
		return what
	case coir.WaitRecv:
		return "waits to receive from " + r.channel(object, name, dir, false)
	case coir.WaitSend:
		return "waits to send to " + r.channel(object, name, dir, true)
	case coir.WaitGroup:
		return "waits for " + r.called(coir.OpWait, object, name)
	case coir.WaitCond:
		what = "waits for a signal"
		for _, s := range slices.Backward(r.known) { // its last step is the Unlock within Wait
			if s.g == a.id && s.op == coir.OpCondWait {
				return what + " of " + r.called(coir.OpCondWait, s.object, s.name)
			}
		}
		return what
	}
	return "waits (" + a.reason + ")"
}

// wishes describes the cases of a select. wait says that the select waits.
func (r *record) wishes(cases []selectCase, dir string, wait bool) string {
	const most = 6
	var texts []string
	for _, c := range cases[:min(len(cases), most)] {
		how := "to receive from "
		if c.send {
			how = "to send to "
		}
		texts = append(texts, how+r.channel(c.object, c.name, dir, c.send && wait))
	}
	text := strings.Join(texts, ", or ")
	if len(cases) > most {
		text += fmt.Sprintf(", or for one of %d more cases", len(cases)-most)
	}
	return text
}

// waitedFor returns how long goroutines have waited, as words to append.
func (r *record) waitedFor(all []report.Wait) string {
	if r.failure == nil || r.failure.now < exact || all[0].Does == panicsToo {
		return ""
	}
	longer := func(a, b report.Wait) int { return cmp.Compare(r.lasted(a), r.lasted(b)) }
	least, most := r.lasted(slices.MinFunc(all, longer)), r.lasted(slices.MaxFunc(all, longer))
	if least == most {
		return fmt.Sprintf(", for %v", least)
	}
	return fmt.Sprintf(", for %v to %v", least, most)
}

// lasted returns how long a goroutine has waited.
func (r *record) lasted(w report.Wait) time.Duration {
	return (r.failure.now - r.columnOf[w.Actor].since).Round(exact)
}

// lastStep returns the last step of a goroutine, or nil.
func (r *record) lastStep(g int) *step {
	for i := len(r.known) - 1; i >= 0; i-- {
		if s := &r.known[i]; s.g == g && s.last {
			return s
		}
	}
	return nil
}

// inOrder returns the steps whose operation began, in the order of their operations. That is not the order of the
// steps, because a goroutine may lose the turn between the point of an operation and the operation.
func (r *record) inOrder() (all []*step) {
	for i := range r.known {
		if r.known[i].done > 0 {
			all = append(all, &r.known[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *step) int { return cmp.Compare(a.done, b.done) })
	return all
}

// lock is a Mutex or an RWMutex, whose holders are known by their steps in the order of operations.
type lock struct {
	coir.Lock
	order []*step
}

// steps returns the steps by which holders lock the lock.
func (l *lock) steps(holders []coir.Hold) (all []*step) {
	for _, h := range holders {
		all = append(all, l.order[h.Step])
	}
	return all
}

// locks returns the state of each lock at the end.
//
// locks also marks the steps that certainly waited for a lock, because another goroutine held it when they began. A
// goroutine whose Lock waited may get the lock as soon as it is unlocked, or another goroutine may come first. So it
// certainly holds the lock only from its next step on. If a lock has a TryLock, nothing is certain.
func (r *record) locks() map[int]*lock {
	end := map[int]*step{}
	for i := range r.known {
		if s := &r.known[i]; s.inner != "rwmutex" {
			end[s.g] = s
		}
	}
	order := slices.DeleteFunc(r.inOrder(), func(s *step) bool { return s.inner == "rwmutex" })
	locks, tried := map[int]*lock{}, map[int]bool{}
	for _, s := range order {
		if locks[s.object] == nil {
			locks[s.object] = &lock{order: order}
		}
		if s.op == coir.OpTryLock || s.op == coir.OpTryRLock || s.op == coir.OpTryWLock {
			tried[s.object] = true
		}
	}
	latest := map[int]*step{} // the last step of each goroutine
	sure := map[*step]bool{}  // the steps that certainly got the lock
	for i, s := range order {
		sure[latest[s.g]], latest[s.g] = true, s
		l := locks[s.object]
		if s.op == coir.OpLock || s.op == coir.OpWLock || s.op == coir.OpRLock {
			others := l.steps(l.Holders())
			s.waited = r.happened(s) && !tried[s.object] && slices.ContainsFunc(others, func(o *step) bool {
				return sure[o] && (s.op != coir.OpRLock || o.op != coir.OpRLock)
			})
			sure[s] = len(others) == 0
		}
		l.Do(s.op, coir.Hold{G: uint32(s.g), Step: i}, end[s.g] == s && r.blocked(s.g))
	}
	return locks
}

// blocked reports whether a goroutine waits for a lock at the end.
func (r *record) blocked(g int) bool {
	a := r.actors[g]
	return a != nil && a.state == coir.Waiting && a.wait == coir.WaitLock
}
