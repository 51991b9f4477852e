//go:build unix

package signal

import (
	"sync"
	"syscall"
)

func init() { syscall.CoirSignal = coirSignal }

// coirSent counts the signals that schedule run has sent to its own process and that are not yet delivered.
var coirSent struct {
	run uint32
	all *sync.WaitGroup
}

// coirSignal delivers a signal that a schedule sends to its own process. Like the kernel, it may do so at any time
// after the signal is sent. It returns false if the program has not asked to be notified of the signal.
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

// coirDelivered waits until all signals that were sent are delivered. Stop calls it, so that earlier signals are not
// lost.
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
