package coir

import (
	"context"
	"sync/atomic"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
)

// The interface to a simulator. Package sim implements a policy (see internal/policy) and moves a Clock; the rest of
// this package does not depend on it. On a runtime without a policy, each operation only checks a flag of the fiber.

func init() { policy.Option = func(p policy.Policy) any { return withPolicy(p) } }

// withPolicy makes p decide the order of all steps. The runtime then has one worker.
func withPolicy(p policy.Policy) RuntimeOption {
	return func(s *settings) {
		simulating.Add(1)
		s.policy = p
	}
}

// policed is a runtime with a policy, with the methods that the policy and the scheduler use. It is the same object as
// the Runtime.
type policed Runtime

// Interrupt implements policy.Runtime.
//
//go:norace
func (x *policed) Interrupt(pf policy.Fiber) bool {
	f := pf.(*Fiber)
	t, waits := f.task.Waiting()
	if !waits || f.waitScope.Load() == noInterrupt {
		return false
	}
	f.task.Wake(t, park.Cancelled, nil)
	return true
}

// TimedOut implements policy.Runtime.
//
//go:norace
func (x *policed) TimedOut(f policy.Fiber) bool { return f.(*Fiber).task.Reason() == park.TimedOut }

// Goroutines implements policy.Runtime.
//
//go:norace
func (x *policed) Goroutines() int64 { return x.s.Goroutines() }

// Rewind implements policy.Runtime.
//
//go:norace
func (x *policed) Rewind() {
	if v, ok := x.s.Clock().(*clock.Virtual); ok {
		v.Rewind()
	}
}

// Woken implements policy.Runtime.
//
//go:norace
func (x *policed) Woken(f policy.Fiber) policy.Outcome {
	return outcomeOf(f.(*Fiber).task.Reason().Kind())
}

// Failed implements policy.Runtime.
//
//go:norace
func (x *policed) Failed(f policy.Fiber) (err error, panics bool) {
	if f := f.(*Fiber); f.ended() {
		return f.err(), outcome(f.outcome.Load()) == panicked
	}
	return nil, false
}

// Announce implements policy.Runtime.
func (x *policed) Announce(ctx context.Context, op policy.Op, do func()) {
	by := resolve(ctx)
	by.announce(op)
	do()
	if by.f != nil && by.f.simulated {
		by.f.stepped()
	}
}

// Push, Inject, Pick and Len implement sched.Policy.
//
//go:norace
func (x *policed) Push(t *sched.Task) { x.policy.Ready(fiberOf(t)) }

//go:norace
func (x *policed) Inject(t *sched.Task) { x.policy.Wake(fiberOf(t)) }

//go:norace
func (x *policed) Pick() *sched.Task {
	(*Runtime)(x).lookAtContexts() // an ended fiber may have cancelled a context, and makes no more steps
	if f := x.policy.Next(); f != nil {
		return &f.(*Fiber).task
	}
	return nil
}

//go:norace
func (x *policed) Len() int { return x.policy.Len() }

// simulating counts the runtimes with a policy made so far. While it is 0, operations need not check for a policy.
var simulating atomic.Int32

// simulatedBy returns the runtime of the calling fiber if that runtime has a policy, and otherwise nil.
func simulatedBy() *Runtime {
	if simulating.Load() > 0 {
		if f := currentFiber(); f != nil && f.simulated {
			return f.nursery.rt
		}
	}
	return nil
}

// Point marks a place where, in a simulation, other fibers may run before the caller continues, as they may before an
// operation. It is for code that shares memory between operations of this package, with atomics or under a mutex.
// Without a Point, package sim treats the code between two operations as one step; with a Point in it, as two:
//
//	if owner.Load() == 0 {
//		coir.Point(ctx)
//		owner.Store(me) // two fibers may get here
//	}
//
// Outside of a simulation, Point only checks a flag. Do not call it while holding a native mutex that other fibers
// lock: those fibers would wait outside of coir.
func Point(ctx context.Context) {
	if simulating.Load() > 0 {
		point(ctx)
	}
}

