package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"pgregory.net/rapid"
)

// Random trees of nurseries are checked against what must hold for every tree.
//
// A plan says what each fiber does: it may yield, sleep for no time, start another fiber in its nursery, open a
// nursery, wait for a fiber that it started, cancel its nursery, or park forever. The plan also says whether the fiber
// returns nil or its own error. The scheduler decides which fiber runs when, so one plan has many outcomes, and no
// single outcome can be compared with a reference. But these properties, which follow from the plan alone, must hold in
// all outcomes:
//
//	JOIN    When Run returns, every fiber started in its nursery has ended.
//	ERRORS  errors.Is finds the error of every fiber that failed, also of fibers in inner nurseries whose error was
//	        passed on.
//	CALM    If nothing in the plan fails or cancels, in a nursery or around it, Run returns nil, every fiber runs to
//	        its end, and no fiber sees a cancellation.
//	DOOM    If a fiber that depends on nothing fails or cancels, every fiber that is parked forever in that nursery or
//	        inside it is woken. A plan parks fibers forever only in such nurseries. So if one is missed, the run
//	        hangs, and that is reported.
//	REACH   When Run returns an error, the context of each of its fibers is cancelled.
//	WAIT    Wait returns the error with which the fiber ended, and only after the fiber has ended, unless the waiter
//	        is cancelled.

type op int

const (
	opYield   op = iota
	opSleep      // for no time
	opChild      // start fiber in the same nursery
	opScope      // open nursery and wait for it
	opWait       // wait for the fiber started last
	opCancel     // cancel the own nursery
	opForever    // park until cancelled
	ops
)

type step struct {
	op       op
	fiber    *fiberPlan   // for opChild
	nursery  *nurseryPlan // for opScope
	hand     bool         // for opScope: return its error
	stubborn bool         // continue after a cancellation
}

type fiberPlan struct {
	id    int
	steps []step
	fails bool
}

// A nurseryPlan is a nursery; body is the function passed to Run.
type nurseryPlan struct {
	id   int
	body *fiberPlan
}

func (f *fiberPlan) String() string {
	var b strings.Builder
	f.print(&b, "")
	return b.String()
}

func (f *fiberPlan) print(b *strings.Builder, indent string) {
	for _, s := range f.steps {
		suffix := ""
		if s.stubborn {
			suffix = ", stubborn"
		}
		switch s.op {
		case opYield:
			fmt.Fprintf(b, "%syield%s\n", indent, suffix)
		case opSleep:
			fmt.Fprintf(b, "%ssleep 0%s\n", indent, suffix)
		case opChild:
			fmt.Fprintf(b, "%sstart fiber %d\n", indent, s.fiber.id)
			s.fiber.print(b, indent+"  ")
		case opScope:
			if s.hand {
				suffix = ", hand its error on"
			}
			fmt.Fprintf(b, "%srun nursery %d%s\n", indent, s.nursery.id, suffix)
			s.nursery.body.print(b, indent+"  ")
		case opWait:
			fmt.Fprintf(b, "%swait for the last%s\n", indent, suffix)
		case opCancel:
			fmt.Fprintf(b, "%scancel\n", indent)
		case opForever:
			fmt.Fprintf(b, "%spark for good\n", indent)
		}
	}
	if f.fails {
		fmt.Fprintf(b, "%sfail\n", indent)
	}
}

// unrest reports whether anything in f may cancel the nursery of f.
func (f *fiberPlan) unrest() bool {
	if f.fails {
		return true
	}
	for _, s := range f.steps {
		switch s.op {
		case opCancel:
			return true
		case opChild:
			if s.fiber.unrest() {
				return true
			}
		case opScope:
			if s.hand && s.nursery.body.unrest() {
				return true
			}
		}
	}
	return false
}

// A planner draws plans.
type planner struct {
	t      *rapid.T
	fibers int // number of fibers so far
	scopes int
}

const mostFibers = 60

