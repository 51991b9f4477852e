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

// Contended reports whether fibers wait for a lock, for a value of a pool, for a semaphore, or to send. Others have
// what these fibers wait for. In a healthy program such waits are short, while waits to receive may be long.
func (o *Object) Contended() bool {
	return o.Senders > 0 || o.Receivers > 0 && o.Kind == pool || o.Waiters > 0 && (o.isLock() || o.Kind == semaphore)
}

// contends reports whether a wait for the object o, which may be nil, is one that [Object.Contended] describes.
func contends(w Wait, o *Object) bool {
	switch {
	case w.Kind == WaitSend:
		return true
	case o == nil:
		return false
	case w.Kind == WaitRecv:
		return o.Kind == pool
	}
	return w.Kind == WaitUse && (o.isLock() || o.Kind == semaphore)
}

// NoProblem returns a sentence for people to whom [Explain] has nothing to say. If fibers have waited for 10 s or more
// for a lock, a pool or a semaphore, or to send, it names the oldest of these waits. Like the text of an explanation,
// it is safe for a terminal.
func NoProblem(s *Snapshot) string {
	const none = "No problem found."
	var o *Object
	for i := range s.Objects {
		x := &s.Objects[i]
		if x.Contended() && !x.Oldest.IsZero() && s.Taken.Sub(x.Oldest) >= leastIdle &&
			(o == nil || x.Oldest.Before(o.Oldest)) {
			o = x
		}
	}
	if o == nil {
		return none
	}
	n, noun, text := 0, "goroutine", ""
	for i := range s.Fibers {
		f := &s.Fibers[i]
		k := slices.IndexFunc(f.Wait, func(w Wait) bool { return w.Object == o.ID && contends(w, o) })
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
