package runtime

import (
	"internal/coir"
	"unsafe"
)

// This file is for goroutines that wait for sockets in memory, which package syscall implements. They wait in the
// poller, as for sockets of the kernel, so package internal/poll treats both alike. But only goroutines and the clock
// of the schedule end such a wait, and its deadlines are on the virtual clock.
//
// A descriptor of the poller (pollDesc) is not garbage collected, and its timers may be in the timer heap of a bubble.
// So a descriptor that was for a socket in memory is reused only for such sockets. In the same schedule it is reused
// only if its timers are in no heap. In a later schedule its timers are cleared first, which is safe because the heap
// of an earlier bubble is no longer used.

// Numbers from coirFirstFD up to coirLastFD are descriptors in memory. Package syscall defines the same numbers.
const coirFirstFD, coirLastFD = 1 << 24, 1 << 30

var coirPolls struct {
	all  [1 << 16]*pollDesc // those of the running schedule, by file descriptor modulo the length
	free *pollDesc
	old  *pollDesc // closed in schedule run, with timers in the heap of its bubble
	run  uint32    // the schedule that old is for
}

//go:linkname syscall_coirPoint syscall.coirPoint
func syscall_coirPoint(op uint8, p unsafe.Pointer) {
	if gp := getg(); gp.coir.again {
		gp.coir.again = false
		return
	}
	coirPointOf(op, p, coir.Keep)
}

//go:linkname syscall_coirPointBefore syscall.coirPointBefore
func syscall_coirPointBefore(op uint8, p unsafe.Pointer) {
	coirPointOf(op, p, coir.Keep)
	getg().coir.again = true
}

//go:linkname syscall_coirRun syscall.coirRun
func syscall_coirRun() uint32 {
	gp, s := getg(), &coirSched
	if coirIn(gp) && s.memory || gp == fing && s.sweeping {
		return s.run
	}
	return 0
}

//go:linkname syscall_coirForeign syscall.coirForeign
func syscall_coirForeign() bool {
	gp := getg()
	return !coirIn(gp) && gp != fing // finalizers have no effect, except during coirSweep
}

//go:linkname syscall_coirOnKernel syscall.coirOnKernel
func syscall_coirOnKernel(why string) {
	if s := &coirSched; s.out.NeedsKernel == "" {
		s.out.NeedsKernel = why
	}
	gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1) // forever
}

//go:linkname http_coirRun net/http.coirRun
func http_coirRun() uint32 { return syscall_coirRun() }

//go:linkname syscall_coirNetReady syscall.coirNetReady
func syscall_coirNetReady(fd int, mode int32) {
	pd := coirPolls.all[fd%len(coirPolls.all)]
	if pd == nil || pd.fd != uintptr(fd) || pd.coirStale() {
		return
	}
	delta := int32(0)
	if gp := netpollunblock(pd, mode, true, &delta); gp != nil {
		netpollgoready(gp, 3)
	}
	netpollAdjustWaiters(delta)
}

// coirPollAlloc returns a descriptor of the poller for fd.
func coirPollAlloc(fd uintptr) *pollDesc {
	if !coir.On || fd < coirFirstFD || fd >= coirLastFD {
		return pollcache.alloc()
	}
	s := &coirPolls
	if s.run != coirSched.run {
		s.run = coirSched.run
		for s.old != nil {
			pd := s.old
			s.old = pd.link
			pd.rt, pd.wt = timer{}, timer{}
			pd.rt.init(nil, nil)
			pd.wt.init(nil, nil)
			pd.link, s.free = s.free, pd
		}
	}
	pd := s.free
	if pd != nil {
		s.free = pd.link
	} else {
		pd = pollcache.alloc()
	}
	pd.coir = coirSched.run
	pd.rt.isFake, pd.wt.isFake = true, true
	s.all[fd%uintptr(len(s.all))] = pd
	return pd
}

// coirPollOpen registers a descriptor with the kernel's poller, unless it is in memory.
func coirPollOpen(fd uintptr, pd *pollDesc) int {
	if pd.coir != 0 {
		return 0
	}
	return int(netpollopen(fd, pd))
}

// coirPollClose frees a descriptor of the poller if it was for a socket in memory, and reports whether it was.
func coirPollClose(pd *pollDesc) bool {
	if pd.coir == 0 {
		return false
	}
	s := &coirPolls
	switch {
	case pd.coirStale(): // a finalizer closed it: a descriptor of an earlier schedule is not reused
	case pd.rt.state&timerHeaped != 0 || pd.wt.state&timerHeaped != 0:
		pd.link, s.old = s.old, pd
	default:
		pd.link, s.free = s.free, pd
	}
	return true
}

// coirStale reports whether a descriptor was for a socket of an earlier schedule.
func (pd *pollDesc) coirStale() bool { return pd.coir != 0 && (!coir.On || pd.coir != coirSched.run) }

// coirPollNow returns the present time on the clock of the descriptor's deadlines.
func coirPollNow(pd *pollDesc) int64 {
	if bubble := getg().bubble; pd.coir != 0 && bubble != nil {
		return bubble.now
	}
	return nanotime()
}
