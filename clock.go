package coir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
)

// Clock is a virtual clock, which advances only when the program advances it. A runtime made with [WithClock] uses it:
// sleeps, timeouts and deadlines of its fibers end when the clock has passed them. Any number of goroutines, fibers and
// runtimes may use a clock at the same time. Calls that advance it run one after the other.
type Clock struct {
	// Spec: TM-15 (time comes in through Clock alone)

	v     *clock.Virtual
	turn  sync.Mutex     // held while the clock is being moved
	mover atomic.Uintptr // the goroutine that moves the clock; 0 if none
}

// NewClock returns a clock that shows 0.
func NewClock() *Clock { return &Clock{v: clock.NewVirtual()} }

// Now returns how far the clock has been advanced since it was made.
func (c *Clock) Now() time.Duration { return time.Duration(c.v.Now()) }

// String returns a short description of the clock: the time that it shows.
func (c *Clock) String() string { return "coir.Clock(" + c.Now().String() + ")" }

// Len returns the number of waits with a deadline on the clock.
func (c *Clock) Len() int {
	race.Disable()
	defer race.Enable()
	return c.v.Len()
}

// Advance advances the clock by d. Waits that fall due on the way end in the order of their deadlines. If another
// goroutine is moving the clock, Advance waits until that goroutine has finished.
func (c *Clock) Advance(d time.Duration) {
	race.Disable()
	defer race.Enable()
	c.move()
	defer c.moved()
	c.v.Advance(d)
}

// AdvanceToNext advances the clock to the earliest deadline of a wait, and ends all waits with that deadline. It
// reports whether there was such a wait. A wait for the same time that starts during the call ends at the next call.
func (c *Clock) AdvanceToNext() bool {
	race.Disable()
	defer race.Enable()
	c.move()
	defer c.moved()
	return c.v.AdvanceToNext()
}

// move acquires the turn to move the clock, and moved releases it. Moving the clock may wake a fiber, and the wake may
// call an observer. If that observer moved the clock, it would wait for itself, so move panics instead.
//
//go:norace
func (c *Clock) move() {
	me := coro.G()
	if c.mover.Load() == me {
		panic("coir: the clock is being moved already, by this goroutine: an Observer must not move it")
	}
	c.turn.Lock()
	c.mover.Store(me)
}

//go:norace
func (c *Clock) moved() {
	c.mover.Store(0)
	c.turn.Unlock()
}

// WithClock makes the runtime use the virtual clock c for the waits of its fibers.
func WithClock(c *Clock) RuntimeOption {
	return func(s *settings) { s.Clock = c.v }
}
