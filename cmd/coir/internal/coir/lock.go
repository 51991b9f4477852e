package coir

// Lock is the state of a Mutex or an RWMutex at the end of a schedule. It is computed from the operations on the lock.
// Package testing decides with it whether goroutines wait for each other's locks, and the command says so in a report.
//
// A goroutine that has passed Lock is in Writers, even if another goroutine may get the lock first. So there may be
// several.
type Lock struct {
	Writers []Hold // of a Mutex, all that lock it
	Readers []Hold
	Queue   []Hold // writers that wait at the end
	Tried   bool   // there were TryLocks, whose results are not known
	Handed  bool   // a goroutine has unlocked it that another one had locked
	Unseen  bool   // it has been unlocked, and it is not known who had locked it
}

// Hold is the operation by which a goroutine locks a lock.
type Hold struct {
	G    uint32
	Step int // the number that the caller of Do gives it
}

// Do adds an operation on the lock to its state. The operations must come in the order in which they began. waits says
// that the operation waits at the end. The operations on the Mutex in an RWMutex do not count.
func (l *Lock) Do(op int, by Hold, waits bool) {
	switch op {
	case OpTryLock, OpTryRLock, OpTryWLock:
		l.Tried = true
	case OpLock, OpWLock:
		if waits {
			l.Queue = append(l.Queue, by)
		} else {
			l.Writers = append(l.Writers, by)
		}
	case OpRLock:
		if !waits {
			l.Readers = append(l.Readers, by)
		}
	case OpUnlock, OpWUnlock:
		l.Writers = l.unlock(l.Writers, by.G)
	case OpRUnlock:
		l.Readers = l.unlock(l.Readers, by.G)
	}
}

// unlock returns the holders without the operation of g, or without the first operation if g has none.
func (l *Lock) unlock(holders []Hold, g uint32) []Hold {
	at := 0
	for at < len(holders) && holders[at].G != g {
		at++
	}
	switch at {
	case 0: // g has the first operation, or there is none
		if len(holders) == 0 {
			l.Unseen = true
			return nil
		}
	case len(holders):
		l.Handed, at = true, 0
	}
	return append(holders[:at], holders[at+1:]...)
}

// Holders returns the operations of all goroutines that hold the lock.
func (l *Lock) Holders() []Hold {
	return append(l.Writers[:len(l.Writers):len(l.Writers)], l.Readers...)
}

// Blocking returns the operations of the goroutines that must unlock the lock before a goroutine that waits to lock it,
// or to read-lock it, can continue. queued says that these goroutines wait themselves: a waiting writer goes before new
// readers.
func (l *Lock) Blocking(read bool) (by []Hold, queued bool) {
	switch {
	case len(l.Writers) > 0:
		return l.Writers, false
	case read:
		return l.Queue, true
	}
	return l.Readers, false
}

// Certain reports whether Blocking returns all of the goroutines, and no others.
func (l *Lock) Certain() bool {
	return !l.Tried && !l.Handed && !l.Unseen && (len(l.Writers) == 0 || len(l.Writers) == 1 && len(l.Readers) == 0)
}

// OnLock reports whether an operation locks or unlocks a lock.
func OnLock(op int) bool {
	return op >= OpLock && op <= OpWUnlock || op == OpTryRLock || op == OpTryWLock
}
