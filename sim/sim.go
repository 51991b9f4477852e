// Package sim runs a concurrent program under schedules that it chooses, on a virtual clock, until one of them fails.
// It then reports what happened and how to replay it.
//
// The program is ordinary code that uses package coir. Fibers interact through coir's operations, and before and after
// each operation sim may let another fiber run. Its decisions, in order, are the schedule: a sequence of numbers that
// can be written down, run again and made smaller.
//
//	func TestTransfer(t *testing.T) {
//		sim.Test(t, func(ctx context.Context, s *sim.Sim) {
//			... // fibers, channels, select, timeouts
//			if sum != want {
//				s.Errorf("sum is %d", sum)
//			}
//		})
//	}
//
// Code between two operations is one step, so sim does not interleave accesses to shared memory. The race detector,
// with -race, finds such races; a [coir.Point] divides the step.
//
// # What sim does not control
//
// Sim does not control goroutines, native channels, mutexes, real time and other runtimes. A program that depends on
// them fails, whether they are fast or slow:
//
//   - A fiber that waits outside of coir fails as [KindBlocked]: in time.Sleep, for a native channel or select, a
//     sync.WaitGroup, a sync.Cond, or the network.
//   - A fiber that starts a goroutine, or calls the Run of another runtime, fails as [KindUncontrolled], and so does a
//     goroutine that uses an object that a fiber has made. Sim looks for started goroutines in the first 64 schedules
//     and in every eighth after them, unless it runs only one schedule. If a goroutine may have been started in a
//     schedule, sim runs that schedule again.
//   - A fiber that uses a context with a deadline of package context fails as [KindUncontrolled], whether the deadline
//     passes or not. If the fiber only calls a method of the context, sim does not find that.
//   - A program that performs no operation of coir, and draws no number, fails as [KindEmpty].
//
// Sim does not find the following, and they pass:
//
//   - a wait for a native mutex that ends within half a second, because other parts of the process may cause it at any
//     time; a longer one is KindBlocked
//   - a system call that blocks its thread, as reading a file does, and a computation, however long
//   - a receive that finds its value, or a send that finds room, if the other side is a goroutine that was started
//     before the simulation, and was faster
//   - a loop that polls, for example with an atomic, for something that such a goroutine does, or a goroutine that the
//     fiber has started and that has ended; and a wait for such a goroutine by a native mutex
//   - the function of a time.AfterFunc, unless it uses an object that a fiber has made
//   - a wait after which the fiber has waited for the garbage collector or for a native mutex, or has called a function
//     of [iter.Pull], before its next operation: only the last wait is known. So sim may find such a wait in one
//     schedule and not in another
//   - a goroutine that is started in a program whose other schedules call as many functions of iter.Pull
//
// Sim finds waits that have ended on 386, amd64 and arm64, and not in a bubble of testing/synctest. Elsewhere it finds
// only waits that take half a second, and no goroutine that is started.
//
// The end of a scope, by a cancellation or a deadline, is one step: it ends all waits in the scope at that moment.
// Other runtimes end them one after the other. So a woken fiber may run, and may close a channel, before another fiber
// is woken, which then gets [coir.ErrClosed] instead of the error of the scope. Sim does not show that.
package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/search"
)

// ClockMode is when virtual time advances.
type ClockMode uint8

// The modes.
const (
	ClockIdle   ClockMode = iota // when no fiber can run
	ClockRacing                  // also before any operation: advancing time is one of the choices
)

// Option is an option of [Test], [Run], [Explore], [Replay] and [Drawn].
type Option func(*settings)

type settings struct {
	schedules int
	seed      uint64
	strategy  func(seed uint64) Strategy
	mode      ClockMode
	limit     int
	faults    []string
	failed    func() bool    // reports whether the test has failed by other means than Errorf; nil without a test
	quit      func(*Failure) // called if the program ends its goroutine
	sometimes []string       // names of Sometimes in the source
	covers    bool           // count the pairs of operations
}

// WithSchedules sets the maximum number of schedules to run. The default is 1,000.
func WithSchedules(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("sim: WithSchedules(%d): a program that does not run cannot fail; write 1 or more", n))
	}
	return func(s *settings) { s.schedules = n }
}

