package coir

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// What other packages need to replace a device by a model while a simulation runs: to detect the simulation, to let the
// schedule decide what the device does, and to keep the device's state for the duration of a schedule. Package netio
// uses it to simulate its sockets. A model also uses the rest of the API: it waits with Cond, Event and Sleep, gets the
// time from Now, and uses an Alarm to act at a given time.
//
// Rejected: an interface that package sim implements and that a program passes to its packages. Connections are dialled
// deep inside code that has neither a *sim.Sim nor a context.

// Simulation is the simulation by package sim in which a fiber runs. It is for packages that give access to something
// outside of the process, such as a network, a disk or a database. In a simulation such a package uses a model instead.
// The program that uses the package need not change, and sim explores what the model may do:
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
// The model itself uses operations of this package: a [Cond] guards its state, and [Sleep] or an [Alarm] adds delays.
//
// Only fibers of the simulation may call the methods, and functions called by its clock or by a cancellation, such as
// [Watcher.Ended]. A call by a goroutine, by a fiber of another runtime, or after the end of the simulation panics.
type Simulation struct{ rt *Runtime }

// Simulated returns the simulation in which the calling fiber runs, or nil if there is none. Any context will do, as
// for all operations, because the calling fiber is found without it. Outside of a simulation, Simulated only checks a
// flag; if the process has run a simulation before, it also looks up the calling fiber.
//
// A function that the clock or a cancellation calls may run on a goroutine without a fiber. Simulated then returns the
// simulation of ctx, which may be, for example, a [Shield] that a fiber made and the model kept.
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

// check panics if the caller must not call the method now.
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

// Intn returns a number in [0, n). n must be positive. The schedule chooses the number. 0 should be the number that
// changes the least, because sim prefers it when it shrinks a failure.
//
//go:norace
func (s *Simulation) Intn(n int) int {
	s.check("Intn")
	if n <= 0 {
		panic("coir: Simulation.Intn(" + strconv.Itoa(n) + "): the argument must be positive")
	}
	race.Disable()
	i := s.rt.policy.Draw(n)
	race.Enable()
	return i
}

// Fault reports whether the named fault happens now. It returns false if sim.WithFaults does not include the name, or
// if s is nil. See the method Fault of sim.Sim. Begin the names with the name of the package, and list them in its
// documentation.
//
//go:norace
func (s *Simulation) Fault(name string) bool {
	if s == nil {
		return false
	}
	s.check("Fault")
	return s.rt.policy.Fault(name)
}

// State returns the value for key in this schedule. The first call in a schedule calls init to create it, so a model
// starts anew with each schedule. init must not call an operation of this package that may let other fibers run. Keys
// are compared like those of a context: use a type of your own. State panics if key is nil or cannot be compared.
//
// The call of init is ordered before the return of each call of State with that key.
func (s *Simulation) State(key any, init func() any) any {
	s.check("State")
	v, ok := s.state(key)
	if ok {
		race.Acquire(unsafe.Pointer(s))
		return v
	}
	// This check takes longer than the search, so it comes after the search, which never finds a key that cannot be
	// compared.
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
