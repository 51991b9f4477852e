package main

import (
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// This file finds the steps that the standard library takes for itself, such as those on the mutex of a context. A
// reader who looks for a bug in the program does not know them. The steps of one call of package context become one
// step. A report leaves out the steps that are aside, except for those that decide something.

// calls reports whether a step belongs to a call of package context. The goroutine that waits for another context to
// end is not such a call: its wait is what it is there for.
func (s *step) calls() bool {
	return strings.HasPrefix(s.via, "context.") && !strings.Contains(s.via, ".propagateCancel.") && s.op != coir.OpGo
}

// cancels reports whether a step belongs to a call that ends a context: that of a cancel function, or that of a timer.
func (s *step) cancels() bool {
	function := strings.TrimPrefix(s.via, "context.")
	return s.calls() && strings.HasPrefix(function, "With") && strings.Contains(function, ".func")
}

// joins reports whether a step belongs to the same call of a library as the shown step before it of its goroutine.
func (s *step) joins(shown *step) bool {
	return s.calls() && s.inner == "" && s.note == "" && s.via == shown.via && s.place == shown.place
}

// call returns the words for a step that is a call of package context.
func (s *step) call() string {
	switch _, name, _ := strings.Cut(s.via, ")."); {
	case s.cancels():
		return "cancel a context"
	case name != "":
		return "ctx." + name
	}
	name, _, _ := strings.Cut(s.via, ".func")
	return name
}

// setAside marks the steps that a report leaves out if it can. These are locks and Onces inside of the standard
// library, all calls of package context except for cancels that others can notice, and what deferred functions do while
// their goroutine panics. Not aside is what a goroutine waits for at the end.
func (r *record) setAside() {
	type user struct{ g, object int }
	uses, users := map[user]bool{}, map[int]int{} // the goroutines that use a mutex of a context
	watched, awaited := map[user]bool{}, map[int]bool{}
	watchers := map[int]int{} // the goroutines that receive from a channel
	watch := func(g, object int) {
		if u := (user{g, object}); !watched[u] {
			watched[u] = true
			watchers[object]++
		}
	}
	for i := range r.known {
		switch s := &r.known[i]; {
		case s.calls() && s.op == coir.OpLock && !uses[user{s.g, s.object}]:
			uses[user{s.g, s.object}] = true
			users[s.object]++
		case s.calls():
		case s.op == coir.OpRecv:
			watch(s.g, s.object)
		default:
			for _, c := range s.cases {
				watch(s.g, c.object)
			}
		}
	}
	others := func(s *step) int { // the goroutines other than its own that can notice a cancel
		n := watchers[s.closes]
		if watched[user{s.g, s.closes}] {
			n--
		}
		return n + users[s.object] - 1
	}
	for id, a := range r.actors {
		if s := r.lastStep(id); s != nil && s.object > 0 && a.state == coir.Waiting {
			awaited[s.object] = true
		}
	}
	shown := 0
	for i := range r.known {
		s := &r.known[i]
		switch {
		case s.inner != "" || s.note != "" || s.last && r.stuck(s.g) || awaited[s.object]:
		case s.cancels():
			s.aside = others(s) == 0
		case s.calls(), s.via == whilePanicking:
			s.aside = true
		case s.chose < 0:
			s.aside = inStandard(s.via)
		default:
			switch s.op {
			case coir.OpLock, coir.OpTryLock, coir.OpUnlock, coir.OpRLock, coir.OpTryRLock, coir.OpRUnlock, coir.OpWLock,
				coir.OpTryWLock, coir.OpWUnlock, coir.OpOnce:
				s.aside = inStandard(s.via)
			}
		}
		if r.shows(s) && !s.aside {
			shown++
		}
	}
	for i := range r.known {
		r.known[i].aside = r.known[i].aside && shown > 0
	}
}

// inStandard reports whether a function of the standard library that the program called is not itself an operation, as
// the functions of package sync are.
func inStandard(via string) bool {
	name, _, _ := strings.Cut(via, ".")
	switch name {
	case "", "sync", "sync/atomic", "runtime", "time", "testing", "panic":
		return false
	}
	return !coirs(via)
}

// missSignals marks the signals that a goroutine which waits for a signal at the end may have missed: the last one
// before its wait, and the last one after that, which woke another goroutine.
func (r *record) missSignals() {
	order := r.inOrder()
	for id, a := range r.actors {
		if a.state != coir.Waiting || a.wait != coir.WaitCond {
			continue
		}
		var wait, before, after *step
		for _, s := range order {
			switch {
			case s.g == id && s.op == coir.OpCondWait:
				wait, before, after = s, nil, nil
				for _, o := range order[:slices.Index(order, s)] {
					if o.object == s.object && (o.op == coir.OpSignal || o.op == coir.OpBroadcast) {
						before = o
					}
				}
			case wait != nil && s.object == wait.object && (s.op == coir.OpSignal || s.op == coir.OpBroadcast):
				after = s
			}
		}
		for _, s := range []*step{before, after} {
			if s != nil {
				s.missed = true
			}
		}
	}
}
