package coir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/xatomic"
)

// Runtime is a set of workers that run fibers, and a clock that they wait by. Most programs need only the default one,
// which [Run] uses. A runtime at rest holds no goroutine.
type Runtime struct {
	s        *sched.Scheduler
	observer *guarded // nil without one
	policy   policy.Policy
	contexts *contextList // what its fibers depend on, under a policy; otherwise nil

	mu      xatomic.Mutex
	closing bool
	roots   root          // ring of the nurseries that Run has opened from outside
	empty   chan struct{} // closed when the last root has gone, once closing
}

// root is an entry in a runtime's list of what runs on it.
type root struct {
	prev, next *root
	n          *Nursery
}

// RuntimeOption is an option of [NewRuntime].
type RuntimeOption func(*settings)

type settings struct {
	sched.Config
	observer Observer
	policy   policy.Policy
	onStall  func(Stall)
}

// Workers sets how many fibers run at the same time. The default is GOMAXPROCS; a change of it, by the program or by
// the Go runtime when the limits of a container change, is followed within some ten milliseconds of work.
func Workers(n int) RuntimeOption {
	// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
	if n < 1 {
		panic("coir: Workers needs at least one")
	}
	return func(s *settings) { s.Workers = n }
}

// MaxWorkers bounds how many workers there may be, with those that are held up in blocking calls. The default is 10,000.
func MaxWorkers(n int) RuntimeOption {
	// Spec: SC-36 (the number of workers is capped)
	if n < 1 {
		panic("coir: MaxWorkers needs at least one")
	}
	return func(s *settings) { s.MaxWorkers = n }
}

// OnStall has f told, once, of each fiber that runs for longer than after without a switch. f is called on a goroutine of
// its own. If it panics, the panic is written to standard error, and the program goes on. Without OnStall the threshold
// is a second, for Stats and for an Observer; 0 turns it off.
func OnStall(after time.Duration, f func(Stall)) RuntimeOption {
	return func(s *settings) { s.StallAfter, s.onStall = after, f }
}

// WithObserver has o told what fibers do.
func WithObserver(o Observer) RuntimeOption {
	return func(s *settings) { s.observer = o }
}

// Stall tells of a fiber that has run for long without a switch: it computes, or blocks in native code without
// [Blocking].
type Stall struct {
	Fiber *Fiber
	For   time.Duration
	Stack string // of the fiber, when it was noticed
}

// Observer is told what fibers do, where it happens. It must not block, wait, start or cancel: locks may be held. To ask a
// fiber for its name, number, state or site is fine. A nil observer costs nothing.
//
// An observer that panics must not bring down what it observes: the panic is written to standard error with its stack,
// and the observer is not called any more, but for calls that are under way. It must not call runtime.Goexit, which
// cannot be stopped.
type Observer interface {
	FiberStarted(f *Fiber)          // was given to a nursery
	FiberParked(f *Fiber)           // is about to wait
	FiberReady(f *Fiber)            // its wait has ended
	FiberEnded(f *Fiber, err error) // its function has returned, panicked, or called Goexit
	FiberStalled(s Stall)           // has run for longer than OnStall allows
}

const (
	defaultMaxWorkers = 10_000
	defaultStall      = time.Second
)

// NewRuntime makes a runtime. It starts nothing until it is used. Close it when it is no longer needed.
func NewRuntime(opts ...RuntimeOption) *Runtime {
	set := settings{Config: sched.Config{
		Thunk:      thunkOf,
		MaxWorkers: defaultMaxWorkers,
		StallAfter: defaultStall,
	}}
	for _, o := range opts {
		o(&set)
	}
	if set.policy != nil {
		set.Workers = 1
	}
	set.MaxWorkers = max(set.MaxWorkers, set.Workers)
	rt := &Runtime{policy: set.policy}
	if set.policy != nil {
		rt.contexts = new(contextList)
		set.Policy = (*policed)(rt)
		rt.policy.Attach((*policed)(rt))
	}
	rt.roots.prev, rt.roots.next = &rt.roots, &rt.roots
	if set.observer != nil {
		rt.observer = &guarded{o: set.observer}
		set.Observer = (*taskObserver)(rt.observer)
	}
	if tell := set.onStall; tell != nil || set.observer != nil {
		set.OnStall = func(st sched.Stall) {
			race.Enable()
			defer race.Disable()
			s := Stall{Fiber: fiberOf(st.Task), For: st.For, Stack: st.Stack}
			if tell != nil {
				guard("the function of OnStall", func() { tell(s) })
			}
			if rt.observer != nil {
				rt.observer.tell(func(o Observer) { o.FiberStalled(s) })
			}
		}
	}
	rt.s = sched.New(set.Config)
	return rt
}

