package coir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/stdctx"
	"github.com/coir-go/coir/internal/xatomic"
)

// Runtime is a set of workers that run fibers, and the clock for their waits. Most programs need only the default
// runtime, which [Run] uses: see [Default]. A runtime that has been idle for a moment holds no goroutine.
type Runtime struct {
	s          *sched.Scheduler
	observer   *guarded // nil without one
	policy     policy.Policy
	contexts   *stdctx.List[dependent] // the contexts that its fibers depend on, under a policy; otherwise nil
	quiet      atomic.Int32            // above 0 in a call of Watcher.Ended, under a policy: see callEnded
	simulation *Simulation             // under a policy; otherwise nil
	labels     bool                    // see WithLabels

	mu      xatomic.Mutex
	closing bool
	native  struct{ begun, ended xatomic.Int64 } // children on goroutines
	roots   root                                 // ring of the nurseries opened by Run from outside
	empty   chan struct{}                        // once closing, closed when the last root is gone
}

// root is an entry in a runtime's list of outermost nurseries.
type root struct {
	prev, next *root
	n          *Nursery
}

// RuntimeOption is an option of [NewRuntime] and [Configure].
type RuntimeOption func(*settings)

type settings struct {
	sched.Config
	observer Observer
	policy   policy.Policy
	onStall  func(Stall)
	stalls   bool // OnStall was given
	labels   bool
}

// WithWorkers sets how many fibers run at the same time. The default is GOMAXPROCS. The runtime follows a change of
// GOMAXPROCS, by the program or by the Go runtime when the limits of a container change, within tens of milliseconds of
// work.
func WithWorkers(n int) RuntimeOption {
	// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
	if n < 1 {
		panic("coir: WithWorkers(" + number(n) + "): a runtime has at least one worker")
	}
	return func(s *settings) { s.Workers = n }
}

// WithMaxWorkers bounds the number of workers, including those held up in blocking calls. The default is 10,000.
func WithMaxWorkers(n int) RuntimeOption {
	// Spec: SC-36 (the number of workers is capped)
	if n < 1 {
		panic("coir: WithMaxWorkers(" + number(n) + "): a runtime has at least one worker")
	}
	return func(s *settings) { s.MaxWorkers = n }
}

// OnStall calls f once for each fiber that runs longer than after without yielding. f is called on a separate
// goroutine. If it panics, the panic is written to standard error and the program continues. f may be nil; if after is
// 0 or less, stalls are not looked for.
//
// Without OnStall, a fiber that runs for more than a second is counted in [Stats], reported to an [Observer], and
// logged by [slog.Default] as a warning, once for each place where fibers are started. The warning says where the fiber
// was started, where it is, and what to write instead. In a simulation or a bubble of testing/synctest nothing is
// logged.
func OnStall(after time.Duration, f func(Stall)) RuntimeOption {
	return func(s *settings) { s.StallAfter, s.onStall, s.stalls = after, f, true }
}

// WithObserver makes the runtime report what fibers do to o.
func WithObserver(o Observer) RuntimeOption {
	return func(s *settings) { s.observer = o }
}

// Stall describes a fiber that has run for long without yielding: it computes, or blocks in native code without
// [Blocking].
type Stall struct {
	Fiber *Fiber
	For   time.Duration
	Stack string // the fiber's stack when it was noticed
}

// Observer is notified of what fibers do, on the goroutine where it happens. Its methods must not block, wait, start or
// cancel fibers: locks may be held. They may ask a fiber for its name, number, state or site, or for what it waits for:
// see [Fiber.Waiting]. A nil observer costs nothing.
//
// What ends a wait is often no fiber: a timer or a goroutine. Also if a fiber is woken on its way to sleep, it is not
// known which fiber did it.
//
// If an observer panics, the panic is written to standard error with its stack, and the program continues. The observer
// is not called again, except by calls that are already under way. It must not call runtime.Goexit, which cannot be
// stopped.
type Observer interface {
	FiberStarted(f *Fiber)          // f was given to a nursery
	FiberParked(f *Fiber)           // f is about to wait
	FiberReady(f, by *Fiber)        // the wait of f has ended; by has ended it, or is nil if that is not known
	FiberEnded(f *Fiber, err error) // the function of f has returned, panicked, or called Goexit
	FiberStalled(s Stall)           // s.Fiber has run for longer than OnStall allows
}