//go:noinline
func point(ctx context.Context) {
	by := resolve(ctx)
	by.announce(policy.Op{Kind: policy.Point})
}

// announce announces to the policy an operation on an object of rt, which has a policy. It returns the calling fiber,
// which must call stepped when the operation is done, or nil if the caller is not a fiber of rt.
//
//go:norace
func announce(rt *Runtime, op policy.Op) *Fiber {
	if f := currentFiber(); f != nil && f.nursery.rt == rt {
		f.step(op)
		return f
	}
	rt.stray(op)
	return nil
}

// stray tells the policy that a goroutine performs op, unless op is part of the current step.
//
//go:norace
func (rt *Runtime) stray(op policy.Op) {
	if rt.quiet.Load() == 0 {
		rt.policy.Stray(op)
	}
}

// announceGo announces that the caller is about to start a fiber in the nursery. It returns the fiber that must call
// stepped, or nil.
//
//go:norace
func (n *Nursery) announceGo(name string) *Fiber {
	f := currentFiber()
	op := policy.Op{Kind: policy.Go, Object: n.id(), Name: name, Limited: n.limits() != nil}
	op.Foreign = f == nil || f != n.owner && f.nursery != n
	return announce(n.rt, op)
}

// announce checks that the channel was made by NewChan, and announces an operation on it if there is a policy. It
// returns the fiber that must call stepped, or nil.
//
//go:norace
func (c *core) announce(k policy.Kind) *Fiber {
	if c.ch == nil {
		panic(notMade("Chan"))
	}
	if c.rt != nil {
		return announce(c.rt, c.op(k))
	}
	return nil
}

// announceBy is announce for a resolved caller. It builds the Op only if there is a policy, because every operation of
// a goroutine calls it.
//
//go:norace
func (c *core) announceBy(by *caller, k policy.Kind) {
	if c.ch == nil {
		panic(notMade("Chan"))
	}
	if by.f != nil && by.f.simulated {
		by.f.step(c.op(k))
	} else if c.rt != nil {
		c.rt.stray(c.op(k))
	}
}

// announce announces an operation that involves no channel, if there is a policy. The caller may be a fiber under the
// scope of another.
//
//go:norace
func (c *caller) announce(op policy.Op) {
	if c.f != nil && c.f.simulated {
		c.f.step(op)
	}
}

// op returns an operation on the channel.
//
//go:norace
func (c *core) op(k policy.Kind) policy.Op {
	op := policy.Op{Kind: k, Object: c.ch.ID(), Name: c.name}
	if k == policy.Recv && c.looks != nil {
		op.Verb = c.looks.recv
	}
	return op
}

// step announces an operation of a fiber whose runtime has a policy. It is called while the caller's synchronisation is
// visible.
//
// Operations that do not wait charge the fiber's budget. step sets the budget to 0, so that such an operation calls the
// policy's Stepped when it is done: see Fiber.yieldBudget. Operations that charge nothing call stepped instead.
//
//go:noinline
//go:norace
func (f *Fiber) step(op policy.Op) {
	if f.nursery.rt.quiet.Load() > 0 { // the operation is part of the step of a cancellation or of the clock
		return
	}
	switch op.Kind {
	case policy.Start, policy.Sleep, policy.Yield, policy.Wait, policy.Join, policy.End, policy.Point:
		f.budget = budget
	default:
		f.budget = 0
	}
	race.Disable()
	rt := f.nursery.rt
	rt.lookAtContexts()
	if !rt.policy.Step(f, op) {
		f.task.Yield()
	}
	race.Enable()
}

// stepped tells the policy that the fiber has completed the announced operation without waiting. It is called while the
// caller's synchronisation is visible. If f is nil, which announce returns when there is no policy, stepped does
// nothing.
//
//go:norace
func (f *Fiber) stepped() {
	if f != nil {
		f.endStep()
	}
}

