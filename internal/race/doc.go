// Package race tells the race detector what fibers do to each other.
//
// The scheduler's own locks, queues and hand-overs order every fiber with every other. If the detector saw them, it
// would never find a race between fibers. So coir's code runs with its synchronisation hidden (Disable, Enable), its
// functions are marked go:norace because hidden locks cannot explain their memory accesses, and coir reports one by one
// the orderings that a program may rely on: a spawn before its fiber, a fiber's end before the return of those that
// waited for it, a cancel before the operations that saw it. In an ordinary build every function here is empty.
//
// Exported functions, and those that they are split into, begin and end a hidden section. All the functions that they
// call in between are hidden, except for calls into code that is not coir's (EnterUser, LeaveUser). Acquire and Release
// do nothing in a hidden section, so they are called outside it.
//
// internal/archtest follows the calls through the source and checks this: see hidden.go there.
package race
