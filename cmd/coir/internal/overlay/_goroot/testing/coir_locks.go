package testing

import (
	"internal/coir"
	"slices"
)

// This file searches for goroutines that wait for each other's locks.

// inCycle reports whether goroutines of the running or last schedule wait for each other's locks, so that nothing
// outside can end their waits. It reports false for a test in which one goroutine unlocks what another has locked.
func (x *coirExplorer) inCycle() bool {
	l := x.locks()
	return !x.handed.Load() && !l.handed() && l.cycle() != nil
}

// coirLocks is the state of the locks of a schedule.
type coirLocks struct {
	all   map[uint32]*coir.Lock
	waits map[uint32]coirLockWait // what the goroutines that wait for locks wait for
}

type coirLockWait struct {
	obj  uint32
	read bool
}

// locks returns the state of the locks of the running or last schedule. A holder may be missing, because only the last
// steps are kept.
func (x *coirExplorer) locks() *coirLocks {
	l := &coirLocks{map[uint32]*coir.Lock{}, map[uint32]coirLockWait{}}
	var now coir.Outcome
	coirNow(&now)
	var steps []coir.Step
	rw := map[uint32]bool{}
	for i := max(0, int(now.Steps)-coir.KeptSteps); i < int(now.Steps); i++ {
		if s := coirStepAt(i); s.Done > 0 && s.Obj > 0 && coir.OnLock(int(s.Op)) {
			steps = append(steps, s)
			if l.all[s.Obj] == nil {
				l.all[s.Obj] = new(coir.Lock)
			}
			rw[s.Obj] = rw[s.Obj] || s.Op >= coir.OpRLock
		}
	}
	steps = slices.DeleteFunc(steps, func(s coir.Step) bool { // the Mutex in an RWMutex, which has the same address
		return rw[s.Obj] && s.Op < coir.OpRLock
	})
	slices.SortFunc(steps, func(a, b coir.Step) int { return int(a.Done) - int(b.Done) })
	waits := map[uint32]uint32{} // for each goroutine that waits for a lock, Done of its last step on the lock
	for _, s := range steps {
		a := coirActorAt(int(s.G))
		if a.State == coir.Waiting && a.Wait == coir.WaitLock && a.Obj == s.Obj && coir.OnLock(int(a.Op)) {
			waits[s.G] = s.Done
		}
	}
	for i, s := range steps {
		l.all[s.Obj].Do(int(s.Op), coir.Hold{G: s.G, Step: i}, waits[s.G] == s.Done)
		if waits[s.G] == s.Done {
			l.waits[s.G] = coirLockWait{s.Obj, s.Op == coir.OpRLock}
		}
	}
	return l
}

// handed reports whether a goroutine has unlocked a lock that another one had locked.
func (l *coirLocks) handed() bool {
	for _, m := range l.all {
		if m.Handed {
			return true
		}
	}
	return false
}

// blocking returns the goroutines that must all unlock a lock before g can continue, if they are known.
func (l *coirLocks) blocking(g uint32) []coir.Hold {
	w, ok := l.waits[g]
	if !ok || !l.all[w.obj].Certain() {
		return nil
	}
	by, _ := l.all[w.obj].Blocking(w.read)
	return by
}

// cycle returns goroutines each of which waits for a lock that the next one holds, or nil. A goroutine that waits for a
// lock that it holds itself does not count, because another goroutine may have to unlock it, and that one may wait in
// the kernel.
func (l *coirLocks) cycle() (path []uint32) {
	var follow func(g, to uint32, seen map[uint32]bool) bool
	follow = func(g, to uint32, seen map[uint32]bool) bool {
		if seen[g] {
			return false
		}
		seen[g] = true
		path = append(path, g)
		for _, next := range l.blocking(g) {
			if next.G != g && (next.G == to || follow(next.G, to, seen)) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	for g := range l.waits {
		if follow(g, g, map[uint32]bool{}) {
			return path
		}
	}
	return nil
}