// WithSeed sets the seed. The default is 1, so that every run is the same.
func WithSeed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// WithStrategy sets the strategy, by a function that makes it from the seed. The default is [Default]. [Random] and
// [Uniform] are such functions. Wrap a strategy that takes other arguments:
//
//	sim.WithStrategy(func(uint64) sim.Strategy { return sim.Exhaustive(2) })
func WithStrategy(strategy func(seed uint64) Strategy) Option {
	return func(s *settings) { s.strategy = strategy }
}

// WithClock sets when virtual time advances. The default is [ClockIdle].
func WithClock(m ClockMode) Option { return func(s *settings) { s.mode = m } }

// WithSteps sets how many operations a schedule may perform before sim suspects that it does not end. From then on the
// strategy decides nothing. Fibers perform one operation each in turn, so that those that can end do, and time moves
// when no fiber can run; with [ClockRacing] also from time to time. A schedule that has not ended after n more
// operations is a [KindLivelock], and its report says "in the last n, fibers took turns". The default is 10,000.
func WithSteps(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("sim: WithSteps(%d): a schedule needs at least one operation to do anything", n))
	}
	return func(s *settings) { s.limit = n }
}

// Default returns the strategy that is used unless [WithStrategy] sets another. It takes turns among [Exhaustive],
// [Random] and [PCT].
func Default(seed uint64) Strategy {
	return Portfolio(Exhaustive(2), Random(seed), PCT(seed, 2), PCT(seed^1, 3))
}

const defaultSteps = 10_000

func settle(opts []Option) settings {
	set := settings{schedules: 1000, seed: 1, strategy: Default, limit: defaultSteps}
	for _, o := range opts {
		o(&set)
	}
	return set
}

// Sim is the running simulation, for the program in it.
type Sim struct {
	w      *world
	ctx    context.Context // the context of the schedule
	mu     sync.Mutex      // guards the following fields, because other goroutines may call Errorf too
	errs   [8]string       // the first texts of Errorf
	nerrs  int             // the number of all texts
	sights *sight          // the conditions of Sometimes
	faults faultPlan
}

// sight is a condition of Sometimes.
type sight struct {
	name string
	seen bool
	mark int // its position in the trace, if it is in the trace
	next *sight
}

// Errorf marks the schedule as failed and continues. The report has the text, even if the schedule later fails in
// another way. If there are very many texts, it has the first ones. Errors reported while a failed schedule is torn
// down are ignored.
//
//go:norace
func (s *Sim) Errorf(format string, args ...any) {
	if s.w.fail != nil {
		return
	}
	text := ""
	if s.nerrs < len(s.errs) {
		text = fmt.Sprintf(format, args...)
	}
	race.Disable() // the lock orders nothing for the program
	s.mu.Lock()
	if s.nerrs < len(s.errs) {
		s.errs[s.nerrs] = text
		s.w.mark(errorMark, text)
	}
	s.nerrs++
	s.mu.Unlock()
	race.Enable()
}

// Fatalf is [Sim.Errorf], and ends the schedule: the calling fiber does not continue, its deferred functions run, and
// the others are cancelled. Use it instead of the Fatalf of a testing.T, because then sim shrinks the schedule, and
// reports how to replay it.
//
// In a function that the clock calls, such as one of desk's OnDone, it ends only that function. It must not be called
// in the method Ended of a [coir.Watcher]: call Errorf there, and return.
//
//go:norace
func (s *Sim) Fatalf(format string, args ...any) {
	by := s.w.mover
	if by != 0 && by == coro.G() {
		panic("sim: Fatalf cannot end the method Ended of a coir.Watcher, which the clock has called: call Errorf, and return")
	}
	s.Errorf(format, args...)
	race.Disable() // as in the policy's own calls of stop
	s.w.stop(&Failure{Kind: KindError, Text: s.errs[0]})
	race.Enable()
	if by != 0 {
		runtime.Goexit() // no fiber runs; the clock waits for this goroutine
	}
	panic(errStopped)
}

