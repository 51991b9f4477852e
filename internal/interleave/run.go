package interleave

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"
)

// maxThreads is the largest number of threads of a program. A set of threads is a word with a bit for each.
const maxThreads = 16

// Kind is the kind of an access to an object.
type Kind uint8

// The kinds. Two reads commute, everything else on one object conflicts.
const (
	Read Kind = iota
	Write
	Update // a write that may turn out to be a read: see Missed
	Lock   // can be done while the object is free
	Unlock
	Wait // can be done while the object has been posted to
	Post
	Join  // of no object: can be done once all other threads have ended
	Pause // of no object: can be done once another thread has made a step
)

func (k Kind) String() string {
	return [...]string{"read", "write", "update", "lock", "unlock", "wait", "post", "join", "pause"}[k]
}

// acquires reports whether a thread may have to wait for it.
func (k Kind) acquires() bool { return k == Lock || k == Wait || k == Join }

// op is one access.
type op struct {
	kind   Kind
	object int32
}

func conflict(a, b op) bool {
	return a.object == b.object && a.object >= 0 && (a.kind != Read || b.kind != Read)
}

// Object is a shared object. The zero value is ready to use: as a lock it is free, as a semaphore it is empty.
type Object struct {
	run uint64 // the number of the run in which id was given
	id  int32
	n   int32 // holders of the lock, or posts that no Wait has taken
}

// Do announces an access and returns when it is the thread's turn. It returns false immediately if nothing is being
// explored.
func (o *Object) Do(k Kind) bool {
	r := active.Load()
	if r == nil {
		return false
	}
	if o.run != r.number {
		o.run, o.id = r.number, r.newID()
	}
	r.step(op{k, o.id}, o)
	switch k {
	case Lock:
		o.n++
	case Post:
		if o.n > 0 {
			r.became(Write) // it enables no thread that was blocked before
		}
		o.n++
	case Unlock, Wait:
		o.n--
	}
	return true
}

// became sets the kind that the last access turned out to be.
func (r *run) became(k Kind) { r.events[len(r.events)-1].op.kind = k }

// Through is Do(Wait) without taking the post: after the first post every thread gets through.
func (o *Object) Through() bool {
	if !o.Do(Wait) {
		return false
	}
	o.n++
	return true
}

// Missed announces that the thread's last Update changed nothing.
func Missed() {
	if r := active.Load(); r != nil {
		r.became(Read)
	}
}

// Word announces an access to memory that has no object of its own.
func Word(p unsafe.Pointer, k Kind) {
	r := active.Load()
	if r == nil {
		return
	}
	id, ok := r.words[p]
	if !ok {
		id = r.newID()
		r.words[p] = id
	}
	r.step(op{k, id}, nil)
}

// Go starts a thread. It reports false if nothing is being explored.
func Go(name string, f func()) bool {
	r := active.Load()
	if r == nil {
		return false
	}
	r.start(name, f)
	return true
}

// JoinAll waits until all other threads have ended.
func JoinAll() { active.Load().step(op{Join, -1}, nil) }

// Yield waits until another thread has made a step. It is for a thread that polls. Only a search with a bound on
// preemptions allows it, because the order of steps that conflict says nothing about it.
func Yield() {
	if r := active.Load(); r != nil {
		if r.x.Bound == 0 {
			panic("interleave: a thread yields, and the search has no bound on preemptions")
		}
		r.now.since = len(r.events)
		r.step(op{Pause, -1}, nil)
	}
}

// Failf reports that the execution is wrong. The execution ends at the next step of any thread: a panic might be
// recovered by the explored code.
func Failf(format string, args ...any) { active.Load().fail(fmt.Sprintf(format, args...)) }

// active is the current run. Any goroutine that uses an object meanwhile is one of its threads.
var active atomic.Pointer[run]

type thread struct {
	id     int
	name   string
	parent *thread // gets the turn back at the first step
	resume chan struct{}
	op     op
	object *Object
	since  int // how many steps had been made when it paused
	done   bool
}

func (t *thread) enabled(r *run) bool {
	if t.done || t.parent != nil {
		return false
	}
	switch t.op.kind {
	case Lock:
		return t.object.n == 0
	case Wait:
		return t.object.n > 0
	case Pause:
		return len(r.events) > t.since
	case Join:
		for _, u := range r.threads {
			if u != t && !u.done {
				return false
			}
		}
	}
	return true
}

// event is a step that was made.
type event struct {
	thread int
	op     op
	places [4]uintptr // where, if they are recorded
}

// run is one execution.
type run struct {
	x       *search
	number  uint64
	threads []*thread
	now     *thread
	events  []event
	born    [maxThreads]int // events when the thread began
	objects int32
	words   map[unsafe.Pointer]int32
	over    chan struct{}
	failure string
	placed  bool      // record places
	unwind  bool      // the run has ended, and waiting threads must exit
	stuck   []*thread // it ended because these could not continue
	blocked []event   // what blocked threads wait to do at the end: at a stuck end, or where all others sleep
}

