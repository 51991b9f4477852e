package runtime

import (
	"internal/abi"
	"internal/coir"
	"internal/stringslite"
	"unsafe"
)

// This file implements points. A goroutine that has the turn is at a point just before each operation that other
// goroutines can notice.

// A goroutine that has kept the turn for coirFairAfter points gives it up.
const coirFairAfter = 1000

// coirPoint is called before the operation op on the object p. It may pass the turn to another goroutine. Callers check
// coir.On first.
func coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname sync_coirPoint sync.coirPoint
func sync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname testing_coirPoint testing.coirPoint
func testing_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname isync_coirPoint internal/sync.coirPoint
func isync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

// coirPointOf is coirPoint for a kind of decision.
func coirPointOf(op uint8, p unsafe.Pointer, kind uint8) {
	gp := getg()
	s := &coirSched
	if gp.bubble == nil || gp.coir.run != s.run || gp.m.curg != gp || gp.m.locks != 0 || gp.coir.quiet != 0 ||
		gp == s.root.ptr() || s.turn.ptr() != gp {
		return
	}
	if a := uintptr(p); a >= gp.stack.lo && a < gp.stack.hi {
		return // p is on the goroutine's own stack, so no other goroutine can use it
	}
	s.steps++
	n, obj := uint32(s.steps), coirObject(op, p)
	coirRecordStep(gp, op, obj, getfp())
	if coirOverLimit() {
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1) // forever
	}
	if s.racing > 0 && coirMovesEarly(gp.bubble) {
		coirMoveClock(gp, 0)
	} else {
		coirCharge(gp)
	}
	if obj != 0 {
		coirNews(gp.coir.id, obj, op)
	}
	gp.coir.next.op, gp.coir.next.obj, gp.coir.pending = op, obj, true
	coirPassAt(gp, kind)
	s.done(n)
}

// coirRecordStep records the step that gp is about to take. fp is the frame pointer of coirPointOf.
func coirRecordStep(gp *g, op uint8, obj uint32, fp uintptr) {
	s := &coirSched
	s.mix(uint64(gp.coir.id)<<32 | uint64(obj)<<8 | uint64(op))
	s.mix(uint64(gp.bubble.now - coirBaseTime))
	e := s.step(uint32(s.steps))
	*e = coirStep{Step: coir.Step{G: gp.coir.id, Op: op, Obj: obj, At: gp.bubble.now}}
	if s.trace {
		e.npc = uint8(fpTracebackPCs(unsafe.Pointer(fp), coirPlaces[(s.steps-1)%coir.KeptSteps][:]))
		coirTraced(s.steps)
		if gp.coir.note != 0 {
			coirNotes[gp.coir.note-1].step = uint32(s.steps)
			gp.coir.note = 0
		}
	}
	s.out.Now = gp.bubble.now
	if a := coirActorOf(gp); a != nil {
		n := uint32(s.steps)
		a.op, a.obj, a.step, a.point = op, obj, n, n
	}
	if gp.coir.id == coirTestG && !gp.coir.polls {
		s.progress++
	}
	if !gp.coir.timer {
		s.moved = s.steps
	}
}

// coirOverLimit reports whether the schedule has come to a limit, or to what it cannot do.
func coirOverLimit() bool {
	s := &coirSched
	s.out.TooBusy = s.out.TooBusy || s.steps-s.idle > s.limit
	s.out.TooLong = s.out.TooLong || s.steps > s.most
	return s.out.TooBusy || s.out.TooLong || s.out.Simulates || s.out.NeedsKernel != ""
}

// coirPassAt decides whether gp keeps the turn, and passes the turn on if it does not.
func coirPassAt(gp *g, kind uint8) {
	s := &coirSched
	s.held++
	if s.nready == 0 {
		coirGoesOn(gp)
		return
	}
	if s.held > coirFairAfter {
		s.held = 0
		kind = coir.GiveUp
	}
	mp := acquirem()
	lock(&s.mu)
	to := coirChoose(gp, kind)
	s.to.set(to)
	unlock(&s.mu)
	releasem(mp)
	if to != gp {
		mcall(coirSwitch)
	}
}