// Logf adds a text to the report of a schedule that fails, at the step where it is called; if the text has several
// lines, only the first. In other schedules it formats and prints nothing, so it may be called often, but its arguments
// must have no effects.
//
// The texts come from a second run of the schedule. So there are none if a fiber is blocked outside coir, or if the
// schedule does not fail again.
//
//go:norace
func (s *Sim) Logf(format string, args ...any) {
	if _, ok := s.w.strategy.(*drawn); !ok && !s.w.tells || s.w.fail != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	race.Disable() // the lock orders nothing for the program
	s.mu.Lock()
	s.w.mark(logMark, text)
	s.mu.Unlock()
	race.Enable()
}

// Sometimes records whether cond was ever true under this name, in any schedule. If it never was, the test fails,
// because it does not test what it should. [Test] also fails if the call is never reached: it finds calls in the source
// of the program's function, if their name is a literal there. Elsewhere, put the call where it is always reached.
// [Drawn], which runs one schedule, does not check it.
//
//go:norace
func (s *Sim) Sometimes(cond bool, name string) {
	at := &s.sights
	for *at != nil && (*at).name != name {
		at = &(*at).next
	}
	if *at == nil {
		*at = &sight{name: name}
	}
	(*at).seen = (*at).seen || cond
	if cond && s.w.tells && s.w.fail == nil {
		race.Disable() // the lock orders nothing for the program
		s.mu.Lock()
		(*at).mark = s.w.markOnce((*at).mark, "sometimes: ", name)
		s.mu.Unlock()
		race.Enable()
	}
}

// reached reports whether Sometimes was called with a name.
func (s *Sim) reached(name string) bool {
	for at := s.sights; at != nil; at = at.next {
		if at.name == name {
			return true
		}
	}
	return false
}

// Intn returns a number in [0, n), where n must be positive. The number is a decision of the schedule.
//
//go:norace
func (s *Sim) Intn(n int) int {
	if n <= 0 {
		panic("sim: Intn(" + strconv.Itoa(n) + "): the argument must be positive")
	}
	race.Disable() // as in the policy's other decisions
	v := s.w.Draw(n)
	race.Enable()
	return v
}

// choose makes a decision for the program.
//
//go:norace
func (s *Sim) choose(n int) int {
	race.Disable() // as in the policy's other decisions
	d := s.w.Choose(n)
	race.Enable()
	return d
}

// Now returns the virtual time since the schedule began.
func (s *Sim) Now() time.Duration { return s.w.clock.Now() }

// Result is the result of an exploration.
type Result struct {
	Schedules int           // schedules that were run
	Steps     int           // operations in all of them
	Complete  bool          // the strategy had nothing left to explore: all schedules in Covered were run
	Covered   string        // describes the schedules that were run, if Complete
	Failure   *Failure      // the first failure, made smaller; nil if there was none
	Never     []string      // names of Sometimes that were never true, and faults that never fired
	Elapsed   time.Duration // real time

	orders pairings
}

// coveredBy describes what a strategy with nothing left has covered.
func coveredBy(s Strategy) string {
	const step = "; code between two operations is one step"
	switch x := s.(type) {
	case *dpor:
		return "all orders of coir operations that conflict; code after an operation is one step with it"
	case *shared:
		all, ok := x.Strategy.(*search.All)
		switch {
		case !ok:
		case all.Bound() < 0:
			return "all orders of coir operations" + step
		case all.Bound() == 0:
			return "all orders of coir operations without preemption" + step
		case all.Bound() == 1:
			return "all orders of coir operations with at most 1 preemption" + step
		default:
			return "all orders of coir operations with at most " + strconv.Itoa(all.Bound()) + " preemptions" + step
		}
	}
	return "all that strategy " + s.Name() + " has"
}

// complete reports whether a strategy with nothing left has run all that it should. A strategy that records its path
// has not if a schedule was too long for it.
func complete(s Strategy) bool {
	switch x := s.(type) {
	case *dpor:
		return x.search.Complete()
	case *shared:
		if all, ok := x.Strategy.(*search.All); ok {
			return all.Complete()
		}
	}
	return true
}

