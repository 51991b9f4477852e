package coir

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
)

// Where a simulator comes in. Package sim is a Policy and a Clock, and the rest of this package does not know it. A
// runtime without a policy pays a look at a flag of the fiber for each operation.

// Policy decides, on a runtime with one worker, all that is otherwise left to chance: which of the fibers that can run
// does, before and after each operation of any of them, and which of several ready cases a select takes. It is called
// by the fibers themselves, one at a time; Wake, Len and Stray also by others, at any time.
type Policy interface {
	// Ready tells that f can run.
	Ready(f *Fiber)
	// Wake is Ready by the clock, or by a goroutine.
	Wake(f *Fiber)
	// Next takes one of those that can run, who then does. Nil means that there is none.
	Next() *Fiber
	// Len is how many can run.
	Len() int
	// Step announces that f, which runs, is about to do op. If it reports false f is Ready, and Next is asked.
	Step(f *Fiber, op Op) bool
	// Stepped tells that f, which runs, has done what it announced, and did not wait. If it reports false f is Ready,
	// and Next is asked. It is not called after operations that change nothing for others: OpStart, OpSleep, OpYield,
	// OpWait, OpJoin, OpEnd, and an OpPoint without more.
	Stepped(f *Fiber) bool
	// Choose returns a number below n: one of n things that could happen to f's operation.
	Choose(f *Fiber, n int) int
	// Stray tells that a goroutine, which nobody controls, is doing op on something that a fiber of the runtime has made.
	Stray(op Op)
}

// WithPolicy has p decide the order of everything. The runtime has one worker.
func WithPolicy(p Policy) RuntimeOption {
	return func(s *settings) {
		simulating.Add(1)
		s.policy = p
	}
}

// Interrupt ends the wait of f, a fiber of a runtime with a policy, as if the context that it waits under were over, whatever that is:
// [Shield] does not help, nor context.Background. The policy may call it in Next. It reports whether there was such a wait; those for the children of
// a nursery and for a place in one are none.
//
//go:norace
func Interrupt(f *Fiber) bool {
	t, waits := f.task.Waiting()
	if !waits || !f.simulated || f.waiting.Load() == noInterrupt {
		return false
	}
	f.task.Wake(t, park.Cancelled, nil)
	return true
}

// taskPolicy is the policy of a runtime as the scheduler sees it.
type taskPolicy Runtime

//go:norace
func (x *taskPolicy) Push(t *sched.Task) { x.policy.Ready(fiberOf(t)) }

//go:norace
func (x *taskPolicy) Inject(t *sched.Task) { x.policy.Wake(fiberOf(t)) }

//go:norace
func (x *taskPolicy) Pick() *sched.Task {
	x.contexts.look(x.policy) // a fiber that has ended may have cancelled, and comes to no further step
	if f := x.policy.Next(); f != nil {
		return &f.task
	}
	return nil
}

//go:norace
func (x *taskPolicy) Len() int { return x.policy.Len() }

// Op is an operation that is about to happen.
type Op struct {
	Kind    OpKind
	Foreign bool // of a go, whether the caller is neither in the nursery nor has opened it
	Limited bool // of a go, whether the nursery has a limit

	Object uint64        // the number of the channel, fiber or nursery that it is about; the same thing has the same number
	Name   string        // its name, if it has one
	For    time.Duration // of a sleep, how long
	In     uint64        // of a start and an end, the number of the nursery that the fiber is in

	// Of a select, what it waits for: OpSend and OpRecv on channels, OpWait for the end of a fiber, OpLeave for the side of a pipe, OpSleep
	// for a time. Nil means that they are not told, as those of a [Selector] with very many. They are there until Step returns.
	Cases []Op

	// Of OpDeadline, the stack of the call that depends on the context.
	Stack []uintptr
}

// OpKind is what an operation does.
type OpKind uint8

