// Package race tells the race detector what fibers do to each other.
//
// The scheduler's own locks, queues and hand-overs order every fiber with every other. If the detector saw them, it
// would find no race between fibers, ever. So coir's code runs with its synchronisation hidden (Disable, Enable), its
// functions are marked go:norace because hidden locks cannot explain their memory accesses, and the orderings that a
// program may rely on are told one by one: a spawn before its fiber, a fiber's end before whoever waited for it, a
// cancel before whoever saw it. Everything here is empty in an ordinary build.
//
// Exported functions, and those that they are split into, begin a hidden section and end it. What they call in between
// is hidden as a whole, and shows itself only for a call into code that is not coir's (EnterUser, LeaveUser). Acquire and
// Release do nothing in a hidden section, so that they stand outside of it.
//
// internal/archtest follows the calls through the source and checks this: see its file hidden.go.
package race