func (r *run) newID() int32 {
	r.objects++
	return r.objects - 1
}

// execute runs the program once.
func (r *run) execute(program func()) {
	active.Store(r)
	r.start("main", program)
	<-r.over
	active.Store(nil)
	if r.unwind {
		for _, t := range r.threads {
			if !t.done {
				r.now = t
				t.resume <- struct{}{}
				<-r.over
			}
		}
	}
}

// start starts a thread and lets it run up to its first step.
func (r *run) start(name string, f func()) {
	if len(r.threads) == maxThreads {
		panic(fmt.Sprintf("interleave: more than %d threads", maxThreads))
	}
	t := &thread{id: len(r.threads), name: name, parent: r.now, resume: make(chan struct{})}
	r.threads = append(r.threads, t)
	r.born[t.id] = len(r.events)
	parent := r.now
	r.now = t
	go r.body(t, f)
	if parent != nil {
		<-parent.resume
	}
}

type unwound struct{}

func (r *run) body(t *thread, f func()) {
	defer func() {
		v := recover()
		if r.unwind {
			t.done = true
			r.over <- struct{}{}
			return
		}
		if v != nil {
			r.fail(fmt.Sprintf("panic in %s: %v\n%s", t.name, v, debug.Stack()))
		}
		t.done = true
		if p := t.parent; p != nil { // it had no step
			t.parent, r.now = nil, p
			p.resume <- struct{}{}
			return
		}
		if next := r.pick(); next != nil {
			r.now = next
			next.resume <- struct{}{}
		}
	}()
	f()
}

// fail makes the run end at the next step.
func (r *run) fail(why string) {
	if r.failure == "" {
		r.failure = why
	}
}

// step announces o. The running thread calls it, and it returns when that thread is chosen to do o.
func (r *run) step(o op, object *Object) {
	t := r.now
	t.op, t.object = o, object
	next := t.parent
	if next != nil {
		t.parent = nil
	} else if next = r.pick(); next == t {
		r.record(t)
		return
	}
	if next != nil {
		r.now = next
		next.resume <- struct{}{}
	}
	<-t.resume
	if r.unwind {
		panic(unwound{})
	}
	r.record(t)
}

func (r *run) record(t *thread) {
	e := event{thread: t.id, op: t.op}
	if r.placed {
		runtime.Callers(4, e.places[:])
	}
	r.events = append(r.events, e)
	t.object = nil
}

// pick chooses the thread that continues. It returns nil if the run has ended: the remaining threads then stay where
// they are.
func (r *run) pick() *thread {
	var can uint32
	alive := false
	for _, t := range r.threads {
		if t.enabled(r) {
			can |= 1 << t.id
		}
		alive = alive || !t.done
	}
	if alive && can == 0 {
		r.getStuck()
	}
	if len(r.events) > r.x.Steps {
		r.fail(fmt.Sprintf("more than %d steps", r.x.Steps))
	}
	if can == 0 || r.failure != "" {
		r.over <- struct{}{}
		return nil
	}
	return r.threads[r.x.choose(r, can)]
}

// getStuck ends the run because no thread can continue.
func (r *run) getStuck() {
	if !r.x.blind {
		r.noteBlocked(0)
	}
	for _, t := range r.threads {
		if !t.done {
			r.stuck = append(r.stuck, t)
		}
	}
	if r.unwind = r.x.unwinds; !r.unwind {
		r.fail("no thread can continue: " + r.waiting())
	}
}

// noteBlocked records what the threads that are not in can wait to do.
func (r *run) noteBlocked(can uint32) {
	for _, t := range r.threads {
		if !t.done && can>>t.id&1 == 0 {
			r.blocked = append(r.blocked, event{thread: t.id, op: t.op})
		}
	}
}

// waiting describes what the threads that cannot continue are about to do.
func (r *run) waiting() string {
	var b strings.Builder
	for _, t := range r.stuck {
		fmt.Fprintf(&b, "%s is about to %v #%d; ", t.name, t.op.kind, t.op.object)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// shown is the number of steps that String shows of the beginning and of the end.
const shown = 200

// String returns the execution, one line for each step.
func (r *run) String() string {
	var b strings.Builder
	last := -1
	for i, e := range r.events {
		if skip := len(r.events) - shown; i >= shown && i < skip {
			if i == shown {
				fmt.Fprintf(&b, "     ... %d steps\n", skip-shown)
			}
			continue
		}
		name := ""
		if e.thread != last {
			name = r.threads[e.thread].name
		}
		last = e.thread
		fmt.Fprintf(&b, "%4d %-12s %-6v #%-3d", i, name, e.op.kind, e.op.object)
		frames := runtime.CallersFrames(e.places[:])
		for {
			f, more := frames.Next()
			if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") &&
				!strings.Contains(f.Function, "/internal/xatomic.") && !strings.Contains(f.Function, "/interleave.(*run)") {
				fmt.Fprintf(&b, " %s:%d", f.Function[strings.LastIndexByte(f.Function, '/')+1:], f.Line)
			}
			if !more {
				break
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
