//go:build unix

package signal

import "syscall"

func init() { syscall.CoirSignal = coirSignal }

// coirSignal delivers a signal that a schedule sends to its own process. As in the kernel, that happens at any time
// after it was sent. It reports false if no channel is notified of the signal.
func coirSignal(sig int) bool {
	handlers.Lock()
	wanted := sig >= 0 && sig < numSig && handlers.ref[sig] > 0
	handlers.Unlock()
	if wanted {
		go process(syscall.Signal(sig))
	}
	return wanted
}
