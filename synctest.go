package coir

import (
	"context"
	"sync"
	"unsafe"
	"weak"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
)

// What coir does in a bubble of testing/synctest.
//
// A bubble must be left as it was entered: goroutines, channels and timers that were made in it cannot be used outside,
// and those of the world outside do not run by its time. So a runtime belongs to the place where it was made, and so do
// the nurseries and scopes on it:
//
//   - Run, and time limits of goroutines, use the default runtime of the bubble that they are called in.
//   - A runtime is used from where it was made. Runtime.Run, Runtime.Close and Nursery.Go from elsewhere panic.
//   - Channels, and whatever else is waited for, are nothing but memory, and belong nowhere. But a fiber or goroutine
//     that waits in a bubble must be woken from inside it: its waker panics otherwise. One that waits outside may be
//     woken from anywhere.
//   - A context that coir has made outside cannot be asked for its Done channel in a bubble first, because the channel
//     would belong to the bubble; nor be cancelled from outside if it was made in a bubble and its channel was asked
//     for.
//
// To break a rule is a panic, with a sentence, instead of the fatal error that the Go runtime has for it.
//
// Roads not taken: channels that belong to a bubble, as Go's do. Then a goroutine that waits on a channel from outside
// would not be durably blocked, and time in the bubble would stand still: a channel in a package variable would hang
// the test. And every operation would have to look.

// bubbles lists the default runtimes of bubbles. A bubble does not tell when it ends, so the list holds them weakly: a
// runtime that is in use is referred to by what runs on it, or by what is armed on its clock; any other may be made
// anew.
var bubbles struct {
	mu   sync.Mutex
	list *bubbleEntry
}

type bubbleEntry struct {
	home bubble.ID
	rt   weak.Pointer[Runtime]
	next *bubbleEntry
}

// defaultRuntime is the default runtime of the place where it is called.
func defaultRuntime() *Runtime {
	if home := bubble.Here(); home != 0 {
		return bubbleRuntime(home)
	}
	return outside()
}

// bubbleRuntime is the default runtime of the bubble that the caller is in. To share it orders nothing.
//
//go:norace
func bubbleRuntime(home bubble.ID) *Runtime {
	race.Disable()
	bubbles.mu.Lock()
	rt := findBubble(home)
	if rt == nil {
		rt = makeAlone()
		bubbles.list = &bubbleEntry{home, weak.Make(rt), bubbles.list}
	}
	bubbles.mu.Unlock()
	race.Enable()
	race.Acquire(unsafe.Pointer(rt.s))
	return rt
}

// findBubble looks a runtime up, and drops the entries of those that are gone. The caller holds the lock.
//
//go:norace
func findBubble(home bubble.ID) (found *Runtime) {
	for p := &bubbles.list; *p != nil; {
		e := *p
		rt := e.rt.Value()
		if rt == nil {
			*p = e.next
			continue
		}
		if e.home == home {
			found = rt
		}
		p = &e.next
	}
	return found
}

// makeAlone makes a runtime. In a race build it does so in a goroutine, which is ordered after nothing because it is
// started in a hidden section: those who use the runtime are ordered after its making, and not after the one who came
// first.
//
//go:norace
func makeAlone() *Runtime {
	if !race.Enabled {
		return NewRuntime()
	}
	made := make(chan *Runtime)
	go func() {
		rt := NewRuntime()
		race.Release(unsafe.Pointer(rt.s))
		made <- rt
	}()
	return <-made
}

// abroad reports whether the caller is in another bubble than the one that the runtime was made in.
//
//go:norace
func (rt *Runtime) abroad() bool { return bubble.Abroad(rt.s.Home()) }

// bindDone makes the Done channel of a scope, where the scope belongs. Package context would make it when and where it
// is first asked for.
//
//go:norace
func (sc *scope) bindDone(std context.Context) {
	if bubble.Possible {
		sc.checkDone()
		std.Done()
	}
}

// checkDone panics if the scope has no Done channel yet and none can be made where the caller is.
//
//go:norace
func (sc *scope) checkDone() {
	if rt := sc.rt; sc.cold().std.Load() == nil && rt.abroad() {
		panic("coir: a context that was made " + rt.s.Home().String() + " has no Done channel yet and was used " +
			bubble.Here().String() + ": use a context that was made there, such as t.Context(), " +
			"or call Done once where the context was made")
	}
}

// checkCancel panics if the scope's Done channel cannot be closed from where the caller is.
//
//go:norace
func (sc *scope) checkCancel() {
	if home := sc.rt.s.Home(); home != 0 && sc.rt.abroad() {
		panic("coir: a context that was made " + home.String() + " was cancelled by code that runs " +
			bubble.Here().String() + ", which Go does not allow: cancel it inside the bubble, with defer cancel()")
	}
}
