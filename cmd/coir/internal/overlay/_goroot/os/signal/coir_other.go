//go:build !unix

package signal

// coirDelivered does nothing, because the kernel delivers all signals on this system.
func coirDelivered() {}