// coirTraced is called at each step of a schedule whose trace is kept, before the operation. A debugger stops here; see
// `coir debug`.
//
//go:noinline
func coirTraced(step uint64) {}

// coirGosched implements Gosched for goroutines of the schedule. For others it returns false, and the runtime's own
// code must run.
func coirGosched() bool {
	if !coirActs(getg()) {
		return false
	}
	coirPointOf(coir.OpYield, nil, coir.GiveUp)
	return true
}

// coirPointAt is called before an operation on p by the code at pc. It is a point unless that code belongs to the
// standard library: a mutex has its points elsewhere, and the caches of packages such as reflect do not concern the
// test.
func coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) {
	gp := getg()
	s := &coirSched
	if gp.coir.run != s.run || gp.m.curg != gp || gp.coir.quiet != 0 || s.turn.ptr() != gp {
		return
	}
	of := coirCodeAt(pc)
	if of == coirCodeAtomic { // look at its caller, which may be a wrapper too
		var pcs [16]uintptr
		n := fpTracebackPCs(unsafe.Pointer(getfp()), pcs[:])
		i := 0
		for i < n && pcs[i] != pc {
			i++
		}
		for i++; i < n && of == coirCodeAtomic; i++ {
			of = coirCodeAt(pcs[i])
		}
	}
	if of == coirCodeUser {
		coirPointOf(op, p, coir.Keep)
	}
}

//go:linkname atomic_coirPointAt sync/atomic.coirPointAt
func atomic_coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) { coirPointAt(op, p, pc) }

//go:linkname sync_coirPointAt sync.coirPointAt
func sync_coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) { coirPointAt(op, p, pc) }

// The origins of code.
const (
	coirCodeUser   = iota
	coirCodeStd    // the standard library
	coirCodeAtomic // a method of package sync/atomic that is not inlined (with -race none is), or its wrapper
)

// coirCode caches the origin of code. Only the goroutine that has the turn uses it.
var coirCode [1 << 10]struct {
	pc uintptr
	of uint8
}

func coirCodeAt(pc uintptr) uint8 {
	c := &coirCode[coirMix(uint64(pc))%uint64(len(coirCode))]
	if c.pc != pc {
		c.pc, c.of = pc, coirCodeOf(pc)
	}
	return c.of
}

// coirCodeOf returns the origin of the code at pc. The code may be inlined into other code, as the methods of package
// sync/atomic usually are.
func coirCodeOf(pc uintptr) uint8 {
	f := findfunc(pc)
	if !f.valid() {
		return coirCodeStd
	}
	u, uf := newInlineUnwinder(f, pc-1)
	for stringslite.HasPrefix(u.srcFunc(uf).name(), "sync/atomic.(*") {
		if !u.isInlined(uf) {
			name := u.srcFunc(uf).name()
			if stringslite.HasPrefix(name, "sync/atomic.(*Value)") && !stringslite.HasSuffix(name, "-fm") {
				return coirCodeStd // Value has its own points
			}
			return coirCodeAtomic
		}
		uf = u.next(uf)
	}
	file, _ := u.fileLine(uf)
	if file == "<autogenerated>" { // a method of an embedded atomic
		return coirCodeAtomic
	}
	if coirIsStd(file) {
		return coirCodeStd
	}
	return coirCodeUser
}

// coirIsStd reports whether a file belongs to the standard library. Such files are in the same directory tree as those
// of the runtime.
func coirIsStd(file string) bool {
	own := findfunc(abi.FuncPCABIInternal(coirIsStd))
	src, _ := funcline(own, own.entry())
	src = src[:len(src)-len("runtime/coir_point.go")]
	if src != "" {
		return stringslite.HasPrefix(file, src)
	}
	// With -trimpath the name of a file begins with the path of its package. The path of a module may have no dot.
	n := 0
	for n < len(file) && file[n] != '/' {
		n++
	}
	return stringslite.Index(coirStdDirs, " "+file[:n]+" ") >= 0
}

// coirStdDirs lists the top directories of the standard library.
const coirStdDirs = " archive arena bufio builtin bytes cmp compress container context crypto database debug embed encoding " +
	"errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect " +
	"regexp runtime simd slices sort strconv strings structs sync syscall testing text time unicode unique unsafe " +
	"uuid vendor weak "
