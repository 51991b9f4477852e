package coir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
)

// Clock is a time that only moves when it is told to. A runtime made [WithClock] waits by it: sleeps, timeouts and
// deadlines of its fibers end when the clock has been moved past them. Any number of goroutines and fibers may use it
// at once, and any number of runtimes may wait by it: those who move it do so one after the other.
type Clock struct {
	// Spec: TM-15 (time comes in through Clock alone)

	v     *clock.Virtual
	turn  sync.Mutex     // of whoever moves it
	mover atomic.Uintptr // the goroutine that does; 0 if none
}

// NewClock makes a clock that stands at 0.
func NewClock() *Clock { return &Clock{v: clock.NewVirtual()} }

// Now returns how far the clock has been moved.
func (c *Clock) Now() time.Duration { return time.Duration(c.v.Now()) }

// String describes the clock in a few words: what it says.
func (c *Clock) String() string { return "coir.Clock(" + c.Now().String() + ")" }

// Len returns how many waits have a time on the clock.
func (c *Clock) Len() int {
	race.Disable()
	defer race.Enable()
	return c.v.Len()
}

// Advance moves the clock by d. What falls due on the way ends its wait, in order. If others are moving the clock it
// waits until they are done.
func (c *Clock) Advance(d time.Duration) {
	race.Disable()
	defer race.Enable()
	c.move()
	defer c.moved()
	c.v.Advance(d)
}

// AdvanceToNext moves the clock to the earliest time that something waits for, as Advance does. It reports whether
// there was one.
func (c *Clock) AdvanceToNext() bool {
	race.Disable()
	defer race.Enable()
	c.move()
	defer c.moved()
	return c.v.AdvanceToNext()
}

// move takes the turn to move the clock; moved gives it back. What the clock wakes on its way may call back, into an
// observer; one that moves the clock again would wait for itself.
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

// WithClock has the runtime's fibers wait by c.
func WithClock(c *Clock) RuntimeOption {
	return func(s *settings) { s.Clock = c.v }
}
