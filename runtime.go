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

// Runtime is a set of workers that run fibers, and the clock that their waits use. Most programs need only the default
// runtime, which [Run] uses: see [Default]. A runtime that has been idle for a moment holds no goroutine.
type Runtime struct {
	s          *sched.Scheduler
	observer   *guarded // nil if there is none
	policy     policy.Policy
	contexts   *stdctx.List[dependent] // the contexts that its fibers depend on; nil without a policy
	quiet      atomic.Int32            // with a policy: above 0 during a call of Watcher.Ended; see callEnded
	simulation *Simulation             // nil without a policy
	labels     bool                    // see WithLabels

	mu      xatomic.Mutex
	closing bool
	native  struct{ begun, ended xatomic.Int64 } // children on their own goroutines
	roots   root                                 // a ring of the nurseries that Run opened from outside
	empty   chan struct{}                        // set by close; closed when the last root has ended
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

// WithWorkers sets how many fibers may run at the same time. The default is GOMAXPROCS. If the program changes
// GOMAXPROCS, or the Go runtime changes it because a container's limits change, the runtime adapts after some tens of
// milliseconds of work.
func WithWorkers(n int) RuntimeOption {
	// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
	if n < 1 {
		panic("coir: WithWorkers(" + number(n) + "): a runtime has at least one worker")
	}
	return func(s *settings) { s.Workers = n }
}

// WithMaxWorkers bounds the number of workers, including those blocked in native code. The default is 10,000.
func WithMaxWorkers(n int) RuntimeOption {
	// Spec: SC-36 (the number of workers is capped)
	if n < 1 {
		panic("coir: WithMaxWorkers(" + number(n) + "): a runtime has at least one worker")
	}
	return func(s *settings) { s.MaxWorkers = n }
}

// OnStall makes the runtime call f once for each fiber that runs longer than after without yielding. It calls f on a
// separate goroutine. If f panics, the panic is written to standard error and the program continues. f may be nil. If
// after is 0 or less, the runtime does not look for stalls.
//
// Without OnStall, a fiber that runs for more than a second is counted in [Stats], reported to an [Observer], and
// logged by [slog.Default] as a warning, once for each place in the program that starts fibers. The warning shows where
// the fiber was started and where it is now, and suggests what to write instead. In a simulation or a bubble of
// testing/synctest nothing is logged.
func OnStall(after time.Duration, f func(Stall)) RuntimeOption {
	return func(s *settings) { s.StallAfter, s.onStall, s.stalls = after, f, true }
}

// WithObserver makes the runtime notify o of what its fibers do.
func WithObserver(o Observer) RuntimeOption {
	return func(s *settings) { s.observer = o }
}

// Stall describes a fiber that has run for a long time without yielding: it computes, or blocks in native code without
// [Blocking].
type Stall struct {
	Fiber *Fiber
	For   time.Duration

	// Stack is the fiber's stack when the stall was noticed. It is empty if the program has more than 10,000 goroutines:
	// Go finds a stack by stopping the program until all stacks are printed, for some 20 microseconds each.
	Stack string
}

// Observer is notified of what fibers do, on the goroutine where it happens. Locks may be held during a call, so its
// methods must not block, wait, or start or cancel fibers. They may get a fiber's name, number, state or spawn site,
// and what it waits for: see [Fiber.Waiting]. A nil observer costs nothing.
//
// A wait is often ended by a timer or a goroutine, not by a fiber. If a fiber is woken while it is about to park, the
// fiber that woke it is not known either.
//
// If an observer panics, the panic is written to standard error with its stack, and the program continues. The observer
// is not called again, although calls already in progress continue. It must not call runtime.Goexit, which cannot be
// stopped.
type Observer interface {
	FiberStarted(f *Fiber)          // f was started in a nursery
	FiberParked(f *Fiber)           // f is about to wait
	FiberReady(f, by *Fiber)        // the wait of f has ended; by ended it, or is nil if that is not known
	FiberEnded(f *Fiber, err error) // the function of f has returned, panicked, or called Goexit
	FiberStalled(s Stall)           // s.Fiber has run for longer than OnStall allows
}

const (
	defaultMaxWorkers = 10_000
	defaultStall      = time.Second
)

// NewRuntime makes a runtime. The runtime starts no goroutine until it is used. Close it when it is no longer needed.
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

// guarded is an observer that is not called again after it has panicked.
type guarded struct {
	o      Observer
	broken xatomic.Bool
}

// tell calls the observer. The synchronisation of the caller, and that of the observer, is visible.
//
//go:norace
func (g *guarded) tell(call func(Observer)) {
	race.Disable()
	broken := g.broken.Load()
	race.Enable()
	o := g.o // not in the closure, because the detector may not see that NewRuntime is ordered before the caller
	if !broken && !guard("an Observer, which is not called any more,", func() { call(o) }) {
		race.Disable()
		g.broken.Store(true)
		race.Enable()
	}
}

// guard calls user code in a place where a panic must not propagate: the caller holds locks, is in the middle of a
// switch, or is a goroutine that the library started. After a panic, guard writes it to standard error, as the Go
// runtime would, and returns false. It does not use package log, whose output the user may have redirected back to this
// code.
func guard(what string, call func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "coir: panic in %s: %v\n\n%s", what, r, debug.Stack())
		}
	}()
	call()
	return true
}