// The kinds of operations.
const (
	OpStart OpKind = iota // a fiber begins
	OpSend
	OpRecv
	OpTrySend
	OpTryRecv
	OpClose
	OpAbort
	OpSelect
	OpSleep
	OpYield
	OpWait // for a fiber
	OpGo
	OpCancel
	OpJoin // of a nursery's children
	OpEnd  // of a fiber
	OpTrySelect
	OpLeave    // an endpoint of a pipe is given up. If it is the last of its side, OpClose or OpAbort follows
	OpClone    // there is one more endpoint of a pipe
	OpRegister // a case is added to a selector, or taken out
	OpDeadline // the deadline of a context of package context has passed, by real time. Told by Stray alone
	OpPoint    // nothing: see Announce
)

var opNames = [...]string{"start", "send", "recv", "try send", "try recv", "close", "abort", "select", "sleep", "yield", "wait", "go",
	"cancel", "join", "end", "try select", "leave", "clone", "register", "deadline", "point"}

func (k OpKind) String() string {
	if int(k) >= len(opNames) {
		return "an operation of its own" // of a policy
	}
	return opNames[k]
}

// simulating counts the runtimes with a policy that there have been: while it is 0 nobody need ask.
var simulating atomic.Int32

// simulatedBy is the runtime with a policy that the caller is a fiber of, or nil.
func simulatedBy() *Runtime {
	if simulating.Load() > 0 {
		if f := currentFiber(); f != nil && f.simulated {
			return f.nursery.rt
		}
	}
	return nil
}

// Announce calls do as an operation of the calling fiber that is not one of this package's: the policy of its runtime
// may let others go first, and after it too. Where there is no policy it just calls do, at the cost of a look at a
// flag. A nil do does nothing.
//
// An [OpPoint] with nothing to do is for code that shares memory between operations. What lies between two operations
// is one step for a policy; with a point in it, it is two:
//
//	if owner.Load() == 0 {
//		coir.Announce(ctx, coir.Op{Kind: coir.OpPoint}, nil)
//		owner.Store(me)
//	}
func Announce(ctx context.Context, op Op, do func()) {
	var by caller
	if simulating.Load() > 0 {
		by = resolve(ctx)
		by.announce(op)
	}
	if do != nil {
		do()
		if by.f != nil && by.f.simulated {
			by.f.stepped()
		}
	}
}

// announce announces an operation on something that belongs to rt, which has a policy, whoever does it. It returns the
// fiber that does, which has to call stepped when it is done; nil if it is a goroutine.
//
//go:norace
func announce(rt *Runtime, op Op) *Fiber {
	if f := currentFiber(); f != nil && f.nursery.rt == rt {
		f.step(op)
		return f
	}
	rt.policy.Stray(op)
	return nil
}

// announceGo announces that a fiber is about to be started in the nursery. It returns the fiber that has to call
// stepped, if one has.
//
//go:norace
func (n *Nursery) announceGo(name string) *Fiber {
	f := currentFiber()
	op := Op{Kind: OpGo, Object: n.id(), Name: name, Limited: n.limits() != nil}
	op.Foreign = f == nil || f != n.owner && f.nursery != n
	return announce(n.rt, op)
}

// announce announces an operation on the channel, whoever does it, if anybody wants to know. It returns the fiber that
// has to call stepped, if one has.
//
//go:norace
func (c *core) announce(k OpKind) *Fiber {
	if c.rt != nil {
		return announce(c.rt, c.op(k))
	}
	return nil
}

// announceBy is announce for a caller that has been resolved. The operation is put together only if somebody is told: goroutines come
// through here each time.
//
//go:norace
func (c *core) announceBy(by *caller, k OpKind) {
	if by.f != nil && by.f.simulated {
		by.f.step(c.op(k))
	} else if c.rt != nil {
		c.rt.policy.Stray(c.op(k))
	}
}

// announce announces an operation that is about no channel, of a caller that may be a fiber in another scope than its own, if anybody wants to
// know.
//
//go:norace
func (c *caller) announce(op Op) {
	if c.f != nil && c.f.simulated {
		c.f.step(op)
	}
}

