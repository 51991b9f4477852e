//go:build !race && coirtrampoline

package coro

import "iter"

// Fresh reports whether every thunk needs a new coroutine, made where the thunk is spawned. See handoff.go.
const Fresh = false

// Coro is a goroutine that runs only while control has been passed to it. The zero value stands for a goroutine that
// is already running, such as a worker's.
//
// A coroutine is only ever resumed by next and only ever suspends by yield, each called from its own side. So control
// passes from one coroutine to another through the plain goroutine that called next, the base. Its target tells the
// base which coroutine to resume instead.
type Coro struct {
	next    func() (struct{}, bool) // nil for a plain goroutine
	yield   func(struct{}) bool
	base    *Coro // the goroutine that called next
	target  *Coro // of a base: which to resume; nil if the coroutine has left
	leaving bool
	slot    Slot
	tie
}

// Init makes c a new coroutine that runs body when control first reaches it. Body must call Begin, before anything
// else.
func (c *Coro) Init(body Body) { c.next, _ = iter.Pull(body) }

// Begin takes the argument of c's body.
func (c *Coro) Begin(yield func(struct{}) bool) {
	c.yield = yield
	c.tie.init()
}

// Transfer suspends the caller, which must be running as from, and resumes to. It returns when control is transferred
// to from.
func Transfer(from, to *Coro) {
	// Spec: FB-28 (the second switcher passes the same tests)
	if from.next != nil {
		from.base.target = to
		if from.Bound() {
			standIn(func() { from.yield(struct{}{}) })
		} else {
			from.yield(struct{}{})
		}
		return
	}
	for to != nil && to != from {
		to.base = from
		from.target = nil
		to.next()
		to = from.target
	}
}

// Rest is Transfer for a coroutine that has nothing more to do. It returns true if the coroutine must leave: its body
// must then return without another transfer. Until Rest returns false, c may be passed to Release.
func (c *Coro) Rest(to *Coro) bool {
	Transfer(c, to)
	return c.leaving
}

// Leaving reports whether the coroutine must leave.
func (c *Coro) Leaving() bool { return c.leaving }

// Release ends resting coroutines: each returns from its body, and its goroutine ends. Release returns those it had to
// keep: here, none. A coroutine whose thunk called runtime.Goexit passes that on to the goroutine that resumes it,
// which ends; then another takes over.
func Release(cs []*Coro) (kept []*Coro) {
	for i := 0; i < len(cs); {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var closer Coro
			for i < len(cs) {
				c := cs[i]
				i++
				c.leaving = true
				Transfer(&closer, c)
			}
		}()
		<-done
	}
	return nil
}
