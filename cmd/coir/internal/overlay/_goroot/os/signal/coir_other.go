//go:build !unix

package signal

// coirDelivered does nothing: signals are not in memory on this system.
func coirDelivered() {}