// nursery draws a nursery. It is doomed if an outer nursery is, or if the first action of its body is to start a fiber
// that fails or cancels without depending on anything.
func (p *planner) nursery(depth int, doomed bool) *nurseryPlan {
	n := &nurseryPlan{id: p.scopes}
	p.scopes++
	var doom []step
	if p.chance("doom", 30) {
		doomed = true
		f := p.newFiber()
		for range rapid.IntRange(0, 3).Draw(p.t, "delay") {
			f.steps = append(f.steps, step{op: opYield, stubborn: true})
		}
		if p.chance("by cancel", 50) {
			f.steps = append(f.steps, step{op: opCancel})
		} else {
			f.fails = true
		}
		doom = []step{{op: opChild, fiber: f}}
	}
	n.body = p.fiber(depth, doomed)
	n.body.steps = append(doom, n.body.steps...)
	return n
}

func (p *planner) fiber(depth int, doomed bool) *fiberPlan {
	f := p.newFiber()
	started := false
	for range rapid.IntRange(0, 6).Draw(p.t, "steps") {
		s := step{op: op(rapid.IntRange(0, int(ops)-1).Draw(p.t, "op")), stubborn: p.chance("stubborn", 30)}
		switch s.op {
		case opChild:
			if depth == 0 || p.fibers >= mostFibers {
				continue
			}
			s.fiber = p.fiber(depth-1, doomed)
			started = true
		case opScope:
			if depth == 0 || p.fibers >= mostFibers {
				continue
			}
			s.nursery = p.nursery(depth-1, doomed)
			s.hand = p.chance("hand on", 50)
		case opWait:
			if !started {
				continue
			}
		case opCancel:
			if !p.chance("really cancel", 20) {
				continue
			}
		case opForever:
			if !doomed {
				continue
			}
		}
		f.steps = append(f.steps, s)
	}
	f.fails = p.chance("fails", 10)
	return f
}

func (p *planner) newFiber() *fiberPlan {
	p.fibers++
	return &fiberPlan{id: p.fibers}
}

func (p *planner) chance(what string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(p.t, what) >= 100-percent
}

// causeOf returns the cause with which a fiber cancels its nursery.
func causeOf(fiber int) error { return fmt.Errorf("fiber %d cancels", fiber) }

// failure is a fiber's own error. No two are equal.
type failure struct{ fiber int }

func (f *failure) Error() string { return fmt.Sprintf("fiber %d fails", f.fiber) }

// A scene is one run of a plan, with what was observed.
type scene struct {
	mu     sync.Mutex
	faults []string
}

// A stay has what was observed of one nursery. Its mutex guards the fields, because fibers on several workers write to
// them.
type stay struct {
	mu       sync.Mutex
	plan     *nurseryPlan
	calm     bool // nothing inside or around it fails or cancels
	nursery  *coir.Nursery
	started  int
	ended    int
	failures []*failure
	ctxs     []context.Context
	stirred  bool // a fiber failed, cancelled, or passed on an error
}

// A visit has what was observed of one fiber.
type visit struct {
	mu    sync.Mutex
	ended bool
	err   error
}

func (s *scene) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

type runFunc func(context.Context, func(context.Context, *coir.Nursery) error) error

// run performs a nursery and checks what must hold when Run returns. It returns Run's error and the failures that must
// be in it.
func (s *scene) run(ctx context.Context, run runFunc, plan *nurseryPlan, around bool) (failed []*failure, err error) {
	st := &stay{plan: plan, calm: around && !plan.body.unrest()}
	err = run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		st.nursery = n
		return s.perform(ctx, st, plan.body, &visit{})
	})

	st.mu.Lock()
	defer st.mu.Unlock()
	if st.started != st.ended {
		s.fault("JOIN: Run of nursery %d returned while %d of its fibers had not ended", plan.id, st.started-st.ended)
	}
	for _, f := range st.failures {
		if !errors.Is(err, f) {
			s.fault("ERRORS: Run of nursery %d returned %q, in which errors.Is does not find %q", plan.id, err, f)
		}
	}
	if st.calm && err != nil {
		s.fault("CALM: Run of nursery %d returned %q though nothing failed", plan.id, err)
	}
	if !st.stirred && ctx.Err() == nil && err != nil {
		s.fault("CALM: Run of nursery %d returned %q though nobody failed or cancelled", plan.id, err)
	}
	if st.stirred {
		for _, ctx := range st.ctxs {
			if ctx.Err() == nil {
				s.fault("REACH: nursery %d was cancelled, but the ctx of one of its fibers was not", plan.id)
				break
			}
		}
	}
	return st.failures, err
}