// guarded is an observer that is not called again once it has panicked.
type guarded struct {
	o      Observer
	broken xatomic.Bool
}

// tell calls the observer. The caller's synchronisation is visible, and the observer's is too.
//
//go:norace
func (g *guarded) tell(call func(Observer)) {
	race.Disable()
	broken := g.broken.Load()
	race.Enable()
	o := g.o // read here: nothing that the detector sees need order the caller after the making of the runtime
	if !broken && !guard("an Observer, which is not called any more,", func() { call(o) }) {
		race.Disable()
		g.broken.Store(true)
		race.Enable()
	}
}

// guard calls the user's code where a panic could not go anywhere: the caller holds locks, is half way through a
// switch, or is a goroutine that no user has started. It reports false after a panic, which it writes to standard
// error, as the runtime would. It does not go through package log: what the user has set there might come back here.
func guard(what string, call func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "coir: panic in %s: %v\n\n%s", what, r, debug.Stack())
		}
	}()
	call()
	return true
}

// taskObserver tells of tasks as fibers. The scheduler calls it with its synchronisation hidden; the observer's own is
// not to be.
type taskObserver guarded

//go:norace
func (x *taskObserver) Parked(t *sched.Task) {
	race.Enable()
	(*guarded)(x).tell(func(o Observer) { o.FiberParked(fiberOf(t)) })
	race.Disable()
}

//go:norace
func (x *taskObserver) Readied(t *sched.Task) {
	race.Enable()
	(*guarded)(x).tell(func(o Observer) { o.FiberReady(fiberOf(t)) })
	race.Disable()
}

// fiberOf returns the fiber of a task, which is its first field.
//
//go:norace
func fiberOf(t *sched.Task) *Fiber { return (*Fiber)(unsafe.Pointer(t)) }

var _ [unsafe.Offsetof(Fiber{}.task)]struct{} = [0]struct{}{}

// outside is the default runtime of all code that is in no bubble of testing/synctest. It is made when it is first
// needed and never closed: it lets go of everything when it is not used.
var outside = sync.OnceValue(func() *Runtime { return NewRuntime() })

func init() {
	if race.Enabled { // else the first Run from a goroutine would be before every later one
		outside()
	}
}

// Run is the function [Run] on this runtime: fn runs as a fiber of it, and the caller waits. A fiber of another runtime
// may call it too.
func (rt *Runtime) Run(ctx context.Context, fn func(ctx context.Context, n *Nursery) error) error {
	c := resolve(ctx)
	if c.f != nil && c.f.nursery.rt == rt {
		return Run(ctx, fn)
	}
	if rt.abroad() {
		panic("coir: Runtime.Run was called " + bubble.Here().String() + " on a runtime that was made " +
			rt.s.Home().String() + ": make the runtime where it is used, or call coir.Run, " +
			"which has a runtime for each bubble")
	}
	return rt.run(&c, fn)
}

// run is Run for a caller from outside of the runtime, but not from another bubble.
func (rt *Runtime) run(c *caller, fn func(ctx context.Context, n *Nursery) error) error {
	n := newNursery()
	f := &Fiber{nursery: n, name: "main", budget: budget, main: true}
	f.fn = func(context.Context) error { return n.run(fn) }
	n.init(c.ctx, rt, c.sc, f)
	r := &root{n: n}
	if !rt.enter(r) {
		n.end()
		return &closedError{how: ofRuntime}
	}
	defer rt.leave(r)
	n.prepare(f, nil)
	race.Disable()
	rt.s.Go(&f.task, nil)
	f.outwait(c)
	race.Enable()
	return f.resultFor(c.f)
}

// outwait waits for a main fiber from outside, whatever happens to ctx: that cancels the fiber, and its end is waited
// for.
//
//go:norace
func (f *Fiber) outwait(c *caller) {
	main := caller{ctx: context.Background(), f: c.f}
	if c.f != nil {
		main.sc, main.own = noInterrupt, true
	}
	f.join(&main)
}