const (
	defaultMaxWorkers = 10_000
	defaultStall      = time.Second
)

// NewRuntime makes a runtime. It starts no goroutine until it is used. Close it when it is no longer needed.
func NewRuntime(opts ...RuntimeOption) *Runtime {
	set := settings{Config: sched.Config{
		Thunk:      thunkOf,
		Group:      groupOf,
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
	rt := &Runtime{policy: set.policy, labels: set.labels}
	if set.policy != nil {
		rt.contexts = new(stdctx.List[dependent])
		rt.simulation = &Simulation{rt}
		set.Policy = (*policed)(rt)
		rt.policy.Attach((*policed)(rt))
	}
	rt.roots.prev, rt.roots.next = &rt.roots, &rt.roots
	if set.observer != nil {
		rt.observer = &guarded{o: set.observer}
		set.Observer = (*taskObserver)(rt.observer)
	}
	if o := onStalls(&set, rt.observer); o != nil {
		set.OnStall = func(st sched.Stall) {
			race.Enable()
			defer race.Disable()
			o.report(st)
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

// tell calls the observer. The caller's synchronisation is visible, and so is the observer's.
//
//go:norace
func (g *guarded) tell(call func(Observer)) {
	race.Disable()
	broken := g.broken.Load()
	race.Enable()
	o := g.o // not in the closure: the detector may see no order between NewRuntime and the caller
	if !broken && !guard("an Observer, which is not called any more,", func() { call(o) }) {
		race.Disable()
		g.broken.Store(true)
		race.Enable()
	}
}

// guard calls user code where a panic must not propagate: the caller holds locks, is in the middle of a switch, or is a
// goroutine that no user started. After a panic, guard writes it to standard error, as the runtime would, and returns
// false. It does not use package log, whose output the user may have redirected back to here.
func guard(what string, call func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "coir: panic in %s: %v\n\n%s", what, r, debug.Stack())
		}
	}()
	call()
	return true
}

// taskObserver reports tasks as fibers. The scheduler calls it with synchronisation hidden; the observer's own must be
// visible.
type taskObserver guarded

//go:norace
func (x *taskObserver) Parked(t *sched.Task) {
	race.Enable()
	(*guarded)(x).tell(func(o Observer) { o.FiberParked(fiberOf(t)) })
	race.Disable()
}

//go:norace
func (x *taskObserver) Readied(t, by *sched.Task) {
	race.Enable()
	(*guarded)(x).tell(func(o Observer) { o.FiberReady(fiberOf(t), fiberOf(by)) })
	race.Disable()
}

// fiberOf returns the fiber of a task, which is its first field.
//
//go:norace
func fiberOf(t *sched.Task) *Fiber { return (*Fiber)(unsafe.Pointer(t)) }

var _ [unsafe.Offsetof(Fiber{}.task)]struct{} = [0]struct{}{}

// Run is the function [Run] on this runtime: fn runs as a fiber of rt, and the caller waits. A fiber of another runtime
// may call it too, but not in a simulation: package sim does not control a runtime that it has not made, and says so.
func (rt *Runtime) Run(ctx context.Context, fn func(ctx context.Context, n *Nursery) error) error {
	if fn == nil {
		panic(noFunction("Runtime.Run"))
	}
	c := resolve(ctx)
	if c.f != nil && c.f.nursery.rt == rt {
		return Run(ctx, fn)
	}
	if rt.inOtherBubble() {
		panic("coir: Runtime.Run was called " + bubble.Here().String() + " on a runtime that was made " +
			rt.s.Home().String() + ": make the runtime where it is used, or call coir.Run, " +
			"which has a runtime for each bubble")
	}
	c.announce(policy.Op{Kind: policy.RunElsewhere})
	return rt.run(&c, fn)
}

// run is Run for a caller outside of the runtime, but in the same bubble.
func (rt *Runtime) run(c *caller, fn func(ctx context.Context, n *Nursery) error) error {
	n := newNursery()
	f := &Fiber{nursery: n, name: "main", budget: budget, role: mainRole}
	f.fn = func(ctx context.Context) error { return run(ctx, n, fn) }
	n.init(c.ctx, rt, c.sc, f)
	by := c.f
	child := childHere()
	if child != nil {
		by = child
		defer child.goChild().lend(f)()
	}
	r := &root{n: n}
	if !rt.enter(r, child != nil && child.nursery.rt == rt) {
		n.end()
		return &closedError{how: ofRuntime}
	}
	defer rt.leave(r)
	n.prepare(f, nil)
	race.Disable()
	rt.s.Go(&f.task, nil)
	f.joinMain(c)
	race.Enable()
	return f.resultFor(by)
}

// joinMain waits from outside for a main fiber to end. If ctx ends, joinMain cancels the fiber and continues to wait
// for its end.
//
//go:norace
func (f *Fiber) joinMain(c *caller) {
	main := caller{ctx: context.Background(), f: c.f}
	if c.f != nil {
		main.sc, main.own = noInterrupt, true
	}
	f.join(&main)
}

// resultFor returns the result of Run to the caller by, or to a goroutine if by is nil: the fiber's error, its panic,
// or its Goexit. After a Goexit by reports the other failures; a goroutine cannot.
//
//go:norace
func (f *Fiber) resultFor(by *Fiber) error {
	race.Acquire(unsafe.Pointer(f))
	switch outcome(f.outcome.Load()) {
	case exited:
		if u, ok := f.err().(*unreported); ok && by != nil {
			by.reportLater(u.panics, u.errs)
		}
		runtime.Goexit()
	case panicked:
		panic(f.err())
	}
	return f.err()
}

// enter lists a nursery that is opened from outside, or by a child on a goroutine, in which case inside is true: an
// outer nursery is already listed. It reports false if the runtime has been closed, unless inside is true, because
// Close waits for the outer nursery.
//
//go:norace
func (rt *Runtime) enter(r *root, inside bool) bool {
	race.Disable()
	defer race.Enable()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closing && !inside {
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

// Close cancels the nurseries that Run opened from outside, waits for them to end, and ends all workers. Run then
// returns [ErrClosed]. A nursery that a fiber opened under a context of no nursery (context.Background, [Shield]) is
// not cancelled, but Close waits for it. If ctx ends first, Close returns its error and may be called again; the
// nurseries have been cancelled, and none can be opened.
//
// A fiber of the runtime must not call Close: it would wait for itself.
func (rt *Runtime) Close(ctx context.Context) error {
	// Spec: SH-03 (close first refuses new work)
	// Spec: SH-04 (close then cancels)
	// Spec: SH-05 (close then drains)
	// Spec: SH-10 (a close cut short goes on)
	c := resolve(ctx)
	by := c.f
	if by == nil {
		by = childHere()
	}
	if by != nil && by.nursery.rt == rt {
		panic("coir: Runtime.Close called by one of its own fibers, " + by.Name())
	}
	if rt.inOtherBubble() {
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

// close makes the runtime refuse new nurseries. It returns the nurseries still open, and a channel that is closed when
// they have ended.
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

// String returns a short description of the runtime: how many nurseries Run has open on it from outside.
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

// Blocking calls fn, which may block in native code: a system call, cgo, a mutex, a channel. It returns what fn
// returns. Another worker takes over immediately, so that other fibers continue. In a goroutine Blocking just calls fn.
// In a simulation, where one fiber runs at a time, it does the same; package sim reports a wait in fn as it does
// others.
//
// The end of ctx does not interrupt fn. Blocking calls fn even if ctx has ended before, and adds no error of its own.
// If fn must not begin in a context that has ended, check ctx.Err first.
//
// If a fiber blocks natively without Blocking while others can run, the runtime notices and replaces its worker: often
// within a fraction of a millisecond, otherwise within about ten milliseconds.
func Blocking[T any](ctx context.Context, fn func() (T, error)) (v T, err error) {
	if fn == nil {
		panic(noFunction("Blocking"))
	}
	blocking(ctx, func() { v, err = fn() })
	return v, err
}

// blocking is Blocking without a type.
func blocking(ctx context.Context, fn func()) {
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
