//go:build race

package coro

import "github.com/coir-go/coir/internal/race"

// Fresh reports whether every thunk needs a new coroutine, made where the thunk is spawned.
//
// This is so in race builds. To the detector, two thunks that run on one goroutine one after the other are ordered, so
// it would miss their race. And a goroutine is ordered after the go statement that started it, which is right only if
// that statement runs where the thunk is spawned.
const Fresh = true

// Coro is a goroutine that runs only while control has been passed to it. The zero value stands for a goroutine that
// is already running, such as a worker's.
//
// Control is a token in a one-place channel, and the detector does not see it pass.
type Coro struct {
	token chan struct{}
	slot  Slot
}

// Init makes c a new coroutine that runs body when control first reaches it. Body must call Begin, before anything
// else.
//
//go:norace
func (c *Coro) Init(body Body) {
	c.token = make(chan struct{}, 1)
	go func() {
		race.Disable()
		<-c.token
		ForgetWait()
		race.Enable()
		body(nil)
	}()
}

// Begin takes the argument of c's body. Here it does nothing.
//
//go:norace
func (c *Coro) Begin(func(struct{}) bool) {}

// Transfer suspends the caller, which must be running as from, and resumes to. It returns when control is transferred
// to from.
//
//go:norace
func Transfer(from, to *Coro) {
	// Spec: FB-29 (the race detector sees fibers as goroutines)
	race.Disable()
	if from.token == nil {
		from.token = make(chan struct{}, 1)
	}
	to.token <- struct{}{}
	<-from.token
	ForgetWait()
	race.Enable()
}

// Rest passes control on for the last time, because here a coroutine is not reused. It returns true: the body must
// return.
//
//go:norace
func (c *Coro) Rest(to *Coro) bool {
	race.Disable()
	to.token <- struct{}{}
	race.Enable()
	return true
}

// Leaving reports whether the coroutine must leave. Here it always must, as soon as it rests.
//
//go:norace
func (c *Coro) Leaving() bool { return true }

// Release does nothing, because here a coroutine ends when it rests.
//
//go:norace
func Release(cs []*Coro) (kept []*Coro) { return nil }

// Bound reports whether the coroutine must not be reused because it is locked to its thread. Here no coroutine is
// reused, and the thread of a goroutine that ends locked ends with it.
//
//go:norace
func (c *Coro) Bound() bool { return false }