// taskObserver reports tasks as fibers to an observer. The scheduler calls it with synchronisation hidden; the
// observer's own synchronisation must be visible.
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

// fiberOf returns the fiber that contains the task, which is its first field.
//
//go:norace
func fiberOf(t *sched.Task) *Fiber { return (*Fiber)(unsafe.Pointer(t)) }

var _ [unsafe.Offsetof(Fiber{}.task)]struct{} = [0]struct{}{}

// Run is like the function [Run], but on this runtime: fn runs as a fiber of rt, and the caller waits. A fiber of
// another runtime may also call it, except in a simulation: package sim does not control a runtime that it has not
// made, and reports it.
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

// run implements Run for a caller that is outside of the runtime but in the same bubble.
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

// joinMain waits, from outside the runtime, for the main fiber f to end. If ctx ends first, joinMain cancels the fiber
// and continues to wait for its end.
//
//go:norace
func (f *Fiber) joinMain(c *caller) {
	main := caller{ctx: context.Background(), f: c.f}
	if c.f != nil {
		main.sc, main.own = noInterrupt, true
	}
	f.join(&main)
}

// resultFor returns the result of Run to the fiber by, or to a goroutine if by is nil: the fiber's error, its panic, or
// its Goexit. After a Goexit, by reports the other failures; a goroutine cannot.
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

// enter adds a nursery to the runtime's list. The nursery is opened from outside, or, if inside is true, by a child on
// a goroutine, whose outer nursery is already listed. enter returns false if the runtime has been closed, unless inside
// is true, because Close waits for the outer nursery.
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

// Close cancels the nurseries that Run opened from outside, waits for them to end, and ends all workers. After that,
// Run returns [ErrClosed]. If a fiber opened a nursery under a context that belongs to no nursery, such as
// context.Background or a [Shield], Close does not cancel that nursery, but waits for it. If ctx ends first, Close
// returns its error and may be called again; the nurseries have been cancelled, and no nursery can be opened.
//
// A fiber of the runtime must not call Close, because Close would wait for that fiber.
func (rt *Runtime) Close(ctx context.Context) error {
	// Spec: SH-03 (close first refuses new work)
	// Spec: SH-04 (close then cancels)
	// Spec: SH-05 (close then drains)
	// Spec: SH-10 (a shutdown continues when Close returns early)
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

// close makes the runtime refuse new nurseries. It returns the nurseries that are still open, and a channel that is
// closed when they have ended.
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

// String returns a short description of the runtime: how many nurseries Run has opened on it from outside and are still
// open.
//
//go:norace
func (rt *Runtime) String() string {
	n := 0
	_ = rt.s // panics here if the runtime is nil, before synchronisation is hidden
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

// Blocking calls fn, which may block in native code: a system call, cgo, a mutex, a Go channel. It returns what fn
// returns. While fn runs, another worker takes over immediately, so that other fibers continue. In a goroutine, and in
// a simulation, where only one fiber runs at a time, Blocking just calls fn; package sim reports a wait in fn like any
// native wait.
//
// The end of ctx does not interrupt fn. Blocking calls fn even if ctx has already ended, and returns no error of its
// own. If fn must not start under a context that has ended, check ctx.Err first.
//
// For a call that lasts as long as the program, such as Serve of an HTTP server, a child with [WithGoroutine] is
// better, because it occupies no worker. [snapshot.Explain] does not report a call in Blocking, however long it lasts.
//
// If a fiber blocks natively without Blocking while others could run, the runtime notices and replaces its worker,
// often within a fraction of a millisecond, otherwise within about ten milliseconds.
func Blocking[T any](ctx context.Context, fn func() (T, error)) (v T, err error) {
	if fn == nil {
		panic(noFunction("Blocking"))
	}
	blocking(ctx, func() { v, err = fn() })
	return v, err
}

// blocking implements Blocking for all result types.
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