// Explore runs fn under one schedule after the other until one fails, none is left, or the number set by
// [WithSchedules] has been run.
func Explore(fn func(ctx context.Context, s *Sim), opts ...Option) Result {
	set := settle(opts)
	w := newWorld(set.mode, set.limit)
	w.strategy = set.strategy(set.seed)
	w.options = set.replayed()
	_, w.whole = w.strategy.(*dpor)
	x := &exploration{settings: set, w: w, s: &Sim{w: w, faults: planFaults(set.faults)}, fn: fn, began: time.Now()}
	x.told = x.began
	w.quit = func(f *Failure) {
		if x.found(f, x.res.Schedules+1); set.quit != nil {
			set.quit(f)
		}
	}
	if left := w.runInFiber(x.run); left != nil {
		x.found(left, int(w.ran.Load())+1)
		steps := int(w.did.Load()) + left.Steps
		return Result{Schedules: left.Schedule, Steps: steps, Failure: left, Elapsed: time.Since(x.began)}
	}
	x.res.Elapsed = time.Since(x.began)
	x.res.Never = x.never()
	return x.res
}

// exploration is a running Explore.
type exploration struct {
	settings
	w     *world
	s     *Sim
	fn    func(ctx context.Context, s *Sim)
	res   Result
	began time.Time
	told  time.Time // when progress was last printed
}

// run runs schedules until one fails or none is left. If the world was left meanwhile, Explore has returned, and run
// must not report anything.
func (x *exploration) run(ctx context.Context) {
	w := x.w
	for x.res.Schedules < x.schedules {
		if !w.strategy.Begin(x.res.Schedules) {
			if x.res.Complete = complete(w.strategy); x.res.Complete {
				x.res.Covered = coveredBy(w.strategy)
			}
			return
		}
		f := x.runOne(ctx)
		if w.left() {
			return
		}
		x.count(f)
		if f == nil && x.failed != nil && x.failed() {
			f = x.outside(ctx)
		} else if f != nil {
			f = x.explained(ctx, f)
		}
		if w.left() {
			return
		}
		if f != nil {
			w.tellStrays(f)
			x.res.Failure = f
			return
		}
		x.progress()
	}
}

// runOne runs the next schedule, and some schedules twice.
func (x *exploration) runOne(ctx context.Context) *Failure {
	x.w.forgetRaces()
	f := x.w.runChecked(ctx, x.s, x.fn, x.res.Schedules, x.schedules == 1)
	if f == nil && x.res.Schedules%guardEvery == guardEvery-1 {
		f = x.w.again(ctx, x.s, x.fn)
	}
	return f
}

// count adds the last schedule to the result.
func (x *exploration) count(f *Failure) {
	x.res.Schedules++
	x.res.Steps += x.w.nsteps
	if f == nil && x.covers {
		x.res.orders.look(x.w, x.res.Schedules)
	}
	x.w.ran.Store(int64(x.res.Schedules))
	x.w.did.Store(int64(x.res.Steps))
}

// outside returns the failure of a schedule during which the test has failed by other means than Errorf.
func (x *exploration) outside(ctx context.Context) *Failure {
	w := x.w
	w.lookForRaces(max(w.current, 0)) // perhaps after the last step
	f := &Failure{Kind: KindError, Text: outsideText(w.raced)}
	f.freeze(w)
	f.Token = encode(w.mode, f.script, f.hash, f.hashes)
	if w.raced {
		f.marks = append(f.marks, w.race)
		f = w.toldRace(ctx, x.s, x.fn, f)
	}
	x.found(f, x.res.Schedules)
	return f
}

// found records in a failure which schedule it is, and of which strategy and seed.
func (x *exploration) found(f *Failure, schedule int) {
	f.Schedule, f.Strategy, f.Seed = schedule, x.w.strategy.Name(), x.seed
}

// explained repeats and shrinks a failure, and adds what a report needs.
func (x *exploration) explained(ctx context.Context, f *Failure) *Failure {
	w := x.w
	x.found(f, x.res.Schedules)
	switch {
	case f.over:
		return w.told(ctx, x.s, x.fn, f)
	case f.Kind == KindBlocked || f.Kind == KindEmpty: // a blocked schedule takes real time
		return f
	}
	if w.confirm(ctx, x.s, x.fn, f); !f.unsure {
		f = w.shrink(ctx, x.s, x.fn, f)
		f = w.told(ctx, x.s, x.fn, f)
		f.twin = w.twin(ctx, x.s, x.fn, f)
	}
	return f
}