// resultFor is what Run returns to the caller, a goroutine or by: the fiber's error, its panic, or its Goexit. What has
// failed besides a Goexit is for by to report: a goroutine cannot.
//
//go:norace
func (f *Fiber) resultFor(by *Fiber) error {
	race.Acquire(unsafe.Pointer(f))
	switch outcome(f.outcome.Load()) {
	case exited:
		if u, ok := f.err.(*unreported); ok && by != nil {
			by.reportLater(u.panics, u.errs)
		}
		runtime.Goexit()
	case panicked:
		panic(f.err)
	}
	return f.err
}

//go:norace
func (rt *Runtime) enter(r *root) bool {
	race.Disable()
	defer race.Enable()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closing {
		return false
	}
	rt.s.Enter()
	r.prev, r.next = rt.roots.prev, &rt.roots
	r.prev.next, r.next.prev = r, r
	return true
}

//go:norace
func (rt *Runtime) leave(r *root) {
	race.Release(unsafe.Pointer(rt))
	race.Disable()
	defer race.Enable()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r.prev.next, r.next.prev = r.next, r.prev
	rt.s.Leave()
	if rt.roots.next == &rt.roots && rt.empty != nil {
		close(rt.empty)
		rt.empty = nil
	}
}

// Close cancels what was started by Run from outside, waits for it to end and lets every worker go. Run then returns
// [ErrClosed]. A nursery that a fiber opened under a context of no nursery (context.Background, [Shield]) is not
// cancelled, but waited for. If ctx is over first, Close returns its error and may be called again; what runs has been
// cancelled, and nothing new is let in.
//
// Close must not be called by a fiber of the runtime: it would wait for itself.
func (rt *Runtime) Close(ctx context.Context) error {
	// Spec: SH-03 (close first refuses new work)
	// Spec: SH-04 (close then cancels)
	// Spec: SH-05 (close then drains)
	// Spec: SH-10 (a close cut short goes on)
	c := resolve(ctx)
	if c.f != nil && c.f.nursery.rt == rt {
		panic("coir: Runtime.Close called by one of its own fibers, " + c.f.Name())
	}
	if rt.abroad() {
		panic("coir: Runtime.Close was called " + bubble.Here().String() + " on a runtime that was made " +
			rt.s.Home().String() + ": close a runtime where it was made")
	}
	roots, empty := rt.close()
	for _, n := range roots {
		n.cancel(canceledFor(errRuntimeClosed), nil)
	}
	if empty != nil {
		select {
		case <-empty:
		case <-ctx.Done():
			return endingOf(ctx).op
		}
	}
	race.Acquire(unsafe.Pointer(rt))
	rt.s.Close()
	return nil
}

var errRuntimeClosed = errors.New("coir: the runtime is being closed")

// close lets nobody in any more. It returns what is still running, and a channel that is closed when that has ended.
//
//go:norace
func (rt *Runtime) close() (roots []*Nursery, empty <-chan struct{}) {
	race.Disable()
	defer race.Enable()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.closing = true
	for r := rt.roots.next; r != &rt.roots; r = r.next {
		roots = append(roots, r.n)
	}
	if len(roots) > 0 && rt.empty == nil {
		rt.empty = make(chan struct{})
	}
	return roots, rt.empty
}

// String describes the runtime in a few words: how many nurseries have been opened on it from outside and not ended.
//
//go:norace
func (rt *Runtime) String() string {
	n := 0
	_ = rt.s // a nil runtime fails here, before synchronisation is hidden
	race.Disable()
	rt.mu.Lock()
	for r := rt.roots.next; r != &rt.roots; r = r.next {
		n++
	}
	closing := rt.closing
	rt.mu.Unlock()
	race.Enable()
	s := "coir.Runtime(runs: " + strconv.Itoa(n)
	if closing {
		s += ", closed"
	}
	return s + ")"
}

// Blocking runs fn, which may block in native code: a system call, cgo, a mutex, a channel. The worker's place is given
// to another at once, so that other fibers go on. In a goroutine it just calls fn, and so it does in a fiber of a
// simulation: there one runs at a time.
//
// A fiber that blocks natively without Blocking is found after about ten milliseconds, and its worker is replaced then.
func Blocking(ctx context.Context, fn func()) {
	c := resolve(ctx)
	if c.f == nil || c.f.simulated {
		fn()
		return
	}
	race.Disable()
	defer race.Enable()
	c.f.task.Block(func() {
		race.Enable()
		defer race.Disable()
		fn()
	})
}
