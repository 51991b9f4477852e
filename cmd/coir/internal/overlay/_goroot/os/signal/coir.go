//go:build unix

package signal

import (
	"sync"
	"syscall"
)

func init() { syscall.CoirSignal = coirSignal }

// coirSent counts the signals of a schedule that were sent to its own process and are not delivered.
var coirSent struct {
	run uint32
	all *sync.WaitGroup
}

// coirSignal delivers a signal that a schedule sends to its own process. As in the kernel, that happens at any time
// after it was sent. It reports false if no channel is notified of the signal.
func coirSignal(sig int) bool {
	handlers.Lock()
	wanted := sig >= 0 && sig < numSig && handlers.ref[sig] > 0
	if run := syscall.CoirRun(); wanted && run != coirSent.run {
		coirSent.run, coirSent.all = run, new(sync.WaitGroup)
	}
	all := coirSent.all
	handlers.Unlock()
	if wanted {
		all.Go(func() { process(syscall.Signal(sig)) })
	}
	return wanted
}

// coirDelivered waits for the signals that were sent. Stop calls it: no signal is lost that came before.
func coirDelivered() {
	handlers.Lock()
	all := coirSent.all
	if syscall.CoirRun() != coirSent.run {
		all = nil
	}
	handlers.Unlock()
	if all != nil {
		all.Wait()
	}
}
