package coro

// Wait is how a goroutine has waited outside this module.
type Wait uint8

// The waits. Waits for a mutex, for memory and for the garbage collector are not reported: they may happen anywhere.
const (
	NotWaited Wait = iota
	Slept          // in time.Sleep
	Received       // from a channel of Go
	Sent           // on a channel of Go
	Selected       // in a select of Go
	Grouped        // in the Wait of a sync.WaitGroup
	Signalled      // in the Wait of a sync.Cond
	Polled         // for the network, or another file that the system polls
)