//go:noinline
//go:norace
func (f *Fiber) endStep() {
	race.Disable()
	f.yieldBudget()
	race.Enable()
}

// announceSelect announces a select over cs by f, or by a goroutine if f is nil. It returns f if the policy is to
// choose the case, and otherwise nil.
//
//go:norace
func announceSelect(f *Fiber, k policy.Kind, cs []Case) *Fiber {
	if f != nil && f.simulated {
		f.stepSelect(k, cs)
		return f
	}
	for i := range cs {
		if rt := cs[i].usedIn(); rt != nil {
			op := cs[i].op()
			rt.stray(policy.Op{Kind: k, Object: op.Object, Name: op.Name})
			break
		}
	}
	return nil
}

// usedIn returns the runtime with a policy on which the case's channel was made, or that was the first to use the
// case's object. It returns nil if there is none. It also returns nil for a fiber, a side of a pipe, or a time, because
// waiting does not change their state.
//
//go:norace
func (c *Case) usedIn() *Runtime {
	if c.what == caseSend || c.what == caseRecv {
		return c.core.rt
	}
	if o := c.object(); o != nil {
		return o.rt.Load()
	}
	return nil
}

// object returns the object that the case waits for, or nil if the case does not wait for an object.
//
//go:norace
func (c *Case) object() *object {
	switch c.what {
	case caseTake:
		return &(*Queue)(c.ptr).object
	case caseSignal:
		return &(*Cond)(c.ptr).object
	case caseEvent:
		if e, ok := c.arg.(interface{ subject() *object }); ok {
			return e.subject()
		}
	case caseAfter:
		if t, ok := c.arg.(*Timer); ok {
			return &t.object
		}
	}
	return nil
}

// stepSelect announces a select over cs. It builds the list of cases in the fiber's scratch memory.
//
//go:noinline
//go:norace
func (f *Fiber) stepSelect(k policy.Kind, cs []Case) {
	s := scratchOf(f.task.Kit())
	if s.ops == nil || len(s.ops) < len(cs) {
		s.ops = make([]policy.Op, len(cs))
	}
	n := 0
	for i := range cs {
		if cs[i].what != caseNever {
			if o := cs[i].object(); o != nil {
				o.rt.CompareAndSwap(nil, f.nursery.rt)
			}
			s.ops[n] = cs[i].op()
			n++
		}
	}
	f.step(policy.Op{Kind: k, Cases: s.ops[:n]})
}

// op returns the operation that the case waits for.
//
//go:norace
func (c *Case) op() policy.Op {
	switch c.what {
	case caseSend:
		return c.core.op(policy.Send)
	case caseRecv:
		return c.core.op(policy.Recv)
	case caseEvent, caseTake, caseSignal:
		return c.event().op()
	case caseAfter:
		if t, ok := c.arg.(*Timer); ok {
			return t.op(1)
		}
	}
	return policy.Op{Kind: policy.Sleep}
}

// announce checks that the selector was made by NewSelector, and announces a change of its cases. If a goroutine makes
// the change, it announces the effect on the channel. It returns the fiber that must call stepped, or nil.
//
//go:norace
func (s *Selector) announce(c *core) *Fiber {
	if s.b == nil {
		panic(notMade("Selector"))
	}
	if c != nil && c.ch == nil {
		panic(notMade("Chan"))
	}
	if simulating.Load() == 0 {
		return nil
	}
	f := currentFiber()
	switch {
	case f != nil && f.simulated:
		f.step(policy.Op{Kind: policy.Register, Object: s.number()})
		return f
	case c != nil && c.rt != nil:
		c.rt.stray(c.op(policy.Register))
	}
	return nil
}

//go:norace
func (s *Selector) number() uint64 {
	if s.id == 0 {
		race.Disable()
		s.id = channel.NewObjectID()
		race.Enable()
	}
	return s.id
}

