package inspect

import (
	"context"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// Recorder keeps the last events of fibers in memory: when each fiber started, waited, continued and ended, what it
// waited for, and which fiber ended the wait. It is a [coir.Observer]:
//
//	recorder := inspect.NewRecorder(0)
//	err := coir.Configure(coir.WithObserver(recorder))
//
// [Recorder.WriteTrace] writes the events for the viewer Perfetto (ui.perfetto.dev). A [Handler] with [WithRecorder]
// serves them.
//
// While an execution trace or a flight recorder of package [runtime/trace] runs, a Recorder also writes to it: a task
// for each fiber, and a log for each wait. So "go tool trace" shows fibers by their names.
//
// A Recorder makes starts and waits of fibers slower; BenchmarkRecorder of this package measures by how much. In a race
// build it hides races, because it orders the operations of fibers.
type Recorder struct {
	began time.Time
	last  atomic.Uint64 // the number of the last event
	ring  []event       // event n is at n modulo its length
	locks [64]struct {  // lock i modulo 64 guards the event at i
		sync.Mutex
		_ [56]byte // one lock in a cache line
	}
	tasks tasks
}

// NewRecorder returns a recorder that keeps the given number of events; 0 means 65,536. A wait is two events. An event
// takes 192 bytes. A recorder takes no other memory, except for a task for each fiber while an execution trace runs.
func NewRecorder(events int) *Recorder {
	if events <= 0 {
		events = 1 << 16
	}
	return &Recorder{began: time.Now(), ring: make([]event, events)}
}

// event is something that has happened to a fiber. It has no pointers, so the collector does not scan the ring, and
// long names do not stay in memory.
type event struct {
	number uint64 // counts from 1; 0: there is no event here yet
	at     int64  // nanoseconds since the recorder was made
	fiber  uint64
	by     uint64 // the fiber that started it, or ended its wait; 0: none
	what   what
	failed bool // the fiber ended with an error
	nameN  uint8
	textN  uint8
	nameIn [56]byte  // the name of the fiber
	textIn [100]byte // what it waits for, or the name of the fiber by
}

func (e *event) name() string { return string(e.nameIn[:e.nameN]) }
func (e *event) text() string { return string(e.textIn[:e.textN]) }

// put copies a text into b, and returns its length. It cuts a text that is too long.
func put(b []byte, text string) uint8 {
	if len(text) > len(b) {
		text = cut(text, len(b)-len("…"))
	}
	return uint8(copy(b, text))
}

type what uint8

const (
	started what = iota
	parked
	readied
	ended
)

// FiberStarted implements [coir.Observer].
func (r *Recorder) FiberStarted(f *coir.Fiber) {
	by := coir.Self(context.Background())
	r.add(started, f, by, "", false)
	if r.tracing() {
		r.tasks.of(f, by)
	}
}

// FiberParked implements [coir.Observer].
func (r *Recorder) FiberParked(f *coir.Fiber) {
	text := f.Waiting()
	r.add(parked, f, nil, text, false)
	if r.tracing() {
		trace.Log(r.tasks.of(f, nil), "wait", numbered(f)+" waits "+text)
	}
}

// FiberReady implements [coir.Observer].
func (r *Recorder) FiberReady(f, by *coir.Fiber) {
	r.add(readied, f, by, "", false)
	if by != nil && r.tracing() {
		trace.Log(r.tasks.find(by), "wake", numbered(by)+" ends the wait of "+numbered(f))
	}
}

// FiberEnded implements [coir.Observer].
func (r *Recorder) FiberEnded(f *coir.Fiber, err error) {
	r.add(ended, f, nil, "", err != nil)
	if r.tracing() {
		r.tasks.end(f)
	}
}

// FiberStalled implements [coir.Observer].
func (r *Recorder) FiberStalled(coir.Stall) {}

// add records an event. The numbers and times of the events of one fiber are in the order of the events, because each
// happens before the next.
func (r *Recorder) add(what what, f, by *coir.Fiber, text string, failed bool) {
	n := r.last.Add(1)
	at := int64(time.Since(r.began))
	fiber, name := f.ID(), f.Name()
	var other uint64
	if by != nil {
		other, text = by.ID(), by.Name()
	}
	i := int(n % uint64(len(r.ring)))
	l := &r.locks[i%len(r.locks)]
	l.Lock()
	defer l.Unlock()
	e := &r.ring[i]
	if e.number > n { // this goroutine was so slow that a newer event has taken the place
		return
	}
	e.number, e.at, e.fiber, e.by, e.what, e.failed = n, at, fiber, other, what, failed
	e.nameN, e.textN = put(e.nameIn[:], name), put(e.textIn[:], text)
}

// events returns a copy of the events, in the order of the ring, and the time of the copy.
func (r *Recorder) events() (all []event, now int64) {
	all = make([]event, 0, min(uint64(len(r.ring)), r.last.Load()))
	for i := range r.ring {
		l := &r.locks[i%len(r.locks)]
		l.Lock()
		if e := &r.ring[i]; e.number > 0 {
			all = append(all, *e)
		}
		l.Unlock()
	}
	return all, int64(time.Since(r.began))
}

// tasks are the tasks of fibers in an execution trace.
type tasks struct {
	some atomic.Bool // there is a task
	mu   sync.Mutex
	all  map[uint64]task
}

type task struct {
	ctx context.Context
	*trace.Task
}

// tracing reports whether a trace runs. If no trace runs, it forgets the tasks of the last one, because the next trace
// would not have their names.
func (r *Recorder) tracing() bool {
	if trace.IsEnabled() {
		return true
	}
	if t := &r.tasks; t.some.Load() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all = nil
		t.some.Store(false)
	}
	return false
}

// of returns a context with the task of a fiber. It makes the task if there is none, because the trace may have begun
// after the fiber. The task is part of the task of the fiber by, if that has one.
func (t *tasks) of(f, by *coir.Fiber) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, ok := t.all[f.ID()]; ok {
		return x.ctx
	}
	ctx := context.Background()
	if by != nil {
		ctx = t.known(by)
	}
	var x task
	stem, _ := snapshot.Stem(f.Name())
	x.ctx, x.Task = trace.NewTask(ctx, stem) // tools expect few types of tasks
	trace.Log(x.ctx, "fiber", numbered(f))
	if t.all == nil {
		t.all = map[uint64]task{}
	}
	t.all[f.ID()] = x
	t.some.Store(true)
	return x.ctx
}

// find returns a context with the task of a fiber, if it has one. It does not make a task: the fiber may belong to a
// runtime that the recorder does not observe, and then nothing would end the task.
func (t *tasks) find(f *coir.Fiber) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known(f)
}

// known is find with t.mu locked.
func (t *tasks) known(f *coir.Fiber) context.Context {
	if x, ok := t.all[f.ID()]; ok {
		return x.ctx
	}
	return context.Background()
}

// end ends the task of a fiber, if it has one.
func (t *tasks) end(f *coir.Fiber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, ok := t.all[f.ID()]; ok {
		x.End()
		delete(t.all, f.ID())
	}
}

// numbered returns the name of a fiber with its number.
func numbered(f *coir.Fiber) string { return withNumber(f.Name(), f.ID()) }
