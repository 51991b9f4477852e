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

// imports returns an edit that adds an import to a file.
func imports(file, path string) edit {
	return edit{file: file, why: "for the other edits", first: true, old: "import (\n", new: "import (\n\t\"" + path + "\"\n"}
}

// point declares the runtime's coirPoint in a package. It does not let its object escape: otherwise each mutex would be
// on the heap.
const point = `
//go:linkname coirPoint
//go:noescape
func coirPoint(op uint8, p unsafe.Pointer)
`

var edits = []edit{
	// Who can run.
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

	// Who stops running.
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
		new: "\tsetGNoWB(&mp.curg, gnext)\n\tif coir.On && bubble != nil && coirSched.turn.ptr() == from {\n" +
			"\t\tcoirSched.turn.set(gnext)\n\t}\n",
	},
	imports("runtime/panic.go", "internal/coir"),
	{
		file: "runtime/panic.go", why: "a panic ends the schedule, and not the process",
		old: "\tpreprintpanics(&p)\n\n\tfatalpanic(&p) ",
		new: "\tif coir.On {\n\t\tcoirPanic(&p)\n\t}\n\tpreprintpanics(&p)\n\n\tfatalpanic(&p) ",
	},

	// The collector, when it likes.
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
		new: "\t\tnext := bubble.timers.wakeTime()\n\t\tif next == 0 || coir.On && coirTick() {\n\t\t\tbreak",
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
		file: "runtime/synctest.go", why: "a test that makes a bubble is in one already",
		old: "\tgp := getg()\n\tif gp.bubble != nil {\n\t\tpanic(\"synctest.Run called",
		new: "\tgp := getg()\n\tif coirIn(gp) {\n\t\tf()\n\t\treturn\n\t}\n\tif gp.bubble != nil {\n\t\tpanic(\"synctest.Run called",
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
		file: "runtime/chan.go", why: "the number of a channel",
		old: "\tbubble   *synctestBubble\n", new: "\tbubble   *synctestBubble\n\tcoirID, coirRun uint32\n",
	},
	before("runtime/chan.go", "func chansend(c *hchan, ep unsafe.Pointer, block bool, callerpc uintptr) bool {", "OpSend", "c"),
	before("runtime/chan.go", "func chanrecv(c *hchan, ep unsafe.Pointer, block bool) (selected, received bool) {", "OpRecv", "c"),
	before("runtime/chan.go", "func closechan(c *hchan) {", "OpClose", "c"),
	{
		file: "runtime/chan.go", why: "objects may outlive a schedule",
		old: "getg().bubble != c.bubble {", new: "getg().bubble != c.bubble && !coir.On {", all: true,
	},
	imports("runtime/select.go", "internal/coir"),
	{
		file: "runtime/select.go", why: "a point before the operation; the order of its cases is decided below", first: true,
		old: "\tgp := getg()\n", new: "\tif coir.On {\n\t\tcoirPoint(coir.OpSelect, nil)\n\t}\n\tgp := getg()\n",
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
		file: "runtime/select.go", why: "objects may outlive a schedule",
		old: "if getg().bubble != cas.c.bubble {", new: "if getg().bubble != cas.c.bubble && !coir.On {",
	},
	imports("internal/sync/mutex.go", "internal/coir"),
	{
		file: "internal/sync/mutex.go", why: "for the points", old: "func (m *Mutex) Lock() {\n",
		new: point[1:] + "\nfunc (m *Mutex) Lock() {\n",
	},
	before("internal/sync/mutex.go", "func (m *Mutex) Lock() {", "OpLock", "m"),
	before("internal/sync/mutex.go", "func (m *Mutex) TryLock() bool {", "OpTryLock", "m"),
	before("internal/sync/mutex.go", "func (m *Mutex) Unlock() {", "OpUnlock", "m"),
	{
		file: "sync/runtime.go", why: "for the points", old: "import \"unsafe\"\n",
		new: "import \"unsafe\"\n" + point + "\n//go:linkname coirQuiet\nfunc coirQuiet(q uint32) uint32\n",
	},
	imports("sync/rwmutex.go", "internal/coir"),
	before("sync/rwmutex.go", "func (rw *RWMutex) RLock() {", "OpRLock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) RUnlock() {", "OpRUnlock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) Lock() {", "OpWLock", "rw"),
	before("sync/rwmutex.go", "func (rw *RWMutex) Unlock() {", "OpWUnlock", "rw"),
	imports("sync/waitgroup.go", "internal/coir"),
	before("sync/waitgroup.go", "func (wg *WaitGroup) Add(delta int) {", "OpAdd", "wg"),
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
	before("sync/once.go", "func (o *Once) Do(f func()) {", "OpOnce", "o"),
	{
		file: "sync/pool.go", why: "whether a pool is pinned slowly depends on the schedules before",
		old: "\tallPoolsMu.Lock()\n\tdefer allPoolsMu.Unlock()\n\tpid",
		new: "\twas := coirQuiet(1)\n\tallPoolsMu.Lock()\n\tdefer coirQuiet(was)\n\tdefer allPoolsMu.Unlock()\n\tpid",
	},

	// The clock.
	imports("runtime/time.go", "internal/coir"),
	{
		file: "runtime/time.go", why: "no two reads of the clock give the same time, as it is outside",
		old: "\tif bubble := getg().bubble; bubble != nil {\n\t\tsec",
		new: "\tif bubble := getg().bubble; bubble != nil {\n\t\tif coir.On {\n\t\t\tbubble.now++\n\t\t}\n\t\tsec",
	},
	{
		file: "runtime/time.go", why: "no two reads of the clock give the same time, as it is outside",
		old: "\tif gp.bubble != nil {\n\t\treturn gp.bubble.now\n",
		new: "\tif gp.bubble != nil {\n\t\tif coir.On {\n\t\t\tgp.bubble.now++\n\t\t}\n\t\treturn gp.bubble.now\n",
	},
	{
		file: "runtime/time.go", why: "the order of timers of one instant is the same in each run",
		old: "\t\t\tt.rand = cheaprand()\n", new: "\t\t\tt.rand = coirTimerRand()\n",
	},
	{
		file: "runtime/time.go", why: "a timer may outlive a schedule",
		old: "if t.isFake && getg().bubble == nil {", new: "if t.isFake && getg().bubble == nil && !coir.On {", all: true,
	},

	// What else differs from run to run.
	{
		file: "runtime/rand.go", why: "the same in each run of a schedule",
		old: "\tmp := getg().m\n\tc := &mp.chacha8\n\tfor {\n\t\t// Note: c.Next is marked nosplit,",
		new: "\tif x, ok := coirRand(); ok {\n\t\treturn x\n\t}\n" +
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
		file: "testing/testing.go", why: "the schedules of a test are explored here",
		old: "\tfn(t)\n", new: "\tif coirExplores(t) {\n\t\tcoirExplore(t, fn)\n\t} else {\n" +
			"\t\tdefer coirQuiet(coirQuiet(0))\n\t\tfn(t) // from here: tests look at their stacks\n\t}\n",
	},
	{
		file: "testing/testing.go", why: "the harness has no points",
		old: "func (t *T) Parallel() {\n", new: "func (t *T) Parallel() {\n\tdefer coirQuiet(coirQuiet(1))\n",
	},
	{
		file: "testing/testing.go", why: "the harness has no points",
		old: "\tt.hasSub.Store(true)\n\ttestName, ok, _ := t.tstate",
		new: "\tdefer coirQuiet(coirQuiet(1))\n\tt.hasSub.Store(true)\n\ttestName, ok, _ := t.tstate",
	},
}
