package overlay

// An edit replaces text of a file of the standard library. The old text must be there exactly as often as expected, or
// the Go release is not supported.
type edit struct {
	file     string
	why      string
	old, new string
	all      bool // every occurrence, of which there is at least one
	first    bool // the first of several
}

// before returns an edit that calls a point at the head of a function.
func before(file, head, op, object string) edit {
	return edit{
		file: file, why: "a point before the operation",
		old: head + "\n", new: head + "\n\tif coir.On {\n\t\tcoirPoint(coir." + op + ", unsafe.Pointer(" + object + "))\n\t}\n",
	}
}

// beforeAt is before for operations that are points if the caller is not in the standard library.
func beforeAt(file, head, when, op, object string) edit {
	return edit{
		file: file, why: "a point before the operation",
		old: head + "\n", new: head + "\n\tif coir." + when + " {\n\t\tcoirPointAt(coir." + op + ", unsafe.Pointer(" + object +
			"), sys.GetCallerPC())\n\t}\n",
	}
}

// chose returns an edit that records whether a select with one case and a default took the case.
func chose(head, call, results, op string) edit {
	return edit{
		file: "runtime/chan.go", why: "reports say what a select took",
		old: "func " + head + " {\n\treturn " + call + "\n}\n",
		new: "func " + head + " {\n\t" + results + " = " + call + "\n\tif coir.On {\n\t\tk := -1\n\t\tif selected {\n" +
			"\t\t\tk = 0\n\t\t}\n\t\tcoirChose(coir." + op + ", c, k)\n\t}\n\treturn\n}\n",
	}
}

// imports returns an edit that adds an import to a file.
func imports(file, path string) edit {
	return edit{file: file, why: "for the other edits", first: true, old: "import (\n", new: "import (\n\t\"" + path + "\"\n"}
}

// point declares the runtime's coirPoint in a package. Its object does not escape: otherwise each mutex would be on the
// heap.
const point = `
//go:linkname coirPoint
//go:noescape
func coirPoint(op uint8, p unsafe.Pointer)
`

