package coro

// Activity is what a goroutine does, as far as the runtime's record of it says. Reading it stops nothing.
type Activity uint8

// The activities.
const (
	Unknown Activity = iota
	Running          // or ready to run
	InSyscall
	InIOWait // in a wait of Go's poller, such as to read from the network
	InWait   // in another wait, such as on a native channel
)