// perform performs the plan of a fiber.
func (s *scene) perform(ctx context.Context, st *stay, plan *fiberPlan, v *visit) (err error) {
	st.mu.Lock()
	st.started++
	st.ctxs = append(st.ctxs, ctx)
	st.mu.Unlock()
	var failed []*failure // what errors.Is must find in err
	defer func() {
		v.mu.Lock()
		v.ended, v.err = true, err
		v.mu.Unlock()
		st.mu.Lock()
		st.ended++
		if err != nil {
			st.stirred = true
		}
		st.failures = append(st.failures, failed...)
		st.mu.Unlock()
	}()

	var last *coir.Fiber
	var lastVisit *visit
	for _, step := range plan.steps {
		var seen error // a cancellation
		switch step.op {
		case opYield:
			seen = coir.Yield(ctx)
		case opSleep:
			seen = coir.Sleep(ctx, 0)
		case opChild:
			child, v := step.fiber, &visit{}
			last, lastVisit = st.nursery.Go(fmt.Sprintf("fiber %d", child.id), func(ctx context.Context) error {
				return s.perform(ctx, st, child, v)
			}), v
		case opScope:
			within, err := s.run(ctx, coir.Run, step.nursery, st.calm)
			if err != nil && step.hand {
				failed = within
				return err
			}
		case opWait:
			seen = s.wait(ctx, last, lastVisit)
		case opCancel:
			st.mu.Lock()
			st.stirred = true
			st.mu.Unlock()
			st.nursery.Cancel(causeOf(plan.id))
		case opForever:
			seen = coir.Sleep(ctx, time.Hour)
			if seen == nil {
				s.fault("DOOM: fiber %d slept for an hour and was not cancelled", plan.id)
			}
		}
		if seen == nil {
			continue
		}
		if st.calm {
			s.fault("CALM: fiber %d saw %q though nothing failed", plan.id, seen)
		}
		if ctx.Err() == nil {
			s.fault("CALM: fiber %d was told %q, but its ctx is not cancelled", plan.id, seen)
		}
		if !errors.Is(seen, context.Canceled) {
			s.fault("REACH: fiber %d was cancelled, but the error %q is not context.Canceled", plan.id, seen)
		}
		if !step.stubborn {
			return seen
		}
	}
	if plan.fails {
		failed = []*failure{{plan.id}}
		return failed[0]
	}
	return nil
}

// wait waits for f and returns the cancellation that ended the wait, if any.
func (s *scene) wait(ctx context.Context, f *coir.Fiber, v *visit) error {
	err := f.Wait(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if ctx.Err() != nil { // either result is correct
		if v.ended && errors.Is(err, v.err) {
			return nil
		}
		return err
	}
	if !v.ended {
		s.fault("WAIT: Wait for %s returned %v before the fiber had ended", f.Name(), err)
	} else if !errors.Is(err, v.err) {
		s.fault("WAIT: Wait for %s returned %v, the fiber had ended with %v", f.Name(), err, v.err)
	}
	return nil
}

func TestNurseryTrees(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			rt := coir.NewRuntime(coir.WithWorkers(workers))
			defer closeSoon(t, rt)
			rapid.Check(t, func(t *rapid.T) {
				p := &planner{t: t}
				playOut(t, rt.Run, p.nursery(4, false))
			})
		})
	}
}

// The same on the default runtime, which may end and start again in between.
func TestNurseryTreesOnTheDefaultRuntime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &planner{t: t}
		playOut(t, coir.Run, p.nursery(4, false))
	})
}

// playOut runs a plan and reports the properties that did not hold.
func playOut(t *rapid.T, run runFunc, plan *nurseryPlan) {
	s := &scene{}
	endsSoon(t, plan.body, func() { _, _ = s.run(context.Background(), run, plan, true) })
	if len(s.faults) > 0 {
		t.Fatalf("%s\nthe plan was:\n%v", strings.Join(s.faults, "\n"), plan.body)
	}
}