// progress prints now and then how many schedules have been run.
func (x *exploration) progress() {
	if now := time.Now(); now.Sub(x.told) > 5*time.Second {
		x.told = now
		fmt.Fprintf(os.Stderr, "sim: %d schedules, %.0f a second, %d steps\n", x.res.Schedules,
			float64(x.res.Schedules)/now.Sub(x.began).Seconds(), x.res.Steps)
	}
}

// never returns the names of Sometimes that were never true or never reached, and the faults that never fired.
func (x *exploration) never() (names []string) {
	for at := x.s.sights; at != nil; at = at.next {
		if !at.seen {
			names = append(names, at.name)
		}
	}
	for i, name := range x.sometimes {
		if !x.s.reached(name) && !slices.Contains(x.sometimes[:i], name) {
			names = append(names, name+" (this call of Sometimes was never reached)")
		}
	}
	return append(names, x.s.faults.never()...)
}

const (
	useErrorf = ". Use s.Errorf or s.Fatalf: then the schedule is run again, made smaller, and reported once"
	exitText  = "the program ended its goroutine in this schedule, as t.Fatal does" + useErrorf
)

// outsideText returns the text for a testing.T that has failed. In a race build that may be a data race. raced tells
// whether the detector has reported one in the schedule.
func outsideText(raced bool) string {
	if raced {
		return "a data race, which is reported above: order its two accesses, by an operation of coir or a mutex"
	}
	return "the test has failed in this schedule: the program called t.Error or t.Fatal" + useErrorf
}

// Run runs fn under one schedule, chosen at random by the seed. It returns the failure, or nil.
func Run(seed uint64, fn func(ctx context.Context, s *Sim), opts ...Option) *Failure {
	return Explore(fn, append(opts, WithSeed(seed), WithStrategy(Random), WithSchedules(1))...).Failure
}

// guardEvery: one in this many schedules is run a second time, to check that it repeats.
const guardEvery = 16

// again runs the last schedule a second time. A program that then behaves differently depends on something that sim
// does not control: the order of a map, real time, a random number.
//
// Spec: SM-03 (the same decisions give the same run)
func (w *world) again(ctx context.Context, s *Sim, fn func(context.Context, *Sim)) *Failure {
	first := new(Failure)
	first.freeze(w)
	f := w.follow(ctx, s, fn, first.script, nil)
	if f == nil && (w.hash != first.hash || w.lengths != first.lengths) {
		f = &Failure{Kind: KindNondeterministic}
		f.freeze(w)
		var where string
		where, f.forked = first.fork(f)
		f.Text = "the same decisions gave a different run " + where
		f.Token = encode(w.mode, f.script, f.hash, f.hashes)
	}
	if f != nil {
		f.unsure = f.Kind != KindUncontrolled && f.Kind != KindBlocked // it did not fail the first time
	}
	return f
}

// confirm runs a failed schedule a second time before it is reported, and records whether it behaved differently.
// Goroutines outside need not repeat themselves, and Drawn runs only one schedule.
func (w *world) confirm(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) {
	if _, ok := w.strategy.(*drawn); ok || f.unsure || f.Kind == KindUncontrolled {
		return
	}
	again := w.follow(ctx, s, fn, f.script, nil)
	same := again != nil && again.Kind == f.Kind && again.hash == f.hash && again.lengths == f.lengths
	f.unsure = !same && len(w.strays.sorted()) == 0
}

// KindNondeterministic is the failure of a program that behaves differently under the same decisions.
const KindNondeterministic Kind = "nondeterministic"

// fork describes where schedule g differs from this one. It also returns the number of the last step that is the same,
// or 0 if unknown.
func (f *Failure) fork(g *Failure) (where string, step int) {
	from := max(f.before, g.before)
	for i := from; i < min(f.Steps, g.Steps); i++ {
		a, b := &f.trace[i-f.before], &g.trace[i-g.before]
		x, _ := f.casesOf(a.cases)
		y, _ := g.casesOf(b.cases)
		same := func(x, y choice) bool { return x.op.Kind == y.op.Kind && x.object == y.object }
		if a.fiber == b.fiber && a.op.Kind == b.op.Kind && a.op.For != b.op.For {
			return fmt.Sprintf("at step %d: %s once, and %s again", i+1, lasts(a), lasts(b)), i
		}
		if a.fiber != b.fiber || a.op.Kind != b.op.Kind || a.object != b.object || !slices.EqualFunc(x, y, same) {
			if i == from && from > 0 {
				return fmt.Sprintf("before step %d, the first that was kept", i+1), 0
			}
			return fmt.Sprintf("after step %d", i), i
		}
	}
	step = min(f.Steps, g.Steps)
	return fmt.Sprintf("after step %d", step), step
}

