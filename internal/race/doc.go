// Package race tells the race detector what fibers do to each other.
//
// The scheduler's own locks, queues and hand-overs order every fiber with every other. If the detector saw them, it
// would find no race between fibers, ever. So coir's code runs with its synchronisation hidden (Disable, Enable), its
// functions are marked go:norace because hidden locks cannot explain their memory accesses, and the orderings that a
// program may rely on are told one by one: a spawn before its fiber, a fiber's end before whoever waited for it, a
// cancel before whoever saw it. Everything here is empty in an ordinary build.
package race
