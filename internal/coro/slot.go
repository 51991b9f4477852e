//go:build !race && !coirtrampoline

package coro

import "iter"

// Fresh reports whether every thunk needs a new coroutine, made where the thunk is spawned. See handoff.go.
const Fresh = false

// Slot holds exactly one suspended goroutine, and swaps it with the caller.
//
// iter.Pull makes a runtime coro, which its authors describe not as a coroutine but as the ability to do
// coroutine-style control transfers. Its next and yield are the same swap from two sides. They alternate, and neither
// checks its caller.
type Slot struct {
	Next  func() (struct{}, bool)
	Yield func(struct{}) bool
	Odd   bool // which function makes the next swap, for any caller: Next if true, otherwise Yield
}

// Coro is a goroutine that runs only while control has been passed to it. The zero value stands for a goroutine that
// is already running, such as a worker's.
//
// Coroutines and slots are not tied. A transfer suspends the caller into the slot that the resumed coroutine leaves, so
// the occupants move between slots:
//
//	slot A   slot B   slot C      running
//	 a        b        c           w         three new coroutines and a worker
//	 w        b        c           a         w transfers to a
//	 w        a        c           b         a transfers to b
//	 b        a        c           w         b transfers to w
//
// At any time each slot has exactly one occupant. A coroutine that returns from its body resumes the current occupant
// of its birth slot; [Release] relies on this.
type Coro struct {
	birth Slot
	at    *Slot // the slot where it is suspended; meaningless while it runs
	tie         // whether a stand-in is suspended there instead
	order *Coro // its order when it is resumed at rest, or nil if there is work; see Release
}

// leave is the order of Release to a resting coroutine to return from its body. Any other order is the closer: the
// coroutine must pass control back to it, and so move into its slot.
var leave = new(Coro)

// Init makes c a new coroutine that runs body when control first reaches it. Body must call Begin, before anything
// else.
func (c *Coro) Init(body Body) {
	c.birth.Next, _ = iter.Pull(body)
	c.at = &c.birth
}

// Begin takes the argument of c's body.
func (c *Coro) Begin(yield func(struct{}) bool) {
	c.birth.Yield = yield
	c.tie.init()
}

// Transfer suspends the caller, which must be running as from, and resumes to. It returns when control is transferred
// to from.
func Transfer(from, to *Coro) {
	// Spec: FB-02 (a coroutine is on one goroutine's stack at a time)
	// Spec: FB-27 (a switch is one transfer of control)
	from.Via(from.Enter(to)).swap()
}

func (s *Slot) swap() {
	if s.Odd {
		s.Next()
	} else {
		s.Yield(struct{}{})
	}
}

// Enter is the first part of Transfer: it records that c is about to be suspended in the slot that to leaves. The
// caller then swaps by the slot that Via returns, as Transfer does. Hot paths write the swap out. The processor's stack
// of returns is another goroutine's after the swap, so each function between a task and its swap is one more return
// that the processor mispredicts, which takes ten nanoseconds. internal/archtest checks that all copies are the same
// (TestSwapsAreTheSame).
func (c *Coro) Enter(to *Coro) *Slot {
	s := to.at
	c.at = s
	s.Odd = !s.Odd
	return s
}

// Via is the middle part of Transfer, between Enter and the swap. It returns the slot by which c, the caller, must
// swap. That is s, unless c is locked to its thread. (It is not a part of Enter because the two together would not be
// inlined.)
func (c *Coro) Via(s *Slot) *Slot {
	if c.maybe() {
		return viaStandIn(s)
	}
	return s
}

func viaStandIn(s *Slot) *Slot {
	if !bound() {
		return s
	}
	return &Slot{Odd: true, Next: func() (v struct{}, ok bool) {
		standIn(s.swap)
		return v, true
	}}
}

// Rest is Transfer for a coroutine that has nothing more to do. It returns true if the coroutine must leave: its body
// must then return without another transfer. Until Rest returns false, c may be passed to Release.
func (c *Coro) Rest(to *Coro) bool {
	Transfer(c, to)
	return c.Leaving()
}

// Leaving carries out the orders of Release to a resting coroutine that was resumed, and reports whether it must leave.
// Rest calls it. A coroutine that was resumed by another's Goexit (see Release) never returned from Rest and must call
// Leaving itself.
func (c *Coro) Leaving() bool {
	for c.order != nil && c.order != leave {
		closer := c.order
		c.order = nil
		Transfer(c, closer)
	}
	return c.order == leave
}

// Release ends resting coroutines: each returns from its body, and its goroutine ends. Release returns those that it
// had to keep, still resting: a coroutine cannot leave while a coroutine that is not in the list occupies its birth
// slot.
//
// To end c, the closer swaps with it. If c sat in its own birth slot, c's exit resumes the closer. Otherwise c's exit
// resumes d, the occupant of c's birth slot, and that slot no longer exists; d moves into the closer's slot, which
// resumes the closer:
//
//	birth of c   slot S     running
//	 d            c          closer
//	 d            closer     c           the closer transfers to c, which returns
//	 gone         closer     d           d was resumed by the exit
//	              d          closer      d moves
//
// A coroutine whose thunk called runtime.Goexit ends in Goexit, which Pull passes on to the goroutine that the exit
// resumes. A coroutine survives that: it continues in a deferred call. The closer does not survive it, so it runs on a
// separate goroutine, and if that ends, another takes over.
func Release(cs []*Coro) (kept []*Coro) {
	// Spec: SH-09 (coroutines exit one after the other)
	// Spec: FB-26 (a coroutine after Goexit is tainted)
	sitters := make(map[*Slot]*Coro, len(cs)) // the slot of each coroutine in the list
	for _, c := range cs {
		sitters[c.at] = c
	}
	for i := 0; i < len(cs); {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var closer Coro
			for i < len(cs) {
				c := cs[i]
				i++
				d := sitters[&c.birth]
				if d == nil {
					kept = append(kept, c)
					continue
				}
				if d != c {
					d.order = &closer
				}
				c.order = leave
				Transfer(&closer, c)
				if d != c {
					sitters[d.at] = d
				}
			}
		}()
		<-done
	}
	return kept
}