var edits = []edit{
	// Goroutines that become runnable.
	imports("runtime/proc.go", "internal/coir"),
	{
		file: "runtime/proc.go", why: "a goroutine of the schedule waits for its turn, and not in the runtime's queues",
		old: "\trunqput(mp.p.ptr(), gp, next)\n\twakep()\n\treleasem(mp)\n}",
		new: "\tif !coir.On || !coirReady(gp) {\n\t\trunqput(mp.p.ptr(), gp, next)\n\t\twakep()\n\t}\n\treleasem(mp)\n}",
	},
	{
		file: "runtime/proc.go", why: "the same for a new goroutine; a point after the go statement",
		old: "\t\tpp := getg().m.p.ptr()\n\t\trunqput(pp, newg, true)\n\n\t\tif mainStarted {\n\t\t\twakep()\n\t\t}\n\t})\n",
		new: "\t\tif coir.On && coirReady(newg) {\n\t\t\treturn\n\t\t}\n" +
			"\t\tpp := getg().m.p.ptr()\n\t\trunqput(pp, newg, true)\n\n\t\tif mainStarted {\n\t\t\twakep()\n\t\t}\n\t})\n" +
			"\tif coir.On {\n\t\tcoirPoint(coir.OpGo, nil)\n\t}\n",
	},
	{
		file: "runtime/proc.go", why: "goroutines have numbers that are the same in each process",
		old: "\t\tnewg.bubble = callergp.bubble\n",
		new: "\t\tnewg.bubble = callergp.bubble\n\t\tcoirBorn(newg, callergp, callerpc)\n",
	},
	{
		file: "runtime/proc.go", why: "the network has woken them",
		old: "\tvar tail *g\n\ttrace := traceAcquire()\n\tfor gp := glist.head.ptr(); gp != nil; gp = gp.schedlink.ptr() {\n",
		new: "\tif coir.On {\n\t\tcoirInject(glist)\n\t\tif glist.empty() {\n\t\t\treturn\n\t\t}\n\t}\n" +
			"\tvar tail *g\n\ttrace := traceAcquire()\n\tfor gp := glist.head.ptr(); gp != nil; gp = gp.schedlink.ptr() {\n",
	},

	// Goroutines that stop running.
	{
		file: "runtime/proc.go", why: "the reason of a wait, before another goroutine can end it",
		old: "\tdropg()\n\n\tif fn := mp.waitunlockf; fn != nil {\n",
		new: "\tdropg()\n\treason := gp.waitreason\n\n\tif fn := mp.waitunlockf; fn != nil {\n",
	},
	{
		file: "runtime/proc.go", why: "a goroutine that waits passes the turn on, before its bubble may be idle",
		old: "\tif bubble != nil {\n\t\tbubble.decActive()\n\t}\n\n\tschedule()\n}",
		new: "\tif bubble != nil {\n\t\tif coir.On && coirGivesUpTurn(reason) {\n\t\t\tcoirLeave(gp, reason, 1)\n\t\t}\n" +
			"\t\tbubble.decActive()\n\t}\n\n\tschedule()\n}",
	},
	{
		file: "runtime/proc.go", why: "a goroutine that ends passes the turn on",
		old: "\tgdestroy(gp)\n\tschedule()\n}",
		new: "\tcoirEnds := coir.On && gp.bubble != nil\n\tgdestroy(gp)\n" +
			"\tif coirEnds {\n\t\tcoirLeave(gp, waitReasonZero, 2)\n\t}\n\tschedule()\n}",
	},
	{
		file: "runtime/proc.go", why: "the exported function alone: the collector calls it when it likes",
		old: "func Gosched() {\n",
		new: "func Gosched() {\n\tif coir.On && coirGosched() {\n\t\treturn\n\t}\n",
	},
	{
		file: "runtime/proc.go", why: "the turn may have been taken during a system call",
		old: "\t\t\t// Scheduling of this goroutine is disabled.\n\t\t\tGosched()\n\t\t}\n",
		new: "\t\t\t// Scheduling of this goroutine is disabled.\n\t\t\tmcall(gosched_m)\n\t\t}\n\t\tcoirExitSyscall(gp)\n",
	},
	{
		file: "runtime/proc.go", why: "the same on the slow path",
		old: "\tgp.m.p.ptr().syscalltick++\n\tgp.throwsplit = false\n}",
		new: "\tgp.m.p.ptr().syscalltick++\n\tgp.throwsplit = false\n\tcoirExitSyscall(gp)\n}",
	},
	{
		file: "runtime/proc.go", why: "a mutex spins by real time",
		old: "func internal_sync_runtime_canSpin(i int) bool {\n",
		new: "func internal_sync_runtime_canSpin(i int) bool {\n\tif coir.On {\n\t\treturn false\n\t}\n",
	},
	imports("runtime/coro.go", "internal/coir"),
	{
		file: "runtime/coro.go", why: "gp is nil below if it ends",
		old: "\texit := gp.coroexit\n", new: "\texit := gp.coroexit\n\tfrom := gp\n",
	},
	{
		file: "runtime/coro.go", why: "a coroutine takes the turn along",
		old: "\tsetGNoWB(&mp.curg, gnext)\n",
		new: "\tsetGNoWB(&mp.curg, gnext)\n\tif coir.On && bubble != nil {\n\t\tcoirSwap(from, gnext, exit)\n\t}\n",
	},
	imports("runtime/panic.go", "internal/coir"),
	{
		file: "runtime/panic.go", why: "a panic ends the schedule, and not the process",
		old: "\tpreprintpanics(&p)\n\n\tfatalpanic(&p) ",
		new: "\tif coir.On {\n\t\tcoirPanic(&p)\n\t}\n\tpreprintpanics(&p)\n\n\tfatalpanic(&p) ",
	},

	// The collector, which runs at any time.
	imports("runtime/mgc.go", "internal/coir"),
	{
		file: "runtime/mgc.go", why: "not a point", old: "Gosched()\n", new: "mcall(gosched_m)\n", all: true,
	},
	{file: "runtime/mgcmark.go", why: "not a point", old: "Gosched()\n", new: "mcall(gosched_m)\n", all: true},
	{file: "runtime/mfinal.go", why: "not a point", old: "Gosched()\n", new: "mcall(gosched_m)\n", all: true},
	{file: "runtime/mcleanup.go", why: "not a point", old: "Gosched()\n", new: "mcall(gosched_m)\n", all: true},
	{
		file: "runtime/mgc.go", why: "runtime.GC in a test has run the finalizers and cleanups when it returns",
		old: "\t\tmProf_PostSweep()\n\t}\n\treleasem(mp)\n}\n",
		new: "\t\tmProf_PostSweep()\n\t}\n\treleasem(mp)\n\tif coir.On && getg().bubble != nil {\n" +
			"\t\tblockUntilEmptyFinalizerQueue(100e6)\n\t\tgcCleanups.blockUntilEmpty(100e6)\n\t}\n}\n",
	},

	// The bubble.
	imports("runtime/synctest.go", "internal/coir"),
	{
		file: "runtime/synctest.go", why: "a test may compare its time with that of files and certificates",
		old: "const synctestBaseTime = 946684800000000000 // midnight UTC 2000-01-01\n\tbubble.now = synctestBaseTime\n",
		new: "const synctestBaseTime = 946684800000000000 // midnight UTC 2000-01-01\n\tbubble.now = synctestBaseTime\n" +
			"\tif coir.On {\n\t\tbubble.now = coirBaseTime\n\t}\n",
	},
	{
		file: "runtime/synctest.go", why: "the first goroutine of a schedule",
		old: "\t\tpp := getg().m.p.ptr()\n\t\trunqput(pp, bubble.main, true)\n\t\twakep()",
		new: "\t\tif !coir.On || !coirReady(bubble.main) {\n\t\t\tpp := getg().m.p.ptr()\n" +
			"\t\t\trunqput(pp, bubble.main, true)\n\t\t\twakep()\n\t\t}",
	},
	{
		file: "runtime/synctest.go", why: "a signal, or a goroutine outside, may be about to wake them",
		old: "\t\tlock(&bubble.mu)\n\t\tif bubble.active < 0 {\n",
		new: "\t\tif coir.On && coirOutside(bubble.timers.wakeTime() == 0) {\n" +
			"\t\t\tlock(&bubble.mu)\n\t\t\tcontinue\n\t\t}\n" +
			"\t\tlock(&bubble.mu)\n\t\tif bubble.active < 0 {\n",
	},
	{file: "runtime/sigqueue.go", why: "not a point", old: "Gosched()\n", new: "mcall(gosched_m)\n", all: true},
	{
		file: "os/signal/signal.go", why: "the goroutine that receives signals lasts longer than a schedule",
		old: "\t\t\t\t\tif watchSignalLoop != nil {\n\t\t\t\t\t\tgo watchSignalLoop()\n",
		new: "\t\t\t\t\tif watchSignalLoop != nil {\n\t\t\t\t\t\tcoirGoOutside(watchSignalLoop)\n",
	},
	{
		file: "os/signal/signal.go", why: "the same",
		old: "var handlers struct {\n", new: "func coirGoOutside(f func())\n\nvar handlers struct {\n",
	},
	{
		file: "runtime/synctest.go", why: "a ticker would go on for good",
		old: "\t\tnext := bubble.timers.wakeTime()\n\t\tif next == 0 {\n\t\t\tbreak",
		new: "\t\tnext := bubble.timers.wakeTime()\n\t\tif next == 0 || coir.On && coirTick(bubble) {\n\t\t\tbreak",
	},
	{
		file: "runtime/synctest.go", why: "what a test leaves behind has time to end",
		old: "\t\tif bubble.done {\n\t\t\t// Time", new: "\t\tif bubble.done && coirTimeStops() {\n\t\t\t// Time",
	},
	{
		file: "runtime/synctest.go", why: "a read of the clock moves it, perhaps past a timer",
		old: "\t\tif next < bubble.now {\n\t\t\tthrow(",
		new: "\t\tif coir.On {\n\t\t\tnext = max(next, bubble.now)\n\t\t}\n\t\tif next < bubble.now {\n\t\t\tthrow(",
	},
	{
		file: "runtime/synctest.go", why: "timers are a little late, as they are outside",
		old: "\t\tbubble.now = next\n",
		new: "\t\tbubble.now = next\n\t\tif coir.On && coirSched.exact == 0 {\n\t\t\tbubble.now += coirLate\n\t\t}\n",
	},
	{
		file: "runtime/synctest.go", why: "a test that makes a bubble is in one already",
		old: "\tgp := getg()\n\tif gp.bubble != nil {\n\t\tpanic(\"synctest.Run called",
		new: "\tgp := getg()\n\tif coirIn(gp) {\n\t\tcoirExactly(f)\n\t\treturn\n\t}\n" +
			"\tif gp.bubble != nil {\n\t\tpanic(\"synctest.Run called",
	},
	{
		file: "runtime/runtime2.go", why: "waits for locks and for channels of other bubbles are as good as any",
		old: "\twaitReasonSynctestSelect:        true,\n}",
		new: "\twaitReasonSynctestSelect:        true,\n\twaitReasonSyncMutexLock: true,\n\twaitReasonSyncRWMutexRLock: true,\n" +
			"\twaitReasonSyncRWMutexLock: true,\n\twaitReasonSyncWaitGroupWait: true,\n\twaitReasonSemacquire: true,\n" +
			"\twaitReasonChanReceive: true,\n\twaitReasonChanSend: true,\n\twaitReasonSelect: true,\n}",
	},
	{
		file: "runtime/runtime2.go", why: "what a goroutine has for the schedule",
		old: "\tbubble  *synctestBubble\n", new: "\tbubble  *synctestBubble\n\tcoir coirG\n",
	},

	// Operations.
	imports("runtime/sema.go", "internal/coir"),
	{
		file: "runtime/sema.go", why: "the runtime's own semaphores do not pass the turn on",
		old: "\tsemacquire1(addr, false, 0, 0, waitReasonSemacquire)\n",
		new: "\tsemacquire1(addr, false, 0, 0, waitReasonGCSweepWait)\n",
	},
	{
		file: "runtime/sema.go", why: "objects may outlive a schedule",
		old: "getg().bubble != s.g.bubble {", new: "getg().bubble != s.g.bubble && !coir.On {", all: true,
	},
	{
		file: "runtime/sema.go", why: "a mutex starves by real time",
		old: "func internal_sync_nanotime() int64 {\n",
		new: "func internal_sync_nanotime() int64 {\n\tif coir.On && getg().bubble != nil {\n\t\treturn getg().bubble.now\n\t}\n",
	},
	imports("runtime/chan.go", "internal/coir"),
	{
		file: "runtime/chan.go", why: "the number of a channel, and where it was made",
		old: "\tbubble   *synctestBubble\n", new: "\tbubble   *synctestBubble\n\tcoirID, coirRun, coirMade uint32\n",
	},
	before("runtime/chan.go", "func chansend(c *hchan, ep unsafe.Pointer, block bool, callerpc uintptr) bool {", "OpSend", "c"),
	before("runtime/chan.go", "func chanrecv(c *hchan, ep unsafe.Pointer, block bool) (selected, received bool) {", "OpRecv", "c"),
	before("runtime/chan.go", "func closechan(c *hchan) {", "OpClose", "c"),
	{
		file: "runtime/chan.go", why: "reports say where a channel was made",
		old: "\tc.dataqsiz = uint(size)\n", new: "\tc.dataqsiz = uint(size)\n\tif coir.On {\n\t\tcoirMake(c)\n\t}\n",
	},
	chose("selectnbsend(c *hchan, elem unsafe.Pointer) (selected bool)", "chansend(c, elem, false, sys.GetCallerPC())",
		"selected", "OpSend"),
	chose("selectnbrecv(elem unsafe.Pointer, c *hchan) (selected, received bool)", "chanrecv(c, elem, false)",
		"selected, received", "OpRecv"),
	{
		file: "runtime/chan.go", why: "objects may outlive a schedule",
		old: "getg().bubble != c.bubble {", new: "getg().bubble != c.bubble && !coir.On {", all: true,
	},
	imports("runtime/select.go", "internal/coir"),
	{
		file: "runtime/select.go", why: "a point before the operation; the order of its cases is decided below", first: true,
		old: "\tgp := getg()\n", new: "\tif coir.On {\n\t\tcoirSelectPoint(cas0, nsends+nrecvs)\n\t}\n\tgp := getg()\n",
	},
	{
		file: "runtime/select.go", why: "the order of its cases is decided below",
		old: "\t\tj := cheaprandn(uint32(norder + 1))",
		new: "\t\tj := uint32(norder)\n\t\tif !coirIn(gp) {\n\t\t\tj = cheaprandn(uint32(norder + 1))\n\t\t}",
	},
	{
		file: "runtime/select.go", why: "which of the ready cases is a decision",
		old: "\t// pass 1 - look for something already waiting\n",
		new: "\tif coir.On {\n\t\tcoirSelect(scases, pollorder, nsends)\n\t}\n\n\t// pass 1 - look for something already waiting\n",
	},
	{
		file: "runtime/select.go", why: "reports say what a select took",
		old: "\treturn casi, recvOK\n\nsclose:\n",
		new: "\tif coir.On {\n\t\tcoirChose(coir.OpSelect, nil, casi)\n\t}\n\treturn casi, recvOK\n\nsclose:\n",
	},
	{
		file: "runtime/select.go", why: "objects may outlive a schedule",
		old: "if getg().bubble != cas.c.bubble {", new: "if getg().bubble != cas.c.bubble && !coir.On {",
	},
	imports("internal/sync/mutex.go", "internal/coir"),
	{
		file: "internal/sync/mutex.go", why: "for the points", old: "func (m *Mutex) Lock() {\n",
		new: point[1:] + "\nfunc (m *Mutex) Lock() {\n",
	},
	// Lock, Unlock, RLock and Once.Do are inlined into their callers. They stay small enough for that: the point is
	// where they are slow, and they are always slow while a schedule runs.
	{
		file: "internal/sync/mutex.go", why: "slow while a schedule runs",
		old: "\tif atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n",
		new: "\tif !coir.On && atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n",
	},
	{
		file: "internal/sync/mutex.go", why: "a point before the operation",
		old: "func (m *Mutex) lockSlow() {\n",
		new: "func (m *Mutex) lockSlow() {\n\tif coir.On {\n\t\tcoirPoint(coir.OpLock, unsafe.Pointer(m))\n" +
			"\t\tif atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n\t\t\tif race.Enabled {\n" +
			"\t\t\t\trace.Acquire(unsafe.Pointer(m))\n\t\t\t}\n\t\t\treturn\n\t\t}\n\t}\n",
	},
	before("internal/sync/mutex.go", "func (m *Mutex) TryLock() bool {", "OpTryLock", "m"),
	{
		file: "internal/sync/mutex.go", why: "slow while a schedule runs",
		old: "\tnew := atomic.AddInt32(&m.state, -mutexLocked)\n\tif new != 0 {\n",
		new: "\tnew := int32(coir.Slow)\n\tif !coir.On {\n\t\tnew = atomic.AddInt32(&m.state, -mutexLocked)\n\t}\n\tif new != 0 {\n",
	},
	{
		file: "internal/sync/mutex.go", why: "a point before the operation",
		old: "func (m *Mutex) unlockSlow(new int32) {\n",
		new: "func (m *Mutex) unlockSlow(new int32) {\n\tif new == coir.Slow {\n\t\tcoirPoint(coir.OpUnlock, unsafe.Pointer(m))\n" +
			"\t\tif new = atomic.AddInt32(&m.state, -mutexLocked); new == 0 {\n\t\t\treturn\n\t\t}\n\t}\n",
	},
	{
		file: "sync/runtime.go", why: "for the points", old: "import \"unsafe\"\n",
		new: "import \"unsafe\"\n" + point + "\n//go:linkname coirPointAt\n//go:noescape\n" +
			"func coirPointAt(op uint8, p unsafe.Pointer, pc uintptr)\n" +
			"\n//go:linkname coirQuiet\nfunc coirQuiet(q uint32) uint32\n",
	},
	imports("sync/rwmutex.go", "internal/coir"),
	{
		file: "sync/rwmutex.go", why: "slow while a schedule runs",
		old: "\tif rw.readerCount.Add(1) < 0 {\n\t\t// A writer is pending, wait for it.\n" +
			"\t\truntime_SemacquireRWMutexR(&rw.readerSem, false, 0)\n\t}\n",
		new: "\tif coir.On || rw.readerCount.Add(1) < 0 {\n\t\trw.coirRLockSlow()\n\t}\n",
	},
	{
		file: "sync/rwmutex.go", why: "a point before the operation",
		old: "func (rw *RWMutex) rUnlockSlow(r int32) {\n",
		new: "func (rw *RWMutex) coirRLockSlow() {\n\tif coir.On {\n\t\tcoirPoint(coir.OpRLock, unsafe.Pointer(rw))\n" +
			"\t\tif rw.readerCount.Add(1) >= 0 {\n\t\t\treturn\n\t\t}\n\t}\n" +
			"\t// A writer is pending, wait for it.\n\truntime_SemacquireRWMutexR(&rw.readerSem, false, 0)\n}\n\n" +
			"func (rw *RWMutex) rUnlockSlow(r int32) {\n",
	},
	before("sync/rwmutex.go", "func (rw *RWMutex) RUnlock() {", "OpRUnlock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) Lock() {", "OpWLock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) TryRLock() bool {", "OpTryRLock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) TryLock() bool {", "OpTryWLock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) Unlock() {", "OpWUnlock", "rw"),
	imports("sync/waitgroup.go", "internal/coir"),
	{
		file: "sync/waitgroup.go", why: "a point before the operation", old: "func (wg *WaitGroup) Add(delta int) {\n",
		new: "func (wg *WaitGroup) Add(delta int) {\n\tif coir.On && delta < 0 {\n" +
			"\t\tcoirPoint(coir.OpDone, unsafe.Pointer(wg))\n\t} else if coir.On {\n" +
			"\t\tcoirPoint(coir.OpAdd, unsafe.Pointer(wg))\n\t}\n",
	},
	before("sync/waitgroup.go", "func (wg *WaitGroup) Wait() {", "OpWait", "wg"),
	{
		file: "sync/waitgroup.go", why: "a WaitGroup may outlive a schedule",
		old: "synctest.IsInBubble()", new: "!coir.On && synctest.IsInBubble()", all: true,
	},
	imports("sync/cond.go", "internal/coir"),
	before("sync/cond.go", "func (c *Cond) Wait() {", "OpCondWait", "c"),
	before("sync/cond.go", "func (c *Cond) Signal() {", "OpSignal", "c"),
	before("sync/cond.go", "func (c *Cond) Broadcast() {", "OpBroadcast", "c"),
	imports("sync/once.go", "internal/coir"),
	imports("sync/once.go", "unsafe"),
	{
		file: "sync/once.go", why: "slow while a schedule runs",
		old: "\tif !o.done.Load() {\n\t\t// Outlined", new: "\tif coir.On || !o.done.Load() {\n\t\t// Outlined",
	},
	{
		file: "sync/once.go", why: "a point before the operation",
		old: "func (o *Once) doSlow(f func()) {\n",
		new: "func (o *Once) doSlow(f func()) {\n\tif coir.On {\n\t\tcoirPoint(coir.OpOnce, unsafe.Pointer(o))\n" +
			"\t\tif o.done.Load() {\n\t\t\treturn\n\t\t}\n\t}\n",
	},
	imports("sync/map.go", "internal/coir"),
	imports("sync/map.go", "internal/runtime/sys"),
	imports("sync/map.go", "unsafe"),
	beforeAt("sync/map.go", "func (m *Map) Load(key any) (value any, ok bool) {", "On", "OpMapLoad", "m"),
	beforeAt("sync/map.go", "func (m *Map) Store(key, value any) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) Clear() {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) LoadOrStore(key, value any) (actual any, loaded bool) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) LoadAndDelete(key any) (value any, loaded bool) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) Delete(key any) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) Swap(key, value any) (previous any, loaded bool) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) CompareAndSwap(key, old, new any) (swapped bool) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) CompareAndDelete(key, old any) (deleted bool) {", "On", "OpMapStore", "m"),
	beforeAt("sync/map.go", "func (m *Map) Range(f func(key, value any) bool) {", "On", "OpMapLoad", "m"),
	{
		file: "sync/pool.go", why: "whether a pool is pinned slowly depends on the schedules before",
		old: "\tallPoolsMu.Lock()\n\tdefer allPoolsMu.Unlock()\n\tpid",
		new: "\twas := coirQuiet(1)\n\tallPoolsMu.Lock()\n\tdefer coirQuiet(was)\n\tdefer allPoolsMu.Unlock()\n\tpid",
	},

	// Atomics. The functions that do the work get other names; those of sync/atomic/coir.go have a point and call them.
	{file: "sync/atomic/doc.go", why: "another name", old: "\nfunc ", new: "\nfunc coir", all: true},
	{file: "sync/atomic/doc_32.go", why: "another name", old: "\nfunc ", new: "\nfunc coir", all: true},
	{file: "sync/atomic/doc_64.go", why: "another name", old: "\nfunc ", new: "\nfunc coir", all: true},
	{file: "sync/atomic/asm.s", why: "another name", old: "TEXT ·", new: "TEXT ·coir", all: true},
	{file: "sync/atomic/doc.go", why: "it has a point in package runtime", old: "func coirSwapPointer(", new: "func SwapPointer("},
	{
		file: "sync/atomic/doc.go", why: "it has a point in package runtime",
		old: "func coirCompareAndSwapPointer(", new: "func CompareAndSwapPointer(",
	},
	{file: "sync/atomic/doc.go", why: "it has a point in package runtime", old: "func coirStorePointer(", new: "func StorePointer("},
	imports("runtime/atomic_pointer.go", "internal/coir"),
	imports("runtime/atomic_pointer.go", "internal/runtime/sys"),
	{
		file: "runtime/atomic_pointer.go", why: "another name", old: " sync/atomic.StoreUintptr\n", new: " sync/atomic.coirStoreUintptr\n",
	},
	{
		file: "runtime/atomic_pointer.go", why: "another name", old: " sync/atomic.SwapUintptr\n", new: " sync/atomic.coirSwapUintptr\n",
	},
	{
		file: "runtime/atomic_pointer.go", why: "another name",
		old: " sync/atomic.CompareAndSwapUintptr\n", new: " sync/atomic.coirCompareAndSwapUintptr\n",
	},
	beforeAt("runtime/atomic_pointer.go", "func sync_atomic_StorePointer(ptr *unsafe.Pointer, new unsafe.Pointer) {",
		"Atomics", "OpAtomicStore", "ptr"),
	beforeAt("runtime/atomic_pointer.go", "func sync_atomic_SwapPointer(ptr *unsafe.Pointer, new unsafe.Pointer) unsafe.Pointer {",
		"Atomics", "OpAtomicSwap", "ptr"),
	beforeAt("runtime/atomic_pointer.go",
		"func sync_atomic_CompareAndSwapPointer(ptr *unsafe.Pointer, old, new unsafe.Pointer) bool {",
		"Atomics", "OpAtomicCAS", "ptr"),
	{file: "runtime/race.go", why: "another name", old: " sync/atomic.", new: " sync/atomic.coir", all: true},
	{file: "runtime/race_amd64.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{file: "runtime/race_arm64.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{file: "runtime/race_loong64.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{file: "runtime/race_ppc64le.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{file: "runtime/race_riscv64.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{file: "runtime/race_s390x.s", why: "another name", old: "sync∕atomic·", new: "sync∕atomic·coir", all: true},
	{
		file: "sync/atomic/value.go", why: "for the points", old: "import (\n",
		new: "import (\n\t\"internal/coir\"\n\t\"internal/runtime/sys\"\n",
	},
	beforeAt("sync/atomic/value.go", "func (v *Value) Load() (val any) {", "Atomics", "OpAtomicLoad", "v"),
	beforeAt("sync/atomic/value.go", "func (v *Value) Store(val any) {", "Atomics", "OpAtomicStore", "v"),
	beforeAt("sync/atomic/value.go", "func (v *Value) Swap(new any) (old any) {", "Atomics", "OpAtomicSwap", "v"),
	beforeAt("sync/atomic/value.go", "func (v *Value) CompareAndSwap(old, new any) (swapped bool) {", "Atomics", "OpAtomicCAS", "v"),

	// The clock.
	imports("runtime/time.go", "internal/coir"),
	{
		file: "runtime/time.go", why: "no two reads of the clock give the same time, as it is outside, but for synctest",
		old: "\tif bubble := getg().bubble; bubble != nil {\n\t\tsec",
		new: "\tif bubble := getg().bubble; bubble != nil {\n" +
			"\t\tif coir.On && coirSched.exact == 0 {\n\t\t\tbubble.now++\n\t\t}\n\t\tsec",
	},
	{
		file: "runtime/time.go", why: "no two reads of the clock give the same time, as it is outside",
		old: "\tif gp.bubble != nil {\n\t\treturn gp.bubble.now\n",
		new: "\tif gp.bubble != nil {\n" +
			"\t\tif coir.On && coirSched.exact == 0 {\n\t\t\tgp.bubble.now++\n\t\t}\n\t\treturn gp.bubble.now\n",
	},
	{
		file: "runtime/time.go", why: "the order of timers of one instant is the same in each run",
		old: "\t\t\tt.rand = cheaprand()\n", new: "\t\t\tt.rand = coirTimerRand()\n",
	},
	{
		file: "runtime/time.go", why: "what one timer knows of, the next does not: a common context would hide races",
		old: "\t\tif tsLocal.raceCtx == 0 {\n",
		new: "\t\tif coir.On && tsLocal.raceCtx != 0 {\n\t\t\tracectxend(tsLocal.raceCtx)\n" +
			"\t\t\ttsLocal.raceCtx = 0\n\t\t}\n\t\tif tsLocal.raceCtx == 0 {\n",
	},
	{
		file: "runtime/time.go", why: "a timer may outlive a schedule",
		old: "if t.isFake && getg().bubble == nil {", new: "if t.isFake && getg().bubble == nil && !coir.On {", all: true,
	},

	// What else differs from run to run.
	imports("runtime/rand.go", "internal/coir"),
	{
		file: "runtime/rand.go", why: "the same in each run of a schedule",
		old: "\tmp := getg().m\n\tc := &mp.chacha8\n\tfor {\n\t\t// Note: c.Next is marked nosplit,",
		new: "\tif coir.On || getg().goid == 1 {\n\t\tif x, ok := coirRand(); ok {\n\t\t\treturn x\n\t\t}\n\t}\n" +
			"\tmp := getg().m\n\tc := &mp.chacha8\n\tfor {\n\t\t// Note: c.Next is marked nosplit,",
	},
	{
		file: "runtime/rand.go", why: "the seeds of maps that are made before the test",
		old: "\tglobalRand.state.Init(*seed)\n", new: "\tclear(seed[:])\n\tglobalRand.state.Init(*seed)\n",
	},
	{
		file: "runtime/malloc.go", why: "addresses are the same in each process",
		old: "randomizeHeapBase = goexperiment.RandomizedHeapBase64 &&",
		new: "randomizeHeapBase = false && goexperiment.RandomizedHeapBase64 &&",
	},
	{
		file: "crypto/internal/sysrand/rand.go", why: "the same in each run of a schedule",
		old: "func Read(b []byte) {\n",
		new: "//go:linkname coirRead\nfunc coirRead(b []byte) bool\n\nfunc Read(b []byte) {\n\tif coirRead(b) {\n\t\treturn\n\t}\n",
	},
	imports("runtime/debug.go", "internal/coir"),
	{
		file: "runtime/debug.go", why: "one goroutine runs at a time, whatever the test asks for",
		old: "func GOMAXPROCS(n int) int {\n",
		new: "func GOMAXPROCS(n int) int {\n\tif coir.On && getg().bubble != nil {\n\t\twas := coirSched.procs\n" +
			"\t\tif n > 0 {\n\t\t\tcoirSched.procs = n\n\t\t}\n\t\treturn was\n\t}\n",
	},
	{
		file: "runtime/traceback.go", why: "tests look at the text of stacks",
		old: "\tif bubble := gp.bubble; bubble != nil {\n\t\tprint(\", synctest bubble \", bubble.id)\n",
		new: "\tif bubble := gp.bubble; bubble != nil && !coirAsks() {\n\t\tprint(\", synctest bubble \", bubble.id)\n",
	},
	{
		file: "runtime/traceback.go", why: "the same",
		old: "\tif bubble := gp.bubble; bubble != nil &&\n",
		new: "\tif bubble := gp.bubble; bubble != nil && !coirAsks() &&\n",
	},
	{
		file: "runtime/traceback.go", why: "the same",
		old: "\t\tstatus = gp.waitreason.String()\n",
		new: "\t\tstatus = gp.waitreason.String()\n\t\tif coirAsks() {\n" +
			"\t\t\tstatus = stringslite.TrimSuffix(status, \" (durable)\")\n\t\t}\n",
	},
	{
		file: "runtime/traceback.go", why: "the same: they do not expect goroutines of coir's, or of earlier schedules",
		old: "\ttracebacksomeothers(me, func(*g) bool { return true })\n",
		new: "\ttracebacksomeothers(me, func(gp *g) bool { return !coirHides(gp) })\n",
	},
	{
		file: "runtime/debug.go", why: "the same for their number",
		old: "\treturn int(gcount(false))\n", new: "\treturn int(gcount(false)) - coirHidden()\n",
	},

	// The test.
	{
		file: "testing/testing.go", why: "the harness has no points", old: "\tmu          sync.RWMutex ",
		new: "\tmu          coirRWMutex ",
	},
	{
		file: "testing/testing.go", why: "reports say which goroutine failed the test, and when",
		old: "func (c *common) Fail() {\n", new: "func (c *common) Fail() {\n\tcoirFail(c)\n",
	},
	{
		file: "testing/testing.go", why: "a cleanup has points, which the harness around it has not",
		old: "\t\tcleanup()\n", new: "\t\tcoirCleanup(cleanup)\n",
	},
	{
		file: "testing/testing.go", why: "a log of a test that has ended panics, and does not go to the harness",
		old: "\t\tif !parent.done {\n", new: "\t\tif !parent.done && !coirEnded(parent) {\n",
	},
	{
		file: "testing/testing.go", why: "the schedules of a test are explored here",
		old: "\tfn(t)\n", new: "\tif coirExplores(t) {\n\t\tcoirExplore(t, fn)\n\t} else {\n" +
			"\t\tdefer coirReturned(t, coirQuiet(0))\n\t\tfn(t) // from here: tests look at their stacks\n\t}\n",
	},
	{
		file: "testing/testing.go", why: "the harness has no points",
		old: "func (t *T) Parallel() {\n", new: "func (t *T) Parallel() {\n\tdefer coirQuiet(coirHush())\n",
	},
	{
		file: "testing/testing.go", why: "the harness has no points",
		old: "\tt.hasSub.Store(true)\n\ttestName, ok, _ := t.tstate",
		new: "\tdefer coirQuiet(coirHush())\n\tt.hasSub.Store(true)\n\ttestName, ok, _ := t.tstate",
	},
}
