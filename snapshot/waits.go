package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// leastIdle is how long a wait must have lasted for [NoProblem] to name it.
const leastIdle = 10 * time.Second

// isLock reports whether only the fiber that holds the object can release it.
func (o *Object) isLock() bool { return strings.HasSuffix(o.Ends, "unlock") }

// heldBy returns the words between the object and its holders.
func (o *Object) heldBy() string {
	if o.Kind == pool {
		return "lent to"
	}
	return "held by"
}

// Contended reports whether fibers wait for a lock, for a value of a pool, for a semaphore, or to send. Others have
// what these fibers wait for. In a healthy program such waits are short, while waits to receive may be long.
func (o *Object) Contended() bool {
	_, n := o.contention()
	return n > 0
}

// contention returns the kind of the waits that [Object.Contended] describes, and how many fibers and goroutines wait
// so for the object.
func (o *Object) contention() (kind WaitKind, n int) {
	switch {
	case o.Kind == pool:
		return WaitRecv, o.Receivers
	case o.Kind == semaphore || o.isLock():
		return WaitUse, o.Waiters
	}
	return WaitSend, o.Senders
}

// NoProblem returns a sentence for people to whom [Explain] has nothing to say. If fibers have waited for 10 s or more
// for a lock, a pool or a semaphore, or to send, it names the oldest of these waits. It also names the object for which
// the most waits have been given up: if time limits end all waits, none is ever old. Like the text of an explanation,
// it is safe for a terminal.
func NoProblem(s *Snapshot) string {
	none := "No problem found."
	var o, left *Object
	for i := range s.Objects {
		x := &s.Objects[i]
		if x.GaveUp > 0 && (left == nil || x.GaveUp > left.GaveUp) {
			left = x
		}
		if x.Contended() && !x.Oldest.IsZero() && s.Taken.Sub(x.Oldest) >= leastIdle &&
			(o == nil || x.Oldest.Before(o.Oldest)) {
			o = x
		}
	}
	if left != nil {
		none += fmt.Sprintf(" So far, %s for %s ended without it, by a time limit or a cancel.",
			count(int(left.GaveUp), "wait"), left.name())
	}
	if o == nil {
		return none
	}
	kind, _ := o.contention()
	n, noun, text := 0, "goroutine", ""
	for i := range s.Fibers {
		f := &s.Fibers[i]
		k := slices.IndexFunc(f.Wait, func(w Wait) bool { return w.Object == o.ID && w.Kind == kind })
		if k < 0 || f.System {
			continue
		}
		if n++; !f.isGoroutine() {
			noun = "fiber"
		}
		if text == "" {
			text = clean(f.Wait[k].Text, mostText)
		}
	}
	if n == 0 { // they belong to coir, or are not in the snapshot
		return none
	}
	have := "have"
	if n == 1 {
		have = "has"
	}
	return fmt.Sprintf("%s The oldest wait: %s %s waited up to %s %s.", none, count(n, noun), have,
		span{d: s.Taken.Sub(o.Oldest)}, text)
}
