package coir

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// What other packages need to replace a device by a model while a simulation runs: to know that there is a simulation,
// to let the schedule decide what the device does, and to keep the device's state for the duration of a schedule.
// Package netio simulates its sockets with it. The rest of the API serves a model too: it waits with Cond, Event and
// Sleep, gets the time from Now, and uses an Alarm to act at a given time.
//
// Rejected: an interface that package sim implements and a program hands to its packages. A connection is dialled deep
// inside code that has neither a *sim.Sim nor a context.

// Simulation is the simulation by package sim that a fiber runs in. It is for packages that give access to something
// outside of the process, such as a network, a disk or a database: in a simulation they use a model in its place. The
// program needs no change, and sim explores what the model may do:
//
//	func (d *Disk) Write(ctx context.Context, block []byte) error {
//		s := coir.Simulated(ctx)
//		if s == nil {
//			return d.write(block) // the real one
//		}
//		if s.Fault("disk full") {
//			return syscall.ENOSPC
//		}
//		...
//	}
//
// The model itself uses operations of this package: a [Cond] guards it, [Sleep] or an [Alarm] make it slow.
//
// Only fibers of the simulation may call the methods, and functions that its clock or a cancel calls, such as
// [Watcher.Ended]. A call by a goroutine, by a fiber of another runtime, or after the end of the simulation panics.
type Simulation struct{ rt *Runtime }

// Simulated returns the simulation that the calling fiber runs in, or nil if there is none. Any context will do, as for
// all operations: the calling fiber is found without it. Outside of a simulation Simulated checks a flag, and if the
// process has run a simulation before, finds the calling fiber.
//
// A function that the clock or a cancel calls may run in no fiber. There Simulated returns the simulation of ctx, for
// example of a [Shield] that a fiber made and the model kept.
//
//go:norace
func Simulated(ctx context.Context) *Simulation {
	if simulating.Load() == 0 {
		return nil
	}
	return simulated(ctx)
}

//go:noinline
//go:norace
func simulated(ctx context.Context) *Simulation {
	f, _ := ownFiber(ctx)
	if f == nil {
		f = currentFiber()
	}
	if f != nil {
		return f.nursery.rt.simulation
	}
	if by := resolve(ctx); by.sc != nil && by.sc.rt.quiet.Load() > 0 {
		return by.sc.rt.simulation
	}
	return nil
}

// check panics if the caller must not call the method.
//
//go:norace
func (s *Simulation) check(method string) {
	if s == nil {
		panic("coir: Simulation." + method + " of a nil *Simulation: Simulated returns nil outside of a simulation, where " +
			"the real device is used")
	}
	if f := currentFiber(); (f == nil || f.nursery.rt != s.rt) && s.rt.quiet.Load() == 0 {
		panic("coir: Simulation." + method + " was called by a goroutine or fiber that is not in the simulation, or the " +
			"simulation has ended: call coir.Simulated in each fiber, and do not keep what it returns")
	}
}

// Intn returns a number in [0, n), and n must be positive. The number is a decision of the schedule. 0 should be the
// number that changes least: sim prefers it when it shrinks a failure.
//
//go:norace
func (s *Simulation) Intn(n int) int {
	s.check("Intn")
	if n <= 0 {
		panic("coir: Simulation.Intn(" + strconv.Itoa(n) + "): there is no number below that, from 0")
	}
	race.Disable()
	i := s.rt.policy.Draw(n)
	race.Enable()
	return i
}

// Fault reports whether the named fault happens now. It returns false if sim.WithFaults does not name the fault, or if
// s is nil. See the method of sim.Sim. Begin the names with that of the package, and list them in its documentation.
//
//go:norace
func (s *Simulation) Fault(name string) bool {
	if s == nil {
		return false
	}
	s.check("Fault")
	return s.rt.policy.Fault(name)
}

// State returns the value of key in this schedule. The first call of a schedule calls init to create it; init must call
// no operation of this package that may let other fibers run. So a model starts afresh with each schedule. Keys are
// compared like those of a context: use a type of your own. State panics if key is nil or cannot be compared.
//
// The call of init is ordered before the return of each call with that key.
func (s *Simulation) State(key any, init func() any) any {
	s.check("State")
	v, ok := s.state(key)
	if ok {
		race.Acquire(unsafe.Pointer(s))
		return v
	}
	// This check takes longer than the search, so it comes after it: a key that cannot be compared is never found.
	if key == nil || !reflect.ValueOf(key).Comparable() {
		panic(fmt.Sprintf("coir: Simulation.State with a key of type %T: a key can be compared and is not nil; use a "+
			"value of a type of your own", key))
	}
	v = init()
	race.Release(unsafe.Pointer(s))
	s.setState(key, v)
	return v
}

//go:norace
func (s *Simulation) state(key any) (any, bool) {
	race.Disable()
	v, ok := s.rt.policy.State(key)
	race.Enable()
	return v, ok
}

//go:norace
func (s *Simulation) setState(key, v any) {
	race.Disable()
	s.rt.policy.SetState(key, v)
	race.Enable()
}