// lasts returns an operation with its length, as a report does.
func lasts(e *event) string { return new(findings).words(e.op, -1, e.cases) }

func (w *world) close() {
	close(w.closed)
	_ = w.rt.Close(context.Background())
}

// follow runs fn once, as schedule does, but makes the decisions of script and not those of the strategy. After the end
// of script, rest decides; if rest is nil, all decisions are 0.
func (w *world) follow(
	ctx context.Context, s *Sim, fn func(context.Context, *Sim), script []int, rest search.Strategy,
) *Failure {
	w.script = &search.Script{Ways: script, Rest: rest}
	w.script.Begin(0)
	f := w.schedule(ctx, s, fn)
	w.script = nil
	return f
}

// schedule runs fn once. The calling fiber is the first of the schedule.
func (w *world) schedule(ctx context.Context, s *Sim, fn func(context.Context, *Sim)) *Failure {
	w.reset()
	w.sim = s
	s.nerrs = 0
	s.faults.begin()
	self := coir.Self(ctx)
	w.current = w.fiberOf(self)
	// The next schedule begins at time 0. So a program that reads the time does the same in each run of a schedule, and
	// no timer that is left fires.
	defer w.host.Rewind()
	ctx, w.cancel = coir.WithCancelCause(ctx)
	defer w.cancel(nil)
	cancel := w.cancel
	w.abort.Store(&cancel)
	s.ctx = ctx
	w.begun()
	p, stack := w.guarded(ctx, s, fn)
	w.running = false
	stray := w.stray.Load() // perhaps after the last step
	switch {
	case w.fail != nil:
		if p != nil && !cancelled(p) {
			w.fail.panicked = panicText(p, stack)
		}
	case stray != nil:
		w.fail = stray
		w.fail.freeze(w)
	case p != nil:
		w.fail = &Failure{Kind: KindPanic, Text: panicText(p, stack)}
		w.fail.freeze(w)
	case s.nerrs > 0:
		w.fail = &Failure{Kind: KindError, Text: s.errs[0]}
		w.fail.freeze(w)
	default:
		w.looked(fn)
	}
	if f := w.fail; f != nil {
		f.lookBehindTickers(w.limit)
		f.errs = slices.Clone(s.errs[:min(s.nerrs, len(s.errs))])
		f.nerrs = s.nerrs
		f.Token = encode(w.mode, f.script, f.hash, f.hashes)
	}
	return w.fail
}

// cancelled reports whether a panic's value is the error of an operation cancelled by stop.
func cancelled(p any) bool {
	if pe, ok := p.(*coir.PanicError); ok {
		p = pe.Value
	}
	err, ok := p.(error)
	return ok && errors.Is(err, context.Canceled)
}

// guarded calls fn and returns the value that it panicked with, and the stack.
func (w *world) guarded(ctx context.Context, s *Sim, fn func(context.Context, *Sim)) (p any, stack []byte) {
	returned := false
	defer func() {
		if p = recover(); p == nil {
			if !returned {
				w.exits()
			}
			return
		}
		stack = debug.Stack()
		var pe *coir.PanicError
		if err, ok := p.(error); ok && (err == errStopped || errors.As(err, &pe) && pe.Value == errStopped) {
			p = nil
		}
	}()
	w.running = true
	fn(ctx, s)
	returned = true
	return nil, nil
}

// exits is called when fn ends its goroutine, which ends the exploration.
func (w *world) exits() {
	f := &Failure{Kind: KindError, Text: exitText}
	f.freeze(w)
	f.Token = encode(w.mode, f.script, f.hash, f.hashes)
	w.exited = f
}