// stepSelector announces that f is about to wait at s. It lists the cases in the order of their numbers. Reading the
// registrations must not order anything, so the lock is hidden, and the list is read instead of the map.
//
//go:noinline
//go:norace
func (f *Fiber) stepSelector(s *Selector) {
	if s.told == nil {
		s.told = make([]policy.Op, 64)
	}
	cases, n := s.told, 0
	race.Disable()
	s.regMu.Lock()
	for reg := s.oldest; reg != nil && cases != nil; reg = reg.newer {
		if reg.cs.what == caseNever {
			continue
		}
		if n == len(cases) {
			cases = nil // too many
			break
		}
		cases[n] = reg.cs.op()
		n++
	}
	s.regMu.Unlock()
	race.Enable()
	if cases != nil {
		cases = cases[:n]
	}
	f.step(policy.Op{Kind: policy.Select, Object: s.number(), Cases: cases})
}

// tell tells the policy how the operation that f announced last has ended: see policy.Policy.Ended. An operation that
// does not wait calls tell before other fibers run. An operation that waited, and is not a select, calls tell only if
// it failed; otherwise the policy gets its outcome from Runtime.Woken.
//
//go:noinline
//go:norace
func (f *Fiber) tell(how policy.Outcome, which int) {
	race.Disable()
	f.nursery.rt.policy.Ended(f, how, which)
	race.Enable()
}

// tellFirst calls tell for an operation that has an effect only the first time. first reports whether this was the
// first time.
//
//go:norace
func (f *Fiber) tellFirst(first bool) {
	how := policy.Again
	if first {
		how = policy.Done
	}
	f.tell(how, -1)
}

// tellTried calls tell for a Try operation. took reports whether it succeeded.
//
//go:norace
func (f *Fiber) tellTried(took bool) {
	how := policy.WouldBlock
	if took {
		how = policy.Done
	}
	f.tell(how, -1)
}

// tellEnding calls tell for an operation that failed because sc has ended.
//
//go:norace
func (f *Fiber) tellEnding(sc *scope) {
	if f.simulated {
		f.tell(outcomeOf(sc.failureReason(park.Cancelled)), -1)
	}
}

// tellSelect calls tell for a select over cs that chose case i with reason r, or for a TrySelect that chose none, if i
// is negative.
//
//go:norace
func (f *Fiber) tellSelect(cs []Case, i int, r park.Reason) {
	if i < 0 {
		f.tell(policy.WouldBlock, -1)
		return
	}
	which := 0
	for k := range cs[:i] {
		if cs[k].what != caseNever {
			which++
		}
	}
	f.tell(cs[i].outcome(r), which)
}

// tellSelector calls tell for a wait at s that stepSelector announced and that chose c.
//
//go:norace
func (f *Fiber) tellSelector(s *Selector, c *Case, r park.Reason) {
	op := c.op()
	for i := range s.told {
		if t := &s.told[i]; t.Kind == op.Kind && t.Object == op.Object {
			f.tell(c.outcome(r), i)
			return
		}
	}
	f.tell(c.outcome(r), -1)
}

// outcome returns the outcome of a case that a select chose with reason r.
//
//go:norace
func (c *Case) outcome(r park.Reason) policy.Outcome {
	switch {
	case c.core == nil:
		return policy.Done // including a time that has come
	case c.what == caseSend && r == park.Data && c.core.ch.Overflows():
		return policy.Dropped
	}
	return outcomeOf(r)
}

// overrunOutcome returns the outcome of a send that found no room and ended with reason r without waiting.
//
//go:norace
func (c *core) overrunOutcome(r park.Reason) policy.Outcome {
	switch {
	case r != park.Data:
		return outcomeOf(r)
	case c.ch.Displaces():
		return policy.Displaced
	}
	return policy.Dropped
}

// outcomeOf returns the outcome of an operation that ended with reason r.
//
//go:norace
func outcomeOf(r park.Reason) policy.Outcome {
	switch r {
	case park.Data:
		return policy.Done
	case park.Closed:
		return policy.Closed
	case park.Cancelled:
		return policy.Cancelled
	case park.TimedOut:
		return policy.TimedOut
	}
	return policy.WouldBlock
}