// op is an operation on the channel.
//
//go:norace
func (c *core) op(k OpKind) Op { return Op{Kind: k, Object: c.id, Name: c.name} }

// step announces an operation of a fiber whose runtime has a policy. It is called with the caller's synchronisation visible.
//
// What spends of the fiber's budget is what does not wait, so a budget that is used up brings the operation to Stepped
// when it is done: see Fiber.spent. Operations that spend nothing call stepped.
//
//go:noinline
//go:norace
func (f *Fiber) step(op Op) {
	switch op.Kind {
	case OpStart, OpSleep, OpYield, OpWait, OpJoin, OpEnd, OpPoint:
		f.budget = budget
	default:
		f.budget = 0
	}
	race.Disable()
	rt := f.nursery.rt
	rt.contexts.look(rt.policy)
	if !rt.policy.Step(f, op) {
		f.task.Yield()
	}
	race.Enable()
}

// stepped tells the policy that the fiber has done what it announced, and did not wait. It is called with the caller's
// synchronisation visible.
//
//go:noinline
//go:norace
func (f *Fiber) stepped() {
	race.Disable()
	f.spent()
	race.Enable()
}

// announceSelect announces a select over cs of f, or of a goroutine if f is nil. It returns f if a policy chooses for it.
//
//go:norace
func announceSelect(f *Fiber, k OpKind, cs []Case) *Fiber {
	if f != nil && f.simulated {
		f.stepSelect(k, cs)
		return f
	}
	for i := range cs {
		if c := cs[i].core; c != nil && c.rt != nil {
			c.rt.policy.Stray(c.op(k))
			break
		}
	}
	return nil
}

// stepSelect announces a select over cs. What it tells the policy is in the fiber's scratch.
//
//go:noinline
//go:norace
func (f *Fiber) stepSelect(k OpKind, cs []Case) {
	s := scratchOf(f.task.Kit())
	if s.ops == nil || len(s.ops) < len(cs) {
		s.ops = make([]Op, len(cs))
	}
	n := 0
	for i := range cs {
		if cs[i].what != caseNever {
			s.ops[n] = cs[i].op()
			n++
		}
	}
	f.step(Op{Kind: k, Cases: s.ops[:n]})
}

// op is what a case waits for.
//
//go:norace
func (cs *Case) op() Op {
	switch cs.what {
	case caseSend:
		return cs.core.op(OpSend)
	case caseRecv:
		return cs.core.op(OpRecv)
	case caseEvent:
		return cs.event.op()
	}
	return Op{Kind: OpSleep}
}

// announce announces a change of the selector's cases, and if it is done by a goroutine, what that does to a channel.
// It returns the fiber that has to call stepped, if one has.
//
//go:norace
func (s *Selector) announce(c *core) *Fiber {
	if simulating.Load() == 0 {
		return nil
	}
	f := currentFiber()
	switch {
	case f != nil && f.simulated:
		f.step(Op{Kind: OpRegister, Object: s.number()})
		return f
	case c != nil && c.rt != nil:
		c.rt.policy.Stray(c.op(OpRegister))
	}
	return nil
}

//go:norace
func (s *Selector) number() uint64 {
	if s.id == 0 {
		race.Disable()
		s.id = lastChan.Add(1)
		race.Enable()
	}
	return s.id
}

// stepSelector announces a wait at s, with its cases in the order of their numbers. That it looks into the book orders nobody, so the
// lock is hidden, and what it reads is not the map.
//
//go:noinline
//go:norace
func (f *Fiber) stepSelector(s *Selector) {
	if s.told == nil {
		s.told = make([]Op, 64)
	}
	cases, n := s.told, 0
	race.Disable()
	s.book.Lock()
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
	s.book.Unlock()
	race.Enable()
	if cases != nil {
		cases = cases[:n]
	}
	f.step(Op{Kind: OpSelect, Object: s.number(), Cases: cases})
}
